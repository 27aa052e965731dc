"""The numbers of ensembles for metrics of predicted classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row

HEADER = (
    "| metric | recordings | lower loss by the Brier score on | change of the loss, % | by the log loss, % "
    "| mean of five, % |"
)

_WAYS = ("by_brier", "by_log_loss", "by_mean")


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    logs = _logs()
    lines = []
    for metric, of in logs.groupby("metric"):
        cells = [f"{100 * np.expm1(of[way].mean()):+.1f}" for way in _WAYS]
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


def _logs() -> Frame:
    """Return logarithms of the ratios of mean losses to the choice by the metric, a row per metric and recording."""
    losses = kept("label_metrics").groupby(["metric", "recording"])[["by_metric", *_WAYS]].mean()
    logs: Frame = np.log(losses[list(_WAYS)].div(losses["by_metric"], axis=0))
    return logs
