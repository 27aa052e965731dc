"""The numbers of fits on all rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.experiments.all_rows import FIFTH, IN_TIME, ONE_ALONE, ONE_FIT, TWO_ALONE, TWO_FITS, changes
from benchmarks.pages.formats import per_cent_change
from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row
from benchmarks.statistics.ranks_and_tests import signed_rank_test
from cashmere.run.repeats import LEAST_TRIALS

HEADER = (
    "| table | rows that learn | trials in time | one fit alone | two fits alone | and one fit | and two fits "
    "| a fifth | **in time** |"
)
_FEW_TRIALS = 15
_WAYS = [ONE_ALONE, TWO_ALONE, ONE_FIT, TWO_FITS, FIFTH, IN_TIME]


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    found, trials = _found()
    yield Body(
        header=HEADER,
        lines=(
            *(
                row(str(table), *map(str, trials.loc[str(table)]), *map(per_cent_change, values))
                for table, values in found.iterrows()
            ),
            row("**median**", "", "", *map(per_cent_change, found.median())),
            row("**mean**", "", "", *map(per_cent_change, found.mean())),
        ),
    )
    yield Statement(
        text="Two fits of each member after the search lower it on {better} of {n} tables (p = {p:.4f})",
        values={**gain(), "p": signed_rank_test(found[TWO_FITS].to_numpy())[0]},
    )
    yield Statement(
        text="Beside the models of the folds, one fit lowers the loss by {beside:.1f} % on average, alone by "
        "{alone:.1f} %",
        values={
            "beside": -100 * float(np.expm1(found[ONE_FIT].mean())),
            "alone": -100 * float(np.expm1(found[ONE_ALONE].mean())),
        },
    )
    in_time, are_few = found[IN_TIME], trials["trials"] < _FEW_TRIALS
    yield Statement(
        text="it is lower on {better} of {n} tables (p = {p:.3f}), by {mean:.1f} % on average, and on {others} of the "
        "{n_others} with fewer than {few} trials",
        values={
            "better": int((in_time < 0).sum()),
            "n": len(in_time),
            "p": signed_rank_test(in_time.to_numpy())[0],
            "mean": -100 * float(np.expm1(in_time.mean())),
            "others": int((in_time[are_few] < 0).sum()),
            "n_others": int(are_few.sum()),
            "few": _FEW_TRIALS,
        },
    )
    yield Statement(text="a run reserves time only after {least} trials", values={"least": LEAST_TRIALS})


def _found() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the changes by table and way, and the rows and the trials of searches that leave time for fits."""
    rows = kept("all_rows")
    return changes(rows)[_WAYS], rows[rows["way"] == IN_TIME].set_index("table")[["rows", "trials"]]


def gain() -> dict[str, float]:
    """Return on how many tables two fits after the search are better than folds, and by how much."""
    found = _found()[0][TWO_FITS]
    return {
        "n": len(found),
        "median": -100 * float(np.expm1(found.median())),
        "better": int((found < 0).sum()),
    }
