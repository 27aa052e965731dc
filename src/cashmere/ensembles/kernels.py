"""Fast bounds of the loss of "ensemble plus one candidate", for all candidates at once.

In every step, ensemble selection needs the loss of ``(total + p_c) / step`` for each candidate c. A kernel keeps only
the part of each prediction that its loss needs (its *column*) and returns a lower and an upper bound per candidate,
in units of the metric. The bounds are tight (rounding only), so `cashmere.ensembles.selection` calls the metric
itself only for the few candidates that can still be the best.

Notation (shapes)
-----------------
n rows, C classes, B candidates of a block, w row weights that sum to one ``(n,)``;
total ``(n, C)`` or ``(n,)``: sum of the predictions chosen so far, float64; step: their number plus one;
block ``(B, width)``: columns of B candidates, in the type of the predictions. Sums are computed in float64, block by
block, so that temporaries stay within the processor's cache.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from cashmere.base.arrays import AnyArray, Float64, FloatArray
from cashmere.records.loss import Loss

Scorer = Callable[[AnyArray], tuple[Float64, Float64]]
"""Takes a block ``(B, width)``, returns lower and upper bounds, each ``(B,)``."""

RELATIVE_ROUNDING = 1e-11
"""Allowance for the order of float64 summation over up to some millions of rows."""

MAX_DISTINCT_WEIGHTS = 16
"""Up to this many distinct row weights, errors are counted per weight: equal weights, balanced classes."""

_DEFAULT_CLIP = 1e-7
"""Smallest probability of a log loss; custom ones may not tell it."""

_TINY = float(np.finfo(np.float64).tiny)

_PINBALL = re.compile(r"pinball(@(?P<level>\d(\.\d+)?(e-\d+)?))?")


class Kernel(ABC):
    """Bounds for one loss on fixed targets.

    Attributes
    ----------
    exact : bool
        Whether candidates with equal lower and upper bounds have equal losses: the metric is then called once for all.
    """

    exact = False

    @abstractmethod
    def column(self, prediction: FloatArray) -> AnyArray:
        """Return the part of a prediction to keep, one-dimensional."""

    @abstractmethod
    def scorer(self, total: Float64, step: int) -> Scorer:
        """Return the function that bounds the losses of a block when added to `total`."""


class LogLoss(Kernel):
    """Mean negative log of the averaged probability of the true class, clipped from below."""

    def __init__(self, y: NDArray[np.intp], n_classes: int, weight: Float64 | None, clip: float) -> None:
        self._flat = np.arange(len(y)) * n_classes + y
        self._weight, self._clip = weight, clip
        self._smallest = 0.0
        # A product of probabilities needs one logarithm instead of many; 2**-1000 is still a normal number.
        self._halvings = 0 if weight is not None or clip <= 0 else int(np.log2(max(1.0, 1000 / -np.log2(clip))))
        self._halvings = min(self._halvings, 4)

    def column(self, prediction: FloatArray) -> AnyArray:
        """Probability of the true class, ``(n,)``."""
        column = np.ascontiguousarray(prediction).reshape(-1).take(self._flat)
        self._smallest = min(self._smallest, float(column.min(initial=0.0)))
        return column

    def scorer(self, total: Float64, step: int) -> Scorer:
        """Bounds, see `Kernel`."""
        offset = total.reshape(-1).take(self._flat)
        floor = step * self._clip
        # Clipping costs more than adding; only rows without mass so far can need it.
        low = np.flatnonzero(offset + self._smallest < floor)

        def score(block: AnyArray) -> tuple[Float64, Float64]:
            sums = np.add(block, offset, dtype=np.float64)
            if len(low) == sums.shape[1]:
                np.maximum(sums, floor, out=sums)
            elif len(low):
                sums[:, low] = np.maximum(sums[:, low], floor)
            n = width = sums.shape[1]
            for _ in range(self._halvings):
                half = width // 2
                sums[:, :half] *= sums[:, width - half : width]
                width -= half
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(sums[:, :width])
            # The division of the sums by `step` is made here, once: log(s / step) = log(s) - log(step).
            loss = np.log(step) - (logs.sum(axis=1) / n if self._weight is None else logs @ self._weight)
            # Without clipping a loss may be infinite, and inf - inf is not a number.
            slack = RELATIVE_ROUNDING * (1 + np.log(step) + np.where(np.isfinite(loss), np.abs(loss), 0))
            return loss - slack, loss + slack

        return score


class ErrorRate(Kernel):
    """Share of rows whose largest averaged probability is not the true class (ties: the lowest class).

    The column holds the margins ``p_true - p_j`` to every other class, class after class. A margin within rounding of
    zero is undecided: it counts as an error in the upper bound only.
    """

    def __init__(self, y: NDArray[np.intp], n_classes: int, weight: Float64) -> None:
        # Rows of equal weight side by side: counting booleans is many times faster than weighing them.
        order = np.argsort(weight, kind="stable")
        y, self._weight = y[order], weight[order]
        self._starts = np.flatnonzero(np.diff(self._weight, prepend=-1.0)).tolist()
        self.exact = len(self._starts) <= MAX_DISTINCT_WEIGHTS
        self._flat = order * n_classes + y
        # Row j of the table holds, for each row, the j-th of the classes that are not the true one.
        others = np.arange(n_classes - 1)[:, None]
        self._others = order * n_classes + others + (others >= y)
        self._n = len(y)
        self._rounding = 0.0

    def column(self, prediction: FloatArray) -> AnyArray:
        """Margins, ``((C - 1) * n,)``."""
        self._rounding = max(self._rounding, 4 * float(np.finfo(prediction.dtype).eps * np.abs(prediction).max()))
        return self._margins(prediction)

    def scorer(self, total: Float64, step: int) -> Scorer:
        """Bounds, see `Kernel`."""
        offset = -self._margins(total)
        undecided = self._rounding * (step + 1)

        def score(block: AnyArray) -> tuple[Float64, Float64]:
            surely = offset.astype(block.dtype) + block.dtype.type(undecided)
            maybe = offset.astype(block.dtype) - block.dtype.type(undecided)
            return self._errors(block, maybe), self._errors(block, surely)

        return score

    def _margins(self, prediction: FloatArray) -> AnyArray:
        flat: AnyArray = np.ascontiguousarray(prediction).reshape(-1)
        return (flat.take(self._flat) - flat.take(self._others)).reshape(-1)

    def _errors(self, block: AnyArray, threshold: AnyArray) -> Float64:
        above = block > threshold
        right = above.reshape(len(block), -1, self._n)
        correct = right[:, 0]
        for j in range(1, right.shape[1]):
            correct = correct & right[:, j]
        if not self.exact:
            return 1 - correct.astype(np.float64) @ self._weight
        error = np.ones(len(block))
        for start, end in zip(self._starts, [*self._starts[1:], self._n], strict=True):
            # One call per candidate: much faster than count_nonzero along an axis.
            error -= self._weight[start] * np.array([np.count_nonzero(row[start:end]) for row in correct])
        return error


class SquaredError(Kernel):
    """Mean squared error, its root, its share of the variance (1 - R2), or the Brier score.

    The residual of the sum is updated by each choice, so that a step is one pass over the columns. Summing squares
    directly costs as much as the inner products of the expanded square and does not cancel.

    Attributes
    ----------
    column_rounding : float
        Largest error of a column's values; 0 for unchanged predictions.
    """

    def __init__(self, y: Float64, weight: Float64, *, transform: Callable[[Float64], Float64] | None = None) -> None:
        self._y, self._weight, self._transform = y.reshape(-1), weight, transform
        self._uniform = bool(np.all(weight == weight[0]))
        self._size = float(np.abs(y).max())
        self.column_rounding = 0.0

    def column(self, prediction: FloatArray) -> AnyArray:
        """All values, ``(n * C,)`` or ``(n,)``."""
        return np.asarray(prediction).reshape(-1)

    def scorer(self, total: Float64, step: int) -> Scorer:
        """Bounds, see `Kernel`."""
        offset = total.reshape(-1) - step * self._y

        def score(block: AnyArray) -> tuple[Float64, Float64]:
            residual = np.add(block, offset, dtype=np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                if self._uniform:
                    loss = np.einsum("ij,ij->i", residual, residual) * self._weight[0]
                else:
                    np.square(residual, out=residual)
                    loss = residual @ self._weight
                loss /= step**2
                # Rounding of a residual is relative to the target's size, which may be far above the residual.
                rounding = 1e-15 * (self._size + np.sqrt(loss)) + self.column_rounding / step
                slack = RELATIVE_ROUNDING * loss + rounding * (2 * np.sqrt(loss) + rounding)
                lower, upper = np.maximum(loss - slack, 0), loss + slack
                if self._transform is not None:
                    lower, upper = self._transform(lower), self._transform(upper)
            return lower, upper

        return score


class TwoClassBrier(Kernel):
    """Brier score of two classes, halved, from the difference of the two probabilities alone.

    With residuals r_0, r_1 of the classes, ``r_0**2 + r_1**2 = ((r_1 - r_0)**2 + (r_1 + r_0)**2) / 2``, and the second
    term is the deviation of the row's sum from one: rounding, which widens the bounds.
    """

    def __init__(self, y: NDArray[np.intp], weight: Float64) -> None:
        self._difference = SquaredError((2 * y - 1).astype(np.float64), weight / 4)
        self._deviation = 0.0

    def column(self, prediction: FloatArray) -> AnyArray:
        """Difference of the probabilities, ``(n,)``."""
        first, second = prediction[:, 0], prediction[:, 1]
        self._deviation = max(self._deviation, float(np.abs(first + second - 1).max()))
        self._difference.column_rounding = max(self._difference.column_rounding, float(np.finfo(prediction.dtype).eps))
        return np.asarray(second - first)

    def scorer(self, total: Float64, step: int) -> Scorer:
        """Bounds, see `Kernel`."""
        difference = self._difference.scorer(total[:, 1] - total[:, 0], step)

        def score(block: AnyArray) -> tuple[Float64, Float64]:
            lower, upper = difference(block)
            # A quarter of the square would do; the measured deviation is itself rounded.
            return lower, upper + self._deviation**2 + 1e-15

        return score


class AbsoluteError(Kernel):
    """Mean absolute error, or with weights that do not sum to one the mean absolute percentage error."""

    def __init__(self, y: Float64, weight: Float64 | None) -> None:
        self._y, self._weight = y, weight
        self._size = float(np.abs(y).max()) * (1.0 if weight is None else float(weight.sum()))

    def column(self, prediction: FloatArray) -> AnyArray:
        """Unchanged values, ``(n,)``."""
        return np.asarray(prediction).reshape(-1)

    def scorer(self, total: Float64, step: int) -> Scorer:
        """Bounds, see `Kernel`."""
        offset = total - step * self._y

        def score(block: AnyArray) -> tuple[Float64, Float64]:
            residual = np.add(block, offset, dtype=np.float64)
            self._make_losses(residual)
            with np.errstate(over="ignore", invalid="ignore"):
                loss = (residual.mean(axis=1) if self._weight is None else residual @ self._weight) / step
                slack = RELATIVE_ROUNDING * loss + 1e-15 * self._size
            return loss - slack, loss + slack

        return score

    def _make_losses(self, residual: Float64) -> None:
        """Replace the differences between prediction and target by their losses, in place."""
        np.abs(residual, out=residual)


class QuantileLoss(AbsoluteError):  # noqa: N818 - no exception
    """Mean of ``level`` times the error where the target is larger, ``1 - level`` times where it is smaller."""

    def __init__(self, y: Float64, weight: Float64 | None, level: float) -> None:
        super().__init__(y, weight)
        self._level = level

    def _make_losses(self, residual: Float64) -> None:
        np.maximum((1 - self._level) * residual, -self._level * residual, out=residual)


class Deviance(Kernel):
    """Mean Tweedie deviance of a power p in [1, 2]; predictions are clipped from below.

    Of its terms, those that depend on the prediction q: 2 (q - y log q) for Poisson (p = 1), 2 (log q + y / q) for
    gamma (2), 2 (q^(2-p) / (2-p) - y q^(1-p) / (1-p)) between them.
    """

    def __init__(self, y: Float64, weight: Float64, power: float, floor: float) -> None:
        self._y, self._weight, self._power, self._floor = y, weight, power, floor
        a, b = 1 - power, 2 - power
        if power == 1:
            rest = xlogy(y, y) - y
        elif power == 2:
            rest = -np.log(y) - 1
        else:
            rest = y**b / (a * b)
        self._rest, self._size = 2 * float(weight @ rest), 2 * float(weight @ np.abs(rest))

    def column(self, prediction: FloatArray) -> AnyArray:
        """Unchanged values, ``(n,)``."""
        return np.asarray(prediction).reshape(-1)

    def scorer(self, total: Float64, step: int) -> Scorer:
        """Bounds, see `Kernel`."""

        def score(block: AnyArray) -> tuple[Float64, Float64]:
            q = np.add(block, total, dtype=np.float64)
            q /= step
            np.maximum(q, self._floor, out=q)
            with np.errstate(over="ignore", invalid="ignore"):
                own, of_target = self._terms(q)
                of_target *= self._y
                loss = 2 * ((own + of_target) @ self._weight) + self._rest
                size = 2 * (np.abs(own) @ self._weight + np.abs(of_target) @ self._weight) + self._size
                slack = RELATIVE_ROUNDING * size
            return loss - slack, loss + slack

        return score

    def _terms(self, q: Float64) -> tuple[Float64, Float64]:
        """Return the term without the target, and the factor of the target in the other."""
        if self._power == 1:
            return q, -np.log(q)
        if self._power == 2:
            return np.log(q), 1 / q
        a, b = 1 - self._power, 2 - self._power
        return q**b / b, q**a / -a


class LogError(Kernel):
    """Root mean squared difference of log(1 + value); predictions below 0 count as 0."""

    def __init__(self, y: Float64, weight: Float64) -> None:
        self._logarithms, self._weight = np.log1p(y), weight
        self._size = 1.0 + float(self._logarithms.max()) ** 2

    def column(self, prediction: FloatArray) -> AnyArray:
        """Unchanged values, ``(n,)``."""
        return np.asarray(prediction).reshape(-1)

    def scorer(self, total: Float64, step: int) -> Scorer:
        """Bounds, see `Kernel`."""

        def score(block: AnyArray) -> tuple[Float64, Float64]:
            errors = np.add(block, total, dtype=np.float64)
            errors /= step
            np.log1p(np.maximum(errors, 0.0, out=errors), out=errors)
            errors -= self._logarithms
            loss = np.square(errors, out=errors) @ self._weight
            slack = RELATIVE_ROUNDING * loss + 1e-15 * self._size
            return np.sqrt(np.maximum(loss - slack, 0.0)), np.sqrt(loss + slack)

        return score


class AreaUnderCurve(Kernel):
    """One minus the area under the ROC curve of two classes, by sorting; exact, ties count one half."""

    exact = True

    def __init__(self, y: NDArray[np.intp]) -> None:
        self._label = y.astype(np.uint64)
        self._pairs = float(np.count_nonzero(y == 1)) * float(np.count_nonzero(y == 0))

    def column(self, prediction: FloatArray) -> AnyArray:
        """Probability of the second class, ``(n,)``."""
        return np.ascontiguousarray(prediction[:, 1])

    def scorer(self, total: Float64, step: int) -> Scorer:
        """Bounds, see `Kernel`."""
        offset = total[:, 1]

        def score(block: AnyArray) -> tuple[Float64, Float64]:
            # The same operations as in the metric's input, so that ties here are ties there. + 0.0 removes -0.0.
            averages = np.add(block, offset, dtype=np.float64) / step + 0.0
            if averages.min() < 0 or averages.max() >= 2:
                return np.full(len(block), -np.inf), np.full(len(block), np.inf)
            # Below 2.0 the top bit pair of a float is zero and bits order as values: there is room for the label.
            keys = (averages.view(np.uint64) << np.uint64(1)) | self._label
            keys.sort(axis=1)
            loss = 1 - np.array([_ordered_pairs(row) for row in keys]) / self._pairs
            return loss, loss

        return score


def _ordered_pairs(keys: NDArray[np.uint64]) -> float:
    """Count pairs with the positive above the negative, from sorted keys ``value << 1 | label``; ties count half."""
    positions = np.flatnonzero(keys & np.uint64(1))
    # The i-th positive has (its position - i) negatives before it, tied ones included: label 0 sorts first.
    pairs = float(positions.sum() - len(positions) * (len(positions) - 1) / 2)
    values = keys >> np.uint64(1)
    differs = values[1:] != values[:-1]
    if not differs.all():
        starts = np.concatenate([[0], np.flatnonzero(differs) + 1])
        positive = np.add.reduceat((keys & np.uint64(1)).astype(np.int64), starts)
        size = np.diff(starts, append=len(keys))
        pairs -= 0.5 * float(positive @ (size - positive))
    return pairs


def make_kernel(metric: Loss, y: AnyArray, shape: tuple[int, ...], weight: Float64 | None) -> Kernel | None:
    """Return the kernel for a metric's name and predictions of this shape, or None if there is none.

    Parameters
    ----------
    metric : Loss
        The metric; its name may include a level, as in ``"pinball@0.9"``.
    y : (n_rows,) array
        Targets: class codes (whole numbers) or values.
    shape : tuple of int
        ``(n_rows, n_classes)`` or ``(n_rows,)``.
    weight : (n_rows,) array or None
        Row weights, any positive sum.
    """
    name = metric.name
    share = None if weight is None else weight / weight.sum()
    uniform = np.full(len(y), 1 / len(y)) if share is None else share
    if len(shape) == 1:
        values = np.asarray(y, dtype=np.float64)
        if name == "mae":
            return AbsoluteError(values, share)
        if pinball := _PINBALL.fullmatch(name):
            return QuantileLoss(values, share, float(pinball["level"] or 0.5))
        if name == "mape":
            return AbsoluteError(values, uniform / np.maximum(np.abs(values), np.finfo(np.float64).eps))
        if name == "r2":
            variance = float(uniform @ (values - uniform @ values) ** 2)
            return SquaredError(values, uniform, transform=lambda mse: mse / variance) if variance > 0 else None
        power, mean = getattr(metric, "power", None), float(uniform @ values)
        if power is not None and mean > 0 and values.min() >= 0 and (power < 2 or values.min() > 0):
            return Deviance(values, uniform, power, max(float(getattr(metric, "clip", 0.0)) * mean, _TINY))
        if name == "rmsle" and values.min() >= 0:
            return LogError(values, uniform)
        if name in ("mse", "rmse"):
            return SquaredError(values, uniform, transform=np.sqrt if name == "rmse" else None)
        return None

    n_classes = shape[1]
    codes = y.astype(np.intp)
    counts = np.bincount(codes, weights=uniform, minlength=n_classes)
    if name == "log_loss":
        return LogLoss(codes, n_classes, share, float(getattr(metric, "clip", _DEFAULT_CLIP)))
    if name == "accuracy":
        return ErrorRate(codes, n_classes, uniform)
    if name == "balanced_accuracy" and np.all(counts[np.unique(codes)] > 0):
        # Mean recall is accuracy with rows weighted by the inverse frequency of their class.
        balanced = uniform / counts[codes]
        return ErrorRate(codes, n_classes, balanced / balanced.sum())
    if name == "brier":
        # Halved for two classes, as in scikit-learn.
        if n_classes == 2:
            return TwoClassBrier(codes, uniform)
        return SquaredError(np.eye(n_classes)[codes], np.repeat(uniform, n_classes))
    if name == "roc_auc" and n_classes == 2 and weight is None and len(np.unique(codes)) == 2:
        return AreaUnderCurve(codes)
    return None
