"""The numbers of ensembles for metrics of predicted classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.experiments.label_metrics import WAYS, log_ratios
from benchmarks.pages.kept_rows import kept
from benchmarks.pages.statement import Body, Statement, row

HEADER = (
    "| metric | recordings | lower loss by the Brier score on | change of the loss, % | by the log loss, % "
    "| mean of five, % |"
)


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    logs = log_ratios(kept("label_metrics"))
    lines = []
    for metric, of in logs.groupby("metric"):
        cells = [f"{100 * np.expm1(of[way].mean()):+.1f}" for way in WAYS]
        lines.append(row(f"`{metric}`", str(len(of)), str(int((of["by_brier"] < 0).sum())), *cells))
    yield Body(header=HEADER, lines=tuple(lines))
    yield Statement(
        text="Chosen by the Brier score, the loss is lower in {lower} of {n} cases of a recording and a metric, by "
        "{median:.1f} % in the median",
        values={
            "lower": int((logs["by_brier"] < 0).sum()),
            "n": len(logs),
            "median": 100 * -np.expm1(logs["by_brier"].median()),
        },
    )
