"""The loss of an ensemble with one more member, for every observation as that member."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray
from cashmere.ensembles.kernels import Kernel, make_kernel
from cashmere.ensembles.selection import BLOCK_ELEMENTS, are_probabilities, as_targets
from cashmere.records.loss import Loss

_AGREEMENT = 1e-4
"""Allowed error of a kernel's loss, relative to 1 + loss; beyond it, the metric itself is called."""


def losses_with_added(
    predictions: Sequence[FloatArray] | AnyArray,
    pool: FloatArray,
    y: AnyArray,
    metric: Loss,
    *,
    size: int,
    row_weights: Float64 | None = None,
) -> Float64:
    """Return the loss of (m q + p_i)/(m + 1) for every observation i, as one step of greedy selection compares them.

    The kernel answers where it can be trusted, the metric elsewhere: for predictions that are not probabilities,
    which metrics repair, and for error rates with undecided rows.

    Parameters
    ----------
    predictions : (n, n_rows, n_classes) or (n, n_rows) array, or a sequence of n arrays
        Predictions p_i of the observations.
    pool : (n_rows, n_classes) or (n_rows,) array
        Mean prediction q of the ensemble; any numbers if it is empty.
    y : (n_rows,) array
        Class codes or values.
    metric : Loss
        The metric; those with a kernel (see `cashmere.ensembles.select_ensemble`) are many times faster.
    size : int
        m, the number of members, repetitions included; 0 gives the losses of the observations alone.
    row_weights : (n_rows,) array, optional
        Weights of the rows.

    Returns
    -------
    (n,) array
        Infinite for observations whose predictions hold NaN or infinity, and where the metric gives NaN: like
        `cashmere.ensembles.select_ensemble`, greedy selection never takes them.
    """
    shape, step = predictions[0].shape, size + 1
    y = as_targets(y, len(shape))
    total = np.asarray(pool, dtype=np.float64) * size

    def asked(i: int) -> float:
        loss = metric.loss(y, (total + predictions[i]) / step, row_weights)
        return np.inf if np.isnan(loss) else loss

    finite = [i for i, prediction in enumerate(predictions) if np.isfinite(prediction).all()]
    kernel = make_kernel(metric, y, shape, row_weights)
    known: dict[int, float] = {}
    simple = [] if kernel is None else [i for i in finite if _needs_no_repair(predictions[i])]
    if kernel is not None and simple and (size == 0 or _needs_no_repair(pool)):
        lower, upper = _bounds(kernel, [predictions[i] for i in simple], total, step)
        with np.errstate(invalid="ignore"):
            middle = (lower + upper) / 2
            settled = np.flatnonzero(upper - middle <= _AGREEMENT * (1 + np.abs(middle)))
        known = {simple[k]: float(middle[k]) for k in settled}
        if len(settled):
            first = settled[0]
            true = asked(simple[first])
            slack = _AGREEMENT * (1 + abs(middle[first]))
            # A custom metric may bear a kernel's name.
            if not lower[first] - slack <= true <= upper[first] + slack:
                known = {simple[first]: true}
    losses = np.full(len(predictions), np.inf)
    for i in finite:
        losses[i] = known[i] if i in known else asked(i)
    return losses


def _needs_no_repair(prediction: FloatArray) -> bool:
    """Return whether a metric uses a prediction unchanged."""
    return prediction.ndim == 1 or are_probabilities(prediction)


def _bounds(kernel: Kernel, predictions: Sequence[FloatArray], total: Float64, step: int) -> tuple[Float64, Float64]:
    """Return lower and upper bounds of the losses, computed in blocks that fit the processor's cache."""
    columns = [kernel.column(prediction) for prediction in predictions]
    score = kernel.scorer(total, step)
    height = max(1, BLOCK_ELEMENTS // len(columns[0]))
    blocks = [score(np.stack(columns[start : start + height])) for start in range(0, len(columns), height)]
    lower, upper = np.concatenate(blocks, axis=1)
    return lower, upper
