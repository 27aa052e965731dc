"""Losses: pure functions of targets, predictions and row weights, all of them smaller for better predictions.

Notation (shapes)
-----------------
y ``(n,)``: class codes or values; p ``(n, C)``: class probabilities, or values ``(n,)``; labels ``(n,)``: class codes;
w ``(n,)``: row weights that sum to one, or None for equal ones. A score S whose best value is 1 becomes the loss 1 - S.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from cashmere.base.arrays import AnyArray, Float64

PROBABILITY_CLIP = 1e-7
"""Smallest probability in the log loss: predictions are float32, which does not resolve 1 - p any finer."""

SMALLEST_PREDICTION = 0.001
"""Smallest prediction under a deviance, which needs positive ones, relative to the mean target."""

_SUM_TOLERANCE = 1e-4
_LEAST_SPREAD = 1e-12  # of classes that differ only by rounding; one row in ten million has 2e-7


def safe_probabilities(p: Float64) -> Float64:
    """Rescale rows that do not sum to one; rows that do, up to float32 rounding, stay untouched."""
    if p.min() < 0:
        p = np.maximum(p, 0)
    total = p.sum(axis=1)
    off = np.abs(total - 1) > _SUM_TOLERANCE
    if off.any():
        p = p.copy()
        p[off] = np.where(
            total[off, None] > 0, p[off] / np.where(total[off] > 0, total[off], 1)[:, None], 1 / p.shape[1]
        )
    return p


def _mean(values: Float64, w: Float64 | None) -> float:
    return float(values.mean() if w is None else w @ values)


def _complement(score: Any) -> float:
    """Return 1 - score, at least 0 despite rounding."""
    return max(1.0 - float(score), 0.0)


def _recalls(y: AnyArray, labels: AnyArray, w: Float64 | None) -> Float64:
    """Return the recall of each class that occurs in y."""
    size = int(y.max()) + 1
    support = np.bincount(y, weights=w, minlength=size)
    hits = np.bincount(y, weights=(y == labels) * (1.0 if w is None else w), minlength=size)
    return hits[support > 0] / support[support > 0]


def error_rate(y: AnyArray, labels: AnyArray, w: Float64 | None) -> float:
    """Share of rows with a wrong label."""
    return _mean((y != labels).astype(np.float64), w)


def balanced_error_rate(y: AnyArray, labels: AnyArray, w: Float64 | None) -> float:
    """1 - mean recall of the classes that occur."""
    return _complement(_recalls(y, labels, w).mean())


def one_minus_geometric_mean(y: AnyArray, labels: AnyArray, w: Float64 | None) -> float:
    """1 - geometric mean of the recalls of the classes that occur."""
    recalls = _recalls(y, labels, w)
    return _complement(np.prod(recalls ** (1 / len(recalls))))


def one_minus_f1(y: AnyArray, labels: AnyArray, w: Float64 | None) -> float:
    """1 - mean F1 of the classes."""
    f1, _ = _f1_and_support(y, labels, w)
    return _complement(np.mean(f1))


def one_minus_weighted_f1(y: AnyArray, labels: AnyArray, w: Float64 | None) -> float:
    """1 - mean F1 of the classes, weighted by their rows."""
    f1, support = _f1_and_support(y, labels, w)
    return _complement(np.average(f1, weights=support))


def _f1_and_support(y: AnyArray, labels: AnyArray, w: Float64 | None) -> tuple[Float64, Float64]:
    """Return F1 and the weight of the rows of each class that is there or is predicted."""
    size = int(max(y.max(), labels.max())) + 1
    hits = np.bincount(y, weights=(y == labels) * (1.0 if w is None else w), minlength=size)
    support = np.bincount(y, weights=w, minlength=size).astype(np.float64)
    total = support + np.bincount(labels, weights=w, minlength=size)
    return 2 * hits[total > 0] / total[total > 0], support[total > 0]


def one_minus_f1_of_second(y: AnyArray, labels: AnyArray, w: Float64 | None) -> float:
    """F1 of the second of two classes; without a row that is or is called the second, there is no error."""
    hits = _mean(((y == 1) & (labels == 1)).astype(np.float64), w)
    total = _mean((y == 1) + (labels == 1).astype(np.float64), w)
    return 0.0 if total == 0 else _complement(2 * hits / total)


def one_minus_matthews(y: AnyArray, labels: AnyArray, w: Float64 | None) -> float:
    """Correlation of true and predicted classes, for any number of them; 0 if either are all the same."""
    size = int(max(y.max(), labels.max())) + 1
    share = np.full(len(y), 1 / len(y)) if w is None else w
    true, called = (np.bincount(codes, weights=share, minlength=size) for codes in (y, labels))
    spreads = 1 - true @ true, 1 - called @ called
    if min(spreads) < _LEAST_SPREAD:
        return 1.0
    return _complement((share @ (y == labels) - true @ called) / np.sqrt(spreads[0] * spreads[1]))


def one_minus_quadratic_kappa(y: AnyArray, labels: AnyArray, w: Float64 | None) -> float:
    """Squared distance of predicted from true classes, relative to that of independent ones; 1 if both are constant."""
    share = np.full(len(y), 1 / len(y)) if w is None else w
    true, called = share @ y, share @ labels
    apart = share @ y.astype(np.float64) ** 2 + share @ labels.astype(np.float64) ** 2 - 2 * true * called
    return float(share @ (y - labels) ** 2 / apart) if apart > _LEAST_SPREAD else 1.0


def log_loss(y: AnyArray, p: Float64, w: Float64 | None) -> float:
    """Mean of -log of the probability of the right class."""
    return _mean(-np.log(np.clip(p[np.arange(len(y)), y], PROBABILITY_CLIP, 1.0)), w)


def brier(y: AnyArray, p: Float64, w: Float64 | None) -> float:
    """Mean squared distance to the true class, halved for two classes, as in scikit-learn."""
    squared = np.sum(p**2, axis=1) - 2 * p[np.arange(len(y)), y] + 1
    return max(_mean(squared, w), 0.0) / (2 if p.shape[1] == 2 else 1)


def _area_under_curve(positive: NDArray[np.bool_], p: Float64, w: Float64 | None) -> float:
    order = np.argsort(p, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(p[order]) > 0])
    mass = np.ones(len(p)) if w is None else w[order]
    above = np.add.reduceat(mass * positive[order], starts)
    below = np.add.reduceat(mass * ~positive[order], starts)
    pairs = above @ (np.cumsum(below) - below / 2)  # ties count half
    return float(pairs / (above.sum() * below.sum()))


def one_minus_auc(y: AnyArray, p: Float64, w: Float64 | None) -> float:
    """Two classes: area for class 1; more: mean over one class against the rest, for classes that occur in y.

    With a single class in y the area is undefined, and the loss is that of chance, 0.5.
    """
    present = y if w is None else y[w > 0]
    classes = [1] if p.shape[1] == 2 else range(p.shape[1])
    areas = [_area_under_curve(y == c, p[:, c], w) for c in classes if np.any(present == c) and np.any(present != c)]
    return _complement(np.mean(areas)) if areas else 0.5


def _precision_at_recalls(positive: NDArray[np.bool_], p: Float64, w: Float64 | None) -> float:
    """Average precision: at each distinct probability the precision, times the recall that it adds."""
    if w is None:  # only the probabilities of positive rows add recall
        own = np.sort(p[positive])
        values, counts = np.unique(own, return_counts=True)
        n_called = len(p) - np.searchsorted(np.sort(p), values)
        return float(counts @ ((len(own) - np.searchsorted(own, values)) / n_called) / len(own))
    order = np.argsort(-p, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(p[order]) < 0])
    mass = w[order]
    hits = np.add.reduceat(mass * positive[order], starts)
    called = np.cumsum(np.add.reduceat(mass, starts))
    precision = np.divide(np.cumsum(hits), called, out=np.zeros_like(called), where=called > 0)
    return float(hits @ precision / hits.sum())


def one_minus_average_precision(y: AnyArray, p: Float64, w: Float64 | None) -> float:
    """Two classes: that of class 1; more: mean over one class against the rest, for classes that occur in y.

    Without a row of class 1 the loss is 1, as in scikit-learn.
    """
    present = y if w is None else y[w > 0]
    classes = [1] if p.shape[1] == 2 else range(p.shape[1])
    values = [_precision_at_recalls(y == c, p[:, c], w) for c in classes if np.any(present == c)]
    return _complement(np.mean(values)) if values else 1.0


@dataclass(frozen=True, slots=True)
class OfFirstClass:
    """A loss that looks for the second of two classes, with the classes exchanged."""

    function: Callable[..., float]

    def __call__(self, y: AnyArray, p: AnyArray, w: Float64 | None) -> float:
        """Return the loss."""
        return self.function(1 - y, 1 - p if p.ndim == 1 else p[:, ::-1], w)


def mse(y: AnyArray, p: Float64, w: Float64 | None) -> float:
    """Mean squared error."""
    return _mean((y - p) ** 2, w)


def rmse(y: AnyArray, p: Float64, w: Float64 | None) -> float:
    """Root mean squared error."""
    return float(np.sqrt(mse(y, p, w)))


def rmsle(y: AnyArray, p: Float64, w: Float64 | None) -> float:
    """Root mean squared difference of log(1 + value); predictions below 0 count as 0."""
    return rmse(np.log1p(y), np.log1p(np.maximum(p, 0.0)), w)


def mae(y: AnyArray, p: Float64, w: Float64 | None) -> float:
    """Mean absolute error."""
    return _mean(np.abs(y - p), w)


def mape(y: AnyArray, p: Float64, w: Float64 | None) -> float:
    """Mean absolute percentage error as a fraction; targets of zero are read as 2.2e-16, as in scikit-learn."""
    return _mean(np.abs(y - p) / np.maximum(np.abs(y), np.finfo(np.float64).eps), w)


@dataclass(frozen=True, slots=True)
class PinballLoss:
    """Mean of ``level`` times the error where the target is larger, ``1 - level`` times where it is smaller."""

    level: float

    def __call__(self, y: AnyArray, p: Float64, w: Float64 | None) -> float:
        """Return the loss."""
        return _mean(np.maximum(self.level * (y - p), (self.level - 1) * (y - p)), w)


@dataclass(frozen=True, slots=True)
class Deviance:
    """Mean Tweedie deviance; predictions below a thousandth of the mean target count as that.

    For p in (1, 2) it is the mean of 2 (y^(2-p) / ((1-p)(2-p)) - y q^(1-p) / (1-p) + q^(2-p) / (2-p)) over the targets
    y and predictions q, with limits for Poisson (1) and gamma (2), as in scikit-learn.
    """

    power: float

    def __call__(self, y: AnyArray, p: Float64, w: Float64 | None) -> float:
        """Return the loss."""
        values = np.asarray(y, dtype=np.float64)
        q = np.maximum(p, max(SMALLEST_PREDICTION * _mean(values, w), np.finfo(np.float64).tiny))
        if self.power == 1:
            deviance = xlogy(values, values / q) - values + q
        elif self.power == 2:
            deviance = np.log(q / values) + values / q - 1
        else:
            a, b = 1 - self.power, 2 - self.power
            deviance = values**b / (a * b) - values * q**a / a + q**b / b
        return _mean(2 * deviance, w)


def one_minus_r2(y: AnyArray, p: Float64, w: Float64 | None) -> float:
    """Squared error over that of the mean; for constant targets 0 if perfect, else 1, as in scikit-learn."""
    total = _mean((y - _mean(y, w)) ** 2, w)
    error = mse(y, p, w)
    if total == 0:
        return 0.0 if error == 0 else 1.0
    return error / total
