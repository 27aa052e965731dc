"""The loss of an ensemble with one more member: of every observation, as if it were added.

======================  ==========================  =============================================================
symbol                  shape                       meaning
======================  ==========================  =============================================================
P                       ``(n, n_rows[, C])``        predictions of n observations
q                       ``(n_rows[, C])``           prediction of the ensemble, the mean over its m members
w                       ``(n,)``                    share of the added member: (1 - w) q + w P_i
======================  ==========================  =============================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cashmere.arrays import AnyArray, FloatArray
from cashmere.ensembles.kernels import make_kernel
from cashmere.ensembles.selection import BLOCK_ELEMENTS, DEFAULT_CLIP, as_targets
from cashmere.loss import Loss

Float64 = NDArray[np.float64]

SQUARED = ("mse", "rmse", "r2", "brier")
"""Metrics that order ensembles as the mean squared error does; the best share has a closed form."""

GRID = (1, 2, 4, 8, 16)
"""Inverse shares tried for metrics without a closed form, beside m + 1 and not adding at all."""

_NEWTON_STEPS = 6
_AGREEMENT = 1e-4


def losses_with_added(
    predictions: Sequence[FloatArray] | AnyArray,
    pool: FloatArray,
    y: AnyArray,
    metric: Loss,
    *,
    size: int,
    row_weights: Float64 | None = None,
) -> Float64:
    """Return the loss of (m q + P_i)/(m + 1) for every observation i: what one step of greedy selection looks at.

    Parameters
    ----------
    predictions : (n, n_rows, n_classes) or (n, n_rows) array, or a sequence of n arrays
        Predictions of the observations.
    pool : (n_rows, n_classes) or (n_rows,) array
        Mean prediction of the ensemble; any numbers if it is empty.
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
    """
    return _evaluator(predictions, y, metric, row_weights)(pool, size + 1)


def best_added_losses(
    predictions: Sequence[FloatArray] | AnyArray,
    pool: FloatArray,
    y: AnyArray,
    metric: Loss,
    *,
    size: int,
    row_weights: Float64 | None = None,
) -> tuple[Float64, Float64]:
    """Return the loss of (1 - w) q + w P_i at the best w in [0, 1] for every observation i, and that w.

    Squared losses: w = <q - y, q - P_i> / |q - P_i|^2, cut to [0, 1]. Log loss, convex in w: Newton's method inside a
    bracket. Other metrics: the best of no addition, w = 1/(m + 1) and the inverse of `GRID`.

    Parameters
    ----------
    predictions, pool, y, metric, size, row_weights
        As in `losses_with_added`.

    Returns
    -------
    losses, shares : (n,) array
        The share is 1 for an empty ensemble.
    """
    y = as_targets(y, pool.ndim)
    n = len(predictions)
    if size == 0:
        return losses_with_added(predictions, pool, y, metric, size=0, row_weights=row_weights), np.ones(n)
    weights = np.full(len(y), 1 / len(y)) if row_weights is None else row_weights / row_weights.sum()
    if metric.name in SQUARED:
        shares = _best_squared_shares(predictions, pool, y, weights)
    elif metric.name == "log_loss":
        clip = float(getattr(metric, "clip", DEFAULT_CLIP))
        shares = _best_log_shares(predictions, pool, y, weights, start=1 / (size + 1), clip=clip)
    else:
        return _best_of_grid(predictions, pool, y, metric, size, row_weights)
    joined = (pool + w * (prediction - pool) for w, prediction in zip(shares, predictions, strict=True))
    return np.array([metric.loss(y, ensemble, row_weights) for ensemble in joined]), shares


def _best_squared_shares(
    predictions: Sequence[FloatArray] | AnyArray, pool: FloatArray, y: AnyArray, weights: Float64
) -> Float64:
    start = _columns(pool)
    target = y[:, None] if pool.ndim == 1 else _columns(np.eye(pool.shape[1])[y])
    residual = weights[:, None] * (start - target)
    shares = np.zeros(len(predictions))
    for i, prediction in enumerate(predictions):
        change = _columns(prediction) - start
        square = float(weights @ np.einsum("ij,ij->i", change, change))
        if square > 0:
            shares[i] = -float(np.einsum("ij,ij->", residual, change)) / square
    return np.clip(shares, 0, 1)


def _columns(prediction: AnyArray) -> Float64:
    """Return values as one column, of two classes the second (the other one is its complement), or all classes."""
    columns = prediction.reshape(len(prediction), -1)
    return (columns[:, 1:] if columns.shape[1] == 2 else columns).astype(np.float64)


def _best_log_shares(
    predictions: Sequence[FloatArray] | AnyArray,
    pool: FloatArray,
    y: AnyArray,
    weights: Float64,
    *,
    start: float,
    clip: float,
) -> Float64:
    """Minimise f(w) = -sum_s weight_s log(q_s + w (p_s - q_s)), where p, q belong to the true class; f is convex."""
    rows = np.arange(len(y))
    q = pool[rows, y].astype(np.float64)
    shares = np.empty(len(predictions))
    for block in _blocks(len(predictions), len(y)):
        change = np.stack([prediction[rows, y] for prediction in predictions[block]]) - q
        shares[block] = _newton(change, q, weights, start=start, clip=clip)
    return shares


def _newton(change: Float64, q: Float64, weights: Float64, *, start: float, clip: float) -> Float64:
    def slopes(w: Float64) -> tuple[Float64, Float64]:
        ratio = change / np.maximum(q + w[:, None] * change, clip)
        return -(ratio @ weights), np.square(ratio, out=ratio) @ weights

    low, high = np.zeros(len(change)), np.ones(len(change))
    none, all_ = slopes(low)[0] >= 0, slopes(high)[0] <= 0
    w = np.full(len(change), start)
    for _ in range(_NEWTON_STEPS):
        slope, curvature = slopes(w)
        low, high = np.where(slope < 0, w, low), np.where(slope < 0, high, w)
        step = w - slope / np.where(curvature > 0, curvature, 1)
        # A step onto the bracket is that of a converged w.
        w = np.where((low <= step) & (step <= high), step, (low + high) / 2)
    return np.where(none, 0.0, np.where(all_, 1.0, w))


def _best_of_grid(
    predictions: Sequence[FloatArray] | AnyArray,
    pool: FloatArray,
    y: AnyArray,
    metric: Loss,
    size: int,
    row_weights: Float64 | None,
) -> tuple[Float64, Float64]:
    evaluate = _evaluator(predictions, y, metric, row_weights)
    losses = np.full(len(predictions), metric.loss(y, pool, row_weights))
    shares = np.zeros(len(predictions))
    for inverse in sorted({*GRID, size + 1}):
        tried = evaluate(pool, inverse)
        shares = np.where(tried < losses, 1 / inverse, shares)
        losses = np.minimum(tried, losses)
    return losses, shares


def _evaluator(
    predictions: Sequence[FloatArray] | AnyArray, y: AnyArray, metric: Loss, row_weights: Float64 | None
) -> Callable[[FloatArray, int], Float64]:
    """Return the function (q, k) -> losses of ((k - 1) q + P_i)/k for all i."""
    shape = predictions[0].shape
    y = as_targets(y, len(shape))

    def slow(total: Float64, step: int) -> Float64:
        return np.array([metric.loss(y, (total + prediction) / step, row_weights) for prediction in predictions])

    kernel = make_kernel(metric.name, y, shape, row_weights, float(getattr(metric, "clip", DEFAULT_CLIP)))
    columns = [] if kernel is None else [kernel.column(prediction) for prediction in predictions]

    def evaluate(pool: FloatArray, step: int) -> Float64:
        total = np.asarray(pool, dtype=np.float64) * (step - 1)
        if kernel is None:
            return slow(total, step)
        score = kernel.scorer(total, step)
        blocks = _blocks(len(columns), len(columns[0]))
        lower, upper = np.concatenate([score(np.stack(columns[block])) for block in blocks], axis=1)
        losses: Float64 = (lower + upper) / 2
        true = metric.loss(y, (total + predictions[0]) / step, row_weights)
        # The metric may have a kernel's name and another definition, or repair what are no probabilities.
        if not np.isfinite(losses).all() or abs(true - losses[0]) > _AGREEMENT * (1 + abs(true)):
            return slow(total, step)
        return losses

    return evaluate


def _blocks(n: int, width: int) -> list[slice]:
    """Cut n lines of some width into blocks that fit the cache of the processor."""
    height = max(1, BLOCK_ELEMENTS // width)
    return [slice(start, start + height) for start in range(0, n, height)]
