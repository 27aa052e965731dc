"""The numbers of categories of many levels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.experiments.many_levels import LEARNERS
from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row

HEADER = "| table | linear model | MLP | support vectors | neighbours | LightGBM |"


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("many_levels")
    rows = rows.assign(log=np.log(rows["means"] / rows["levels"]))
    changes = rows.pivot_table(index="table", columns="variant", values="log", aggfunc="mean")[list(LEARNERS)]
    lines = [row(str(table), *map(_per_cent, values)) for table, values in changes.iterrows()]
    yield Body(header=HEADER, lines=(*lines, row("median", *map(_per_cent, changes.median()))))
    dense = changes.drop(columns="lightgbm").stack()
    yield Statement(
        text="Means lower the loss of such a learner in {better} of {n} cases, by {less:.0f} % in the median",
        values={"better": int((dense < 0).sum()), "n": len(dense), "less": -100 * np.expm1(dense.median())},
    )


def _per_cent(change: float) -> str:
    return "" if pd.isna(change) else f"{100 * np.expm1(change):+.1f}"
