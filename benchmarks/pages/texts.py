"""The numbers of columns made from texts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.texts import CORPORA
from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row

HEADER = "| texts | 30 | 300 | 30, words | 100, words | 300, words | 30, parts | 100, parts |"
_ORDER = ("30", "300", "30+words", "100+words", "300+words", "30+scores", "100+scores")


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    rows = kept("texts")
    rows = rows.assign(log=np.log(rows["test"]))
    losses = rows.pivot_table(index="table", columns="variant", values="log")
    losses = losses.loc[[name for name in CORPORA if name in losses.index], list(_ORDER)]
    changes = losses.sub(losses["300"], axis=0)
    lines = [row(str(table), *map(_per_cent, values)) for table, values in changes.iterrows()]
    trials = rows.groupby("variant")["trials"].median()
    yield Body(
        header=HEADER,
        lines=(
            *lines,
            row("geometric mean", *map(_per_cent, changes.mean())),
            row("median of trials", *(f"{trials[name]:.0f}" for name in _ORDER)),
        ),
    )
    gain = losses["30+scores"] - losses["30"]
    yield Statement(
        text="Beside 30 components, scores lower the loss on {better} of {n} corpora, by {less:.0f} % on average",
        values={"better": int((gain < 0).sum()), "n": len(gain), "less": -100 * np.expm1(gain.mean())},
    )


def _per_cent(change: float) -> str:
    return "" if change == 0 else f"{100 * np.expm1(change):+.1f}"
