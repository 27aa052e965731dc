"""Losses as surrogates see them: finite, on a robust common scale."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cashmere.base.arrays import Float64
from cashmere.records.trial import History

Failures = Literal["worst_possible", "worst_seen", "apart"]
"""The loss of a failed trial: `History.failure_loss`, the worst of a success, or none, see `learn_losses`."""


def scale_losses(history: History, *, cap: bool = True, failures: Failures = "worst_possible") -> tuple[Float64, float]:
    """Return finite losses ``(n_observations,)`` on a robust common scale, and the best successful one.

    Parameters
    ----------
    history : History
        At least one observation.
    cap : bool
        Treat losses beyond a bound as equal to it: that of the constant predictor, or the upper quartile plus 1.5
        interquartile ranges if that is lower; never less than the median.
    failures : {"worst_possible", "worst_seen", "apart"}
        Loss of failed trials: the worst possible of a bounded metric (see `History.failure_loss`), or as in OpenBox the
        worst of a success, which also stands for them where they are kept apart.
    """
    losses = np.array(history.losses, dtype=np.float64)
    succeeded = np.array([observation.succeeded for observation in history], dtype=np.bool_)
    if failures != "worst_possible":
        losses[~succeeded] = history.stopped_loss
    finite = np.isfinite(losses)
    losses = np.where(finite, losses, np.max(losses, initial=history.failure_loss, where=finite))
    if cap:
        losses = np.minimum(losses, loss_bound(losses, history.baseline_loss))
    lower, middle, upper = np.percentile(losses, [25, 50, 75])
    losses = (losses - middle) / (upper - lower if upper > lower else 1.0)
    return losses, float(np.min(losses[succeeded]) if succeeded.any() else np.min(losses))


def loss_bound(losses: Float64, baseline_loss: float = np.inf) -> float:
    """Return the loss beyond which differences say nothing about good configurations.

    Parameters
    ----------
    losses : (n,) array
        Finite losses, n >= 1.
    baseline_loss : float
        Loss of the constant predictor, if known.

    Returns
    -------
    float
        The lower of `baseline_loss` and the upper quartile plus 1.5 interquartile ranges, but not below the median.
    """
    lower, middle, upper = np.percentile(losses, [25, 50, 75])
    fence = upper + 1.5 * (upper - lower)
    return float(max(middle, min(fence, baseline_loss) if np.isfinite(baseline_loss) else fence))
