"""Greedy ensemble selection with replacement (Caruana et al. 2004; DivBO, Algorithm 2).

Starting from an empty ensemble, add `size` times the candidate that gives the lowest loss of the averaged predictions;
candidates may be added again, so that multiplicity becomes weight. There is no early stop: the loss of a later step may
rise above that of an earlier one, and all steps count. The first step always takes the best single candidate.

Every decision uses values of the metric itself, in float64. The kernels of `cashmere.ensembles.kernels` only rule out,
within rounding, the candidates that cannot be the best, so the result does not depend on whether there is a kernel.

References
----------
Caruana, Niculescu-Mizil, Crew, Ksikes (2004), Ensemble selection from libraries of models, ICML.
Shen et al. (2022), DivBO: Diversity-aware CASH for ensemble learning, NeurIPS, Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cashmere.base.arrays import AnyArray, BoolArray, Float64, FloatArray, IntArray
from cashmere.ensembles.kernels import Kernel, Scorer, make_kernel
from cashmere.ensembles.limits import Allowed
from cashmere.ensembles.stopping import Stop, go_on_unless, never
from cashmere.exceptions import ArrayError, InvalidParameterError, ShapeError
from cashmere.records.loss import Loss

TieRule = Literal["first", "random", "secondary"]
"""How to choose among candidates whose losses differ by at most `TIE_TOLERANCE`.

``"first"``: the one with the lowest position. ``"random"``: any of them with equal probability.
``"secondary"``: the lowest Brier score (mean squared error in regression) of the ensemble, then the lowest loss of the
candidate alone, then the lowest position; sensible for error rates, where "first" prefers old candidates on every
plateau.
"""

TIE_TOLERANCE = 1e-12
ROW_SUM_TOLERANCE = 5e-5
"""Metrics rescale rows whose sum is more than 1e-4 from one; an average is no further off than its worst row."""

BLOCK_ELEMENTS = 65_536
"""Elements of a block of candidates; its float64 temporaries (512 KiB) stay in the second-level cache."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SelectionResult:
    """The steps of a greedy selection and the resulting weights.

    Attributes
    ----------
    order : (size,) array
        Position of the candidate added in each step.
    trajectory : (size,) array
        Loss of the ensemble after each step.
    weights : (n_candidates,) array
        Multiplicity divided by `size`; sums to one.
    """

    order: IntArray
    trajectory: Float64
    weights: Float64

    @property
    def members(self) -> IntArray:
        """Positions of the distinct candidates chosen, ascending."""
        return np.unique(self.order)


def select_ensemble(
    predictions: Sequence[FloatArray] | FloatArray,
    y: AnyArray,
    metric: Loss,
    *,
    size: int = 25,
    weight: FloatArray | None = None,
    tie: TieRule = "first",
    rng: np.random.Generator | None = None,
) -> SelectionResult:
    """Choose an ensemble by greedy forward selection with replacement.

    Parameters
    ----------
    predictions : sequence of (n_rows, n_classes) or (n_rows,) arrays, or one stacked array
        Predictions of each candidate for the same rows; memory-mapped arrays are read once. A candidate with NaN or
        infinite values is never chosen.
    y : (n_rows,) array
        Class codes or values.
    metric : Loss
        The metric. Kernels exist for the names log_loss, accuracy, balanced_accuracy, brier, roc_auc (two classes,
        no weights), mse, rmse, rmsle, mae, mape and r2; others are computed candidate by candidate.
    size : int
        Steps, repetitions included; 25 in DivBO.
    weight : (n_rows,) array, optional
        Row weights.
    tie : {"first", "random", "secondary"}
        See `TieRule`.
    rng : numpy.random.Generator, optional
        Used for random ties only; seeded with 0 if not given. One draw per call.

    Returns
    -------
    SelectionResult

    Examples
    --------
    >>> import numpy as np
    >>> class Squared:
    ...     name = "mse"
    ...     def loss(self, y, predictions, weight=None):
    ...         return float(np.average((predictions - y) ** 2, weights=weight))
    >>> y = np.array([0.0, 1.0, 2.0])
    >>> select_ensemble([y + 1, y - 1, y + 4], y, Squared(), size=4).weights
    array([0.5, 0.5, 0. ])
    """
    selection = IncrementalSelection(y, metric, size=size, weight=weight, tie=tie)
    return selection.select(range(len(predictions)), predictions, rng=rng)


def as_targets(y: AnyArray, n_axes: int) -> AnyArray:
    """Return class codes as integers if predictions have two axes, else values: metrics use codes as positions."""
    return np.asarray(y).astype(np.intp if n_axes == 2 else np.float64, copy=False)


def choose_rows(y: AnyArray, limit: int, rng: np.random.Generator) -> IntArray:
    """Choose rows to select on, spread evenly over the sorted targets.

    Parameters
    ----------
    y : (n_rows,) array
        Class codes or values; classes keep their shares up to one row, values their distribution.
    limit : int
        Number of rows to choose; all rows are returned if there are no more.
    rng : numpy.random.Generator
        Chooses among rows with equal targets.

    Returns
    -------
    (min(limit, n_rows),) array
        Row numbers, ascending.
    """
    if len(y) <= limit:
        return np.arange(len(y))
    by_target = np.lexsort((rng.random(len(y)), y))
    middles = ((np.arange(limit) + 0.5) * len(y) / limit).astype(np.int64)
    return np.sort(by_target[middles]).astype(np.int64)


class IncrementalSelection:
    """Select ensembles from a growing set of candidates, by their predictions on fixed rows.

    Between calls it keeps what the kernel needs of each candidate, and the last choice: as long as a new candidate
    would not have been chosen, earlier steps are kept. Both are caches: `clear` may be called at any time, and every
    result equals that of `select_ensemble` on the same candidates.

    Parameters
    ----------
    y : (n_rows,) array
        Class codes or values.
    metric : Loss
        The metric, see `select_ensemble`.
    size, weight, tie
        As in `select_ensemble`.
    cache_mib : float
        Limit of the cached columns; further candidates are read again in each step, which is slower but bounded.
    """

    def __init__(
        self,
        y: AnyArray,
        metric: Loss,
        *,
        size: int = 25,
        weight: FloatArray | None = None,
        tie: TieRule = "first",
        cache_mib: float = 1024.0,
    ) -> None:
        if size < 1:
            raise InvalidParameterError("size", size, "at least 1")
        if tie not in ("first", "random", "secondary"):
            raise InvalidParameterError("tie", tie, "'first', 'random' or 'secondary'")
        if weight is not None and np.shape(weight) != (len(y),):
            raise ShapeError("weight", np.shape(weight), (len(y),))
        self._y, self._metric, self._size, self._tie = np.asarray(y), metric, size, tie
        self._weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        self._cache_bytes = cache_mib * 2**20
        self.clear()

    def clear(self) -> None:
        """Clear the caches; only the time of the next call changes."""
        self._pool: _Pool | None = None
        self._numbers: tuple[int, ...] = ()
        self._order: list[int] = []
        self._minima: list[float] = []
        self._trajectory: list[float] = []

    def select(
        self,
        numbers: Sequence[int],
        predictions: Sequence[FloatArray] | FloatArray,
        *,
        rng: np.random.Generator | None = None,
        allowed: Allowed | None = None,
        stop: Stop = never,
    ) -> SelectionResult:
        """Choose an ensemble, see `select_ensemble`.

        Parameters
        ----------
        numbers : sequence of int
            A distinct key for each candidate, such as its trial number. The predictions of a key must not change
            between calls.
        predictions : sequence of arrays
            Predictions in the same order.
        rng : numpy.random.Generator, optional
            For random ties.
        allowed : callable, optional
            Which candidates may be chosen next, see `allowed_within`; by default all of them.
        stop : Stop
            Whether to give up.

        Returns
        -------
        SelectionResult
            `order` and `weights` refer to positions in `numbers`.

        Raises
        ------
        ArrayError
            If shapes differ, or no candidate is finite and allowed.
        StoppedError
            If `stop` says so. What has been read of the candidates is kept.
        """
        numbers = tuple(numbers)
        self._check(numbers, predictions)
        seed = 0 if rng is None else int(rng.integers(2**63))
        if self._pool is None:
            self._y = as_targets(self._y, predictions[0].ndim)
            kernel = make_kernel(self._metric, self._y, predictions[0].shape, self._weight)
            self._pool = _Pool(kernel, self._cache_bytes)
        try:
            return self._run(self._pool, numbers, predictions, np.random.default_rng(seed), allowed, stop)
        except _KernelMismatchError:
            # A custom metric with a kernel's name, or probabilities that the metric rescales: always call the metric.
            self.clear()
            self._pool = _Pool(None, self._cache_bytes)
            return self._run(self._pool, numbers, predictions, np.random.default_rng(seed), allowed, stop)

    def _run(
        self,
        pool: _Pool,
        numbers: tuple[int, ...],
        predictions: Sequence[FloatArray] | FloatArray,
        rng: np.random.Generator,
        allowed: Allowed | None,
        stop: Stop,
    ) -> SelectionResult:
        finite = pool.add(numbers, predictions, stop)
        if not finite.any():
            raise ArrayError(
                "predictions",
                "All candidates predict NaN or infinity somewhere; at least one must have finite predictions only.",
            )
        settled = self._settled_steps(numbers, predictions, finite, stop) if allowed is None else 0
        order, minima = self._order[:settled], self._minima[:settled]
        trajectory = self._trajectory[:settled]
        total = np.zeros(predictions[0].shape)
        for chosen in order:
            total += predictions[chosen]
        for step in range(settled + 1, self._size + 1):
            possible = finite if allowed is None else finite & allowed(order)
            if not possible.any():
                raise ArrayError("predictions", "No candidate with finite predictions is allowed; allow one at least.")
            rivals, losses = self._rivals(pool, numbers, predictions, possible, total, step, stop)
            minimum = float(losses.min())
            ties = rivals[losses <= minimum + TIE_TOLERANCE]
            chosen = self._break_tie(ties, predictions, total, step, rng)
            order.append(chosen)
            minima.append(minimum)
            trajectory.append(float(losses[rivals == chosen][0]))
            total += predictions[chosen]

        if allowed is None:
            self._numbers, self._order, self._minima, self._trajectory = numbers, order, minima, trajectory
        return SelectionResult(
            order=np.array(order, dtype=np.int64),
            trajectory=np.array(trajectory),
            weights=np.bincount(order, minlength=len(numbers)) / self._size,
        )

    def _rivals(
        self,
        pool: _Pool,
        numbers: tuple[int, ...],
        predictions: Sequence[FloatArray] | FloatArray,
        possible: BoolArray,
        total: Float64,
        step: int,
        stop: Stop,
    ) -> tuple[IntArray, Float64]:
        """Return the positions that can have the lowest loss, and their losses."""
        lower, upper = pool.bounds(numbers, predictions, total, step)
        lower = np.where(possible, lower, np.inf)
        upper = np.where(possible, upper, np.inf)
        rivals = np.flatnonzero(possible & (lower <= upper.min() + 2 * TIE_TOLERANCE)).astype(np.int64)
        known: dict[float, float] = {}
        losses = np.empty(len(rivals))
        for i, candidate in enumerate(rivals.tolist()):
            go_on_unless(stop)
            bound = float(lower[candidate]) if pool.exact and lower[candidate] == upper[candidate] else None
            if bound is not None and bound in known:
                losses[i] = known[bound]
                continue
            losses[i] = self._evaluate(total, predictions[candidate], step)
            if bound is not None:
                known[bound] = losses[i]
            tolerance = 1e-9 * (1 + abs(losses[i]))
            if lower[candidate] > losses[i] + tolerance or losses[i] > upper[candidate] + tolerance:
                raise _KernelMismatchError
        return rivals, losses

    def _settled_steps(
        self,
        numbers: tuple[int, ...],
        predictions: Sequence[FloatArray] | FloatArray,
        finite: BoolArray,
        stop: Stop,
    ) -> int:
        """Count the leading steps of the last choice that the new candidates do not change."""
        known = len(self._numbers)
        new = [position for position in range(known, len(numbers)) if finite[position]]
        # Random ties would have to replay their draws; for many new candidates the kernel is faster.
        if not known or self._tie == "random" or numbers[:known] != self._numbers or len(new) > 4:
            return 0
        total = np.zeros(predictions[0].shape)
        for settled, (chosen, minimum) in enumerate(zip(self._order, self._minima, strict=True)):
            go_on_unless(stop)
            # A new candidate above the tie band changes neither the minimum nor the band, and so not the choice.
            losses = [self._evaluate(total, predictions[position], settled + 1) for position in new]
            if min(losses, default=np.inf) <= minimum + TIE_TOLERANCE:
                return settled
            total += predictions[chosen]
        return len(self._order)

    def _evaluate(self, total: Float64, prediction: FloatArray, step: int) -> float:
        """Return the loss of the average with one more prediction, infinite if it is NaN."""
        value = self._metric.loss(self._y, (total + prediction) / step, self._weight)
        return float("inf") if np.isnan(value) else float(value)

    def _break_tie(
        self,
        ties: IntArray,
        predictions: Sequence[FloatArray] | FloatArray,
        total: Float64,
        step: int,
        rng: np.random.Generator,
    ) -> int:
        if len(ties) == 1 or self._tie == "first":
            return int(ties[0])
        if self._tie == "random":
            return int(rng.choice(ties))
        squared = self._squared_errors(ties, predictions, total, step)
        ties = ties[squared <= squared.min() + TIE_TOLERANCE]
        if len(ties) > 1:
            own = np.array([self._evaluate(np.zeros_like(total), predictions[i], 1) for i in ties])
            ties = ties[own <= own.min() + TIE_TOLERANCE]
        return int(ties[0])

    def _squared_errors(
        self, ties: IntArray, predictions: Sequence[FloatArray] | FloatArray, total: Float64, step: int
    ) -> Float64:
        """Return the Brier score over all classes, or the mean squared error, of the average with each candidate.

        With the residual r of the sum so far, |r + p|**2 is |r|**2 + (2 r + p) p: one product per candidate.
        """
        residual = total.copy()
        if total.ndim == 1:
            residual -= step * self._y
        else:
            residual[np.arange(len(total)), self._y] -= step
        twice = 2 * residual
        if self._weight is None:
            constant, mass = np.vdot(residual, residual), float(len(total))
            products = [np.vdot(twice + predictions[i], predictions[i]) for i in ties]
        else:
            weight, mass = self._weight.reshape(-1, *[1] * (total.ndim - 1)), float(self._weight.sum())
            constant = np.vdot(weight * residual, residual)
            products = [np.vdot(weight * (twice + predictions[i]), predictions[i]) for i in ties]
        squared: Float64 = np.array([constant + product for product in products], dtype=np.float64) / (step**2 * mass)
        return squared

    def _check(self, numbers: tuple[int, ...], predictions: Sequence[FloatArray] | FloatArray) -> None:
        if not numbers or len(numbers) != len(predictions) or len(set(numbers)) != len(numbers):
            raise ArrayError(
                "numbers",
                f"numbers must hold a different key for each of the {len(predictions)} candidates, and there must be "
                f"at least one candidate; got {numbers}.",
            )
        shape = predictions[0].shape
        if len(shape) not in (1, 2) or shape[0] != len(self._y):
            n = len(self._y)
            raise ShapeError("predictions", shape, f"({n},) or ({n}, n_classes)")
        for prediction in predictions:
            if prediction.shape != shape:
                raise ShapeError("predictions", prediction.shape, f"{shape}, like that of the first candidate")


class _KernelMismatchError(Exception):
    """The metric disagrees with the bounds of the kernel of its name, or may do so for these predictions."""


def are_probabilities(prediction: FloatArray) -> bool:
    """Return whether rows need no repair: metrics clip negative values and rescale rows that do not sum to one."""
    sums = prediction @ np.ones(prediction.shape[1], dtype=prediction.dtype)
    return bool(prediction.min() >= 0 and np.abs(sums - 1).max() < ROW_SUM_TOLERANCE)


class _Pool:
    """Columns of the candidates seen so far, in blocks that fit the processor's cache."""

    def __init__(self, kernel: Kernel | None, cache_bytes: float) -> None:
        self._kernel, self._cache_bytes = kernel, cache_bytes
        self._finite: dict[int, bool] = {}
        self._slots: dict[int, int] = {}
        self._blocks: list[AnyArray] = []
        self._used = 0
        self.exact = kernel is not None and kernel.exact

    def add(self, numbers: Sequence[int], predictions: Sequence[FloatArray] | FloatArray, stop: Stop) -> BoolArray:
        """Keep the columns of new candidates; return which candidates are finite."""
        for number, prediction in zip(numbers, predictions, strict=True):
            if number not in self._finite:
                go_on_unless(stop)
                finite = bool(np.isfinite(prediction).all())
                self._finite[number] = finite
                if finite and self._kernel is not None:
                    if prediction.ndim == 2 and not are_probabilities(prediction):
                        raise _KernelMismatchError
                    self._keep(number, self._kernel.column(prediction))
        return np.array([self._finite[number] for number in numbers])

    def bounds(
        self,
        numbers: Sequence[int],
        predictions: Sequence[FloatArray] | FloatArray,
        total: Float64,
        step: int,
    ) -> tuple[Float64, Float64]:
        """Return lower and upper bounds of the loss for each candidate, each ``(n_candidates,)``."""
        lower, upper = np.full(len(numbers), -np.inf), np.full(len(numbers), np.inf)
        if self._kernel is None:
            return lower, upper
        score = self._kernel.scorer(total, step)
        kept_lower, kept_upper = self._bounds_of_kept(score)
        for i, number in enumerate(numbers):
            slot = self._slots.get(number)
            if slot is not None:
                lower[i], upper[i] = kept_lower[slot], kept_upper[slot]
            elif self._finite[number]:
                low, high = score(self._kernel.column(predictions[i])[None])
                lower[i], upper[i] = low[0], high[0]
        # Overflow or negative probabilities: nothing is known, the metric decides.
        return np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)

    def _bounds_of_kept(self, score: Scorer) -> tuple[Float64, Float64]:
        pairs = [score(block) for block in self._filled()]
        if not pairs:
            return np.empty(0), np.empty(0)
        return np.concatenate([low for low, _ in pairs]), np.concatenate([high for _, high in pairs])

    def _filled(self) -> Iterator[Float64]:
        left = self._used
        for block in self._blocks:
            yield block[:left]
            left -= len(block)

    def _keep(self, number: int, column: FloatArray) -> None:
        height = max(1, BLOCK_ELEMENTS // max(1, len(column)))
        if self._used == height * len(self._blocks):
            if (len(self._blocks) + 1) * height * column.nbytes > self._cache_bytes:
                return
            # All blocks have the type of the first column; other candidates are read again in each step.
            self._blocks.append(np.empty((height, len(column)), dtype=column.dtype))
        block = self._blocks[self._used // height]
        if block.dtype != column.dtype:
            return
        block[self._used % height] = column
        self._slots[number] = self._used
        self._used += 1
