"""The loss of an ensemble with one more member, for every observation as that member.

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
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, FloatArray
from cashmere.ensembles.kernels import Scorer, clip_of, make_kernel
from cashmere.ensembles.selection import BLOCK_ELEMENTS, TIE_TOLERANCE, are_probabilities, as_targets
from cashmere.records.loss import Loss

Float64 = NDArray[np.float64]

AddedShare = Literal["fixed", "best"]
"""Share of an added member: ``"fixed"``, 1/(m + 1) next to m others; ``"best"``, the share with the lowest loss."""

SQUARED = ("mse", "rmse", "r2", "brier")
"""Metrics that order ensembles as the mean squared error does; the best share has a closed form."""

GRID = (1, 2, 4, 8, 16)
"""Inverse shares tried for metrics without a closed form, besides m + 1 and not adding at all."""

_NEWTON_STEPS = 6
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
    """Return the loss of (m q + P_i)/(m + 1) for every observation i, as one step of greedy selection compares them.

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
        Infinite for observations whose predictions hold NaN or infinity, and where the metric gives NaN: like
        `cashmere.ensembles.select_ensemble`, greedy selection never takes them.
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

    Squared losses: w = <q - y, q - P_i> / |q - P_i|^2, clipped to [0, 1]. Log loss, convex in w: Newton's method
    inside a bracket. Other metrics: the best of no addition, w = 1/(m + 1) and the inverses of `GRID`. Where nothing
    beats no addition, the loss is exactly the metric's value for the pool, so that the gain is exactly 0.

    Parameters
    ----------
    predictions, pool, y, metric, size, row_weights
        As in `losses_with_added`.

    Returns
    -------
    losses, shares : (n,) array
        The share is 1 for an empty ensemble. Observations whose predictions hold NaN or infinity have an infinite
        loss, as in `losses_with_added`, and a share of 0 (1 for an empty ensemble).
    """
    y = as_targets(y, pool.ndim)
    n = len(predictions)
    if size == 0:
        return losses_with_added(predictions, pool, y, metric, size=0, row_weights=row_weights), np.ones(n)
    losses, shares = np.full(n, np.inf), np.zeros(n)
    finite = _finite_positions(predictions)
    if finite:
        kept = [predictions[i] for i in finite]
        losses[finite], shares[finite] = _best_of_finite(kept, pool, y, metric, size, row_weights)
    return losses, shares


def added_losses(
    predictions: Sequence[FloatArray] | AnyArray,
    pool: FloatArray,
    y: AnyArray,
    metric: Loss,
    *,
    share: AddedShare,
    size: int,
    row_weights: Float64 | None = None,
) -> Float64:
    """Return the losses ``(n,)`` of `losses_with_added` or `best_added_losses`, depending on `share`."""
    if share == "fixed":
        return losses_with_added(predictions, pool, y, metric, size=size, row_weights=row_weights)
    return best_added_losses(predictions, pool, y, metric, size=size, row_weights=row_weights)[0]


def _best_of_finite(
    predictions: Sequence[FloatArray],
    pool: FloatArray,
    y: AnyArray,
    metric: Loss,
    size: int,
    row_weights: Float64 | None,
) -> tuple[Float64, Float64]:
    weights = np.full(len(y), 1 / len(y)) if row_weights is None else row_weights / row_weights.sum()
    if metric.name in SQUARED:
        shares = _best_squared_shares(predictions, pool, y, weights)
    elif metric.name == "log_loss":
        shares = _best_log_shares(predictions, pool, y, weights, start=1 / (size + 1), clip=clip_of(metric))
    else:
        return _best_of_grid(predictions, pool, y, metric, size, row_weights)
    alone = metric.loss(y, pool, row_weights)
    losses = np.full(len(predictions), alone)
    for i in np.flatnonzero(shares).tolist():
        losses[i] = metric.loss(y, pool + shares[i] * (predictions[i] - pool), row_weights)
    # Rounding, or a metric that rescales rows that are not probabilities, may make this share worse than none.
    better = losses < alone
    return np.where(better, losses, alone), np.where(better, shares, 0.0)


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
    """Return values as one column, the second of two classes (the first is its complement), or all classes."""
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
        # A step onto the bracket means that w has converged.
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
        # Kernels round differently from the metric: equal losses must not look like a gain.
        better = tried < losses - TIE_TOLERANCE
        losses, shares = np.where(better, tried, losses), np.where(better, 1 / inverse, shares)
    return losses, shares


def _evaluator(
    predictions: Sequence[FloatArray] | AnyArray, y: AnyArray, metric: Loss, row_weights: Float64 | None
) -> Callable[[FloatArray, int], Float64]:
    """Return the function (q, k) -> losses of ((k - 1) q + P_i)/k for all i.

    The kernel answers where it can be trusted, the metric elsewhere: for predictions that are not probabilities,
    which metrics repair, and for error rates with undecided rows.
    """
    shape = predictions[0].shape
    y = as_targets(y, len(shape))
    finite = _finite_positions(predictions)
    kernel = make_kernel(metric, y, shape, row_weights)
    simple = [] if kernel is None else [i for i in finite if _needs_no_repair(predictions[i])]
    columns = [] if kernel is None else [kernel.column(predictions[i]) for i in simple]

    def evaluate(pool: FloatArray, step: int) -> Float64:
        total = np.asarray(pool, dtype=np.float64) * (step - 1)

        def asked(i: int) -> float:
            loss = metric.loss(y, (total + predictions[i]) / step, row_weights)
            return np.inf if np.isnan(loss) else loss

        known: dict[int, float] = {}
        if kernel is not None and simple and (step == 1 or _needs_no_repair(pool)):
            lower, upper = _bounds(kernel.scorer(total, step), columns)
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

    return evaluate


def _finite_positions(predictions: Sequence[FloatArray] | AnyArray) -> list[int]:
    return [i for i, prediction in enumerate(predictions) if np.isfinite(prediction).all()]


def _needs_no_repair(prediction: FloatArray) -> bool:
    """Return whether a metric uses a prediction unchanged."""
    return prediction.ndim == 1 or are_probabilities(prediction)


def _bounds(score: Scorer, columns: list[AnyArray]) -> tuple[Float64, Float64]:
    blocks = _blocks(len(columns), len(columns[0]))
    lower, upper = np.concatenate([score(np.stack(columns[block])) for block in blocks], axis=1)
    return lower, upper


def _blocks(n: int, width: int) -> list[slice]:
    """Cut n lines of some width into blocks that fit the processor's cache."""
    height = max(1, BLOCK_ELEMENTS // width)
    return [slice(start, start + height) for start in range(0, n, height)]
