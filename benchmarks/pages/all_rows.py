"""The numbers of fits on all rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.all_rows import AFTER, FIFTH, FOLDS, ONE_FIT, TENTH, changes
from benchmarks.pages.formats import per_cent_change
from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row
from benchmarks.statistics.ranks_and_tests import signed_rank_test

HEADER = "| table | rows that learn | trials | and two fits | a tenth | a fifth | a fifth, one fit |"
_WAYS = [AFTER, TENTH, FIFTH, ONE_FIT]
_SMALL = 1000
"""Tables of at most so many rows get repeats instead."""


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("all_rows")
    found = changes(rows)[_WAYS]
    n_rows = rows.groupby("table")["rows"].first().reindex(found.index)
    larger = found[n_rows > _SMALL]
    seconds = rows.groupby("way")["seconds"].median() / rows["budget"].median()
    yield Body(
        header=HEADER,
        lines=(
            *(row(str(table), n_rows[table], *map(per_cent_change, values)) for table, values in found.iterrows()),
            row("**median**, more than 1,000 rows", "", *map(per_cent_change, larger.median())),
            row("median of CPU seconds", "", *(f"{100 * seconds[way]:.0f} %" for way in _WAYS)),
        ),
    )
    yield Statement(
        text="On the {n} tables with more than 1,000 rows, two fits lower the loss by {median:.1f} % in the median and "
        "by {mean:.1f} % on average; they are better on {better} (p = {p:.4f}).",
        values={
            "n": len(larger),
            "median": -100 * np.expm1(larger[TENTH].median()),
            "mean": -100 * np.expm1(larger[TENTH].mean()),
            "better": int((larger[TENTH] < 0).sum()),
            "p": signed_rank_test(larger[TENTH].to_numpy())[0],
        },
    )
    few = found[n_rows <= _SMALL]
    yield Statement(
        text="On the {n:word} with fewer rows, they raise it on {worse:word}",
        values={"n": len(few), "worse": int((few[TENTH] > 0).sum())},
    )


def gain() -> dict[str, float]:
    """Return on how many tables of more than 1,000 rows two fits are better than folds, and by how much."""
    rows = kept("all_rows")
    larger = changes(rows[rows["rows"] > _SMALL])
    return {
        "n": len(larger),
        "median": -100 * float(np.expm1(larger[TENTH].median())),
        "better": int((larger[TENTH] < larger[FOLDS]).sum()),
    }
