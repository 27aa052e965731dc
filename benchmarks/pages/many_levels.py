"""The numbers of categories of many levels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.many_levels import LEARNERS
from benchmarks.pages.formats import per_cent_change
from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row

HEADER = "| table | linear model | MLP | support vectors | neighbours | LightGBM |"


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("many_levels")
    rows = rows.assign(log=np.log(rows["means"] / rows["levels"]))
    changes = rows.pivot_table(index="table", columns="variant", values="log", aggfunc="mean")[list(LEARNERS)]
    lines = [row(str(table), *map(per_cent_change, values)) for table, values in changes.iterrows()]
    yield Body(header=HEADER, lines=(*lines, row("median", *map(per_cent_change, changes.median()))))
    dense = changes.drop(columns="lightgbm").stack()
    yield Statement(
        text="Means lower the loss of such a learner in {better} of {n} cases, by {less:.0f} % in the median",
        values={"better": int((dense < 0).sum()), "n": len(dense), "less": -100 * np.expm1(dense.median())},
    )
