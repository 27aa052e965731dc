"""The numbers of columns made from texts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.texts import CORPORA
from benchmarks.pages.formats import per_cent_change
from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row
from benchmarks.statistics.ranks_and_tests import signed_rank_test

HEADER = "| texts | 30 | 30, words | 100, words | 300, words | **30, words and parts** |"
_VARIANTS = ("30", "30+words", "100+words", "300+words", "30+scores")
_BEFORE, _NOW = "300", "30+scores"


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("texts")
    losses = rows.assign(log=np.log(rows["test"])).pivot_table(index=["table", "seed"], columns="variant", values="log")
    changes = losses.sub(losses[_BEFORE], axis=0)
    of_first = changes.xs(0, level="seed").loc[[name for name in CORPORA if name in changes.index], list(_VARIANTS)]
    trials = rows[rows["seed"] == 0].groupby("variant")["trials"].median()
    yield Body(
        header=HEADER,
        lines=(
            *(row(str(table), *map(per_cent_change, values)) for table, values in of_first.iterrows()),
            row("median", *map(per_cent_change, of_first.median())),
            row("median of trials", *(f"{trials[name]:.0f}" for name in _VARIANTS)),
        ),
    )
    of_now = changes[_NOW].dropna()
    means = of_now.groupby("table").mean()
    yield Statement(
        text="Over {seeds:word} seeds, 30 components and scores are better than 300 components on {better} of {n} "
        "corpora, by {less:.1f} % in the median (p = {p:.3f})",
        values={
            "seeds": of_now.index.get_level_values("seed").nunique(),
            "better": int((means < 0).sum()),
            "n": len(means),
            "less": -100 * np.expm1(means.median()),
            "p": signed_rank_test(means.to_numpy())[0],
        },
    )
    yield Statement(text="{before:.0f} trials to {now:.0f}", values={"before": trials[_BEFORE], "now": trials[_NOW]})
