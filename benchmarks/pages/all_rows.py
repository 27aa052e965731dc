"""The numbers of fits on all rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.all_rows import AFTER, FIFTH, FOLDS, ONE_FIT, TENTH, changes
from benchmarks.pages.formats import per_cent_change
from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row
from benchmarks.statistics.ranks_and_tests import signed_rank_test

HEADER = "| table | rows that learn | trials | and two fits | a tenth | **a fifth** | a fifth, one fit |"
_WAYS = [AFTER, TENTH, FIFTH, ONE_FIT]


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("all_rows")
    found = changes(rows)[_WAYS]
    searches = rows[rows["way"] == FOLDS].set_index("table")[["rows", "trials"]]
    yield Body(
        header=HEADER,
        lines=(
            *(
                row(str(table), *map(str, searches.loc[table]), *map(per_cent_change, values))
                for table, values in found.iterrows()
            ),
            row("**median**", "", "", *map(per_cent_change, found.median())),
            row("**mean**", "", "", *map(per_cent_change, found.mean())),
        ),
    )
    yield Statement(
        text="With a fifth of the time for two fits, the loss is lower on {better} of {n} tables (p = {p:.4f})",
        values={
            "better": int((found[FIFTH] < 0).sum()),
            "n": len(found),
            "p": signed_rank_test(found[FIFTH].to_numpy())[0],
        },
    )


def gain() -> dict[str, float]:
    """Return on how many tables two fits in a fifth of the time are better than folds, and by how much."""
    found = changes(kept("all_rows"))[FIFTH]
    return {
        "n": len(found),
        "median": -100 * float(np.expm1(found.median())),
        "better": int((found < 0).sum()),
    }
