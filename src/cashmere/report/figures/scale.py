"""What all figures share: their sizes, the range of scores they show, and how scores are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SIZES = ((860, 280, "wide"), (400, 290, "narrow"))
"""Width, height and class of a figure for wide and for narrow pages."""


def score_name(metric: Mapping[str, Any]) -> str:
    """Return the name of the scores: that of the metric, or "loss" if only losses are known."""
    return "loss" if metric["is_loss"] else str(metric["name"])


def score_label(metric: Mapping[str, Any]) -> str:
    """Return the label of an axis of scores.

    Examples
    --------
    >>> score_label({"name": "rmse", "is_loss": False, "greater_is_better": False})
    'rmse (lower is better)'
    """
    return f"{score_name(metric)} ({'higher' if metric['greater_is_better'] else 'lower'} is better)"


def shown_range(summary: Mapping[str, Any], *, constant: bool) -> tuple[float, float] | None:
    """Return the range to show: outliers, or a distant constant prediction, would squeeze the rest together.

    With the constant prediction, the range ends there if any trial is better: worse ones are not worth the space.
    """
    losses = [t["score"] for t in summary["curves"]["trials"] if t["score"] is not None]
    if not losses:
        return None
    sign = -1.0 if summary["metric"]["greater_is_better"] else 1.0
    losses = sorted(sign * score for score in losses)
    limit = whisker(losses)
    ensemble = [sign * p["score"] for p in summary["curves"]["ensemble"]] if constant else []
    baseline = summary["curves"]["baseline_score"] if constant else None
    if baseline is not None and losses[0] < sign * baseline:
        limit = min(limit, sign * baseline)
    shown = [loss for loss in [*losses, *ensemble] if loss <= limit] + ensemble[-1:]
    if baseline is not None:
        span = max(max(shown) - min(shown), 0.05 * abs(baseline))
        if abs(sign * baseline - losses[0]) <= 6 * span:
            shown.append(sign * baseline)
    ends = sign * min(shown), sign * max(shown)
    return min(ends), max(ends)


def whisker(values: Sequence[float]) -> float:
    """Return the limit beyond which sorted values are outliers: the whisker of a box plot, at least the median."""
    lower, upper = values[len(values) // 4], values[3 * len(values) // 4]
    return upper + 1.5 * max(upper - lower, upper - values[0])
