"""Decide which class to predict from class probabilities: tuned thresholds instead of the most probable class.

For a metric computed from labels, such as the geometric mean of the recalls, the most probable class is rarely the
best decision. The thresholds are chosen last, on the out-of-fold predictions of the finished ensemble.

Notation (shapes)
-----------------
p ``(n, C)``: class probabilities; y ``(n,)``: class codes; w ``(n,)``: row weights;
t ``(C,)``: thresholds, positive, sum to one. The class with the largest p_c / t_c is predicted: with equal thresholds
the most probable class, and with two classes the second where p_1 >= t_1.
Along one class c: the *rival* r is the best of the other classes, m = p_r / t_r; c wins where its *share*
p_c / (p_c + m) reaches a *cut*, t_c / (1 + t_c). With two classes and t_0 = 1 the share is p_1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, BoolArray, Float64, FloatArray, IntArray
from cashmere.data.fold import Fold
from cashmere.data.row_structure import RowStructure, is_in_time
from cashmere.data.structured_folds import structured_folds
from cashmere.ensembles.stopping import Stop, go_on_unless, never
from cashmere.exceptions import CashmereError
from cashmere.records.loss import Loss

_N_HALVINGS = 10
"""Each gives two choices. By average held-out losses on 27 KEEL tables, 5 are worse and 20 no better."""

_N_HALVINGS_OF_CALLED = 3
"""Halvings for a metric without a table, each of whose calls may take milliseconds."""

_LEAST_ROWS = 20
_RESOLUTION = 1e-7
"""Relative difference below which shares count as equal: float32 predictions resolve no more."""

_ROUNDING = 1e-12
_LEAST_SHARE = 1e-6  # a class may be missing in a half
_ROUNDS = 3
_PLACES = 50
"""Places to try in a round, of all classes together. More of them fit noise if there are more than two classes
(docs/benchmarks.md#metrics-of-classes); for two classes, a metric with a table tries all."""

_LEAST_PLACES = 6
"""Places to try for a class."""

_FromCounts = Callable[[Float64, Float64, Float64], Float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TunedThresholds:
    """The result of tuning thresholds.

    Attributes
    ----------
    thresholds : (n_classes,) array or None
        None if the most probable class is as good on unseen rows.
    gain : float or None
        How much tuned thresholds lower the loss on unseen rows, whether or not they are kept; None if it cannot be
        judged: fewer than 20 rows, a single class, or a metric that fails on half of the rows.
    """

    thresholds: Float64 | None
    gain: float | None


def decide(probabilities: FloatArray, thresholds: FloatArray | None) -> IntArray:
    """Return the codes of the predicted classes.

    Parameters
    ----------
    probabilities : (n_rows, n_classes) array
        Rows sum to one.
    thresholds : (n_classes,) or (n_rows, n_classes) array, or None
        Positive; None takes the most probable class, the lowest in a tie.

    Returns
    -------
    (n_rows,) int array

    Examples
    --------
    >>> decide(np.array([[0.8, 0.2], [0.6, 0.4]]), np.array([0.7, 0.3]))
    array([0, 1])
    """
    if thresholds is None:
        return np.asarray(probabilities.argmax(axis=1), dtype=np.int64)
    if probabilities.shape[1] == 2:  # the same comparison that users make with predict_proba(X)[:, 1]
        return np.asarray(probabilities[:, 1] >= thresholds[..., 1], dtype=np.int64)
    return np.asarray((probabilities / thresholds).argmax(axis=1), dtype=np.int64)


def as_certain(codes: IntArray, n_classes: int) -> Float64:
    """Return predicted classes as probabilities of zero and one, ``(n_rows, n_classes)``, as a `Loss` takes them."""
    certain: Float64 = np.eye(n_classes)[codes]
    return certain


def count_decisions(y: AnyArray, decided: AnyArray, positive: int) -> dict[str, float | None]:
    """Return how many rows of two classes are decided rightly and wrongly, and the rates of these.

    Parameters
    ----------
    y, decided : (n_rows,) array of int
        Codes of the true classes and of the predicted ones.
    positive : int
        Code of the positive class.

    Returns
    -------
    dict
        Whole numbers ``true_positives``, ``false_positives``, ``true_negatives`` and ``false_negatives``; ``recall``,
        ``specificity`` and ``precision``, None where they divide by zero.

    Examples
    --------
    >>> found = count_decisions(np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 1]), positive=1)
    >>> list(found.items())[:4]
    [('true_positives', 3), ('false_positives', 1), ('true_negatives', 1), ('false_negatives', 0)]
    >>> found["recall"], found["specificity"], found["precision"]
    (1.0, 0.5, 0.75)
    """
    is_positive, is_taken = y == positive, decided == positive
    hits, alarms = int(np.sum(is_positive & is_taken)), int(np.sum(~is_positive & is_taken))
    rest, misses = int(np.sum(~is_positive & ~is_taken)), int(np.sum(is_positive & ~is_taken))
    return {
        "true_positives": hits,
        "false_positives": alarms,
        "true_negatives": rest,
        "false_negatives": misses,
        "recall": _share(hits, misses),
        "specificity": _share(rest, alarms),
        "precision": _share(hits, alarms),
    }


def _share(right: int, wrong: int) -> float | None:
    return right / (right + wrong) if right + wrong else None


def tune_thresholds(
    probabilities: FloatArray,
    y: AnyArray,
    metric: Loss,
    *,
    weight: FloatArray | None = None,
    structure: RowStructure | None = None,
    rng: np.random.Generator,
    stop: Stop = never,
) -> TunedThresholds:
    """Choose thresholds, and keep them only if they help on unseen rows.

    The rows are cut into halves ten times (three for a metric without a table, which has to be called), evenly by
    class, and thresholds are chosen on each half. Their geometric mean does not hinge on single rows. To judge it, each
    row is decided by the mean of the choices made without it. Groups are in one half; in time, the rows are halved
    once, into the older and the newer, and only the newer are judged.

    Parameters
    ----------
    probabilities : (n_rows, n_classes) array
        Out-of-fold predictions of the ensemble.
    y : (n_rows,) array
        Class codes.
    metric : Loss
        A metric computed from labels, that is, from the largest probability of a row.
    weight : (n_rows,) array, optional
        Positive row weights.
    structure : RowStructure, optional
        Groups or moments of the rows.
    rng : numpy.random.Generator
        Draws the halves.
    stop : Stop
        Whether to give up.

    Raises
    ------
    StoppedError
        If `stop` says so.
    """
    p, y = _normalised(probabilities), np.asarray(y, dtype=np.int64)
    can_be_cut = structure is None or structure.most_folds > 0
    if len(y) < _LEAST_ROWS or len(np.unique(y)) < 2 or not can_be_cut:
        return TunedThresholds(thresholds=None, gain=None)
    total, unseen, is_judged = np.zeros(p.shape[1]), np.zeros(p.shape), np.zeros(len(y), dtype=bool)
    n_halvings = _N_HALVINGS if metric.name in _TABLES else _N_HALVINGS_OF_CALLED
    if is_in_time(structure):  # there is only one way to halve the rows
        n_halvings = 1
    try:
        for _ in range(n_halvings):
            for half in _halves(y, rng, structure):
                go_on_unless(stop)
                rows = half.train
                w = None if weight is None else weight[rows]
                logs = np.log(choose_thresholds(p[rows], y[rows], metric, weight=w))
                logs -= logs.mean()
                total += logs
                unseen[half.validation] += logs
                is_judged[half.validation] = True
        thresholds, w = _softmax(unseen / n_halvings), None if weight is None else weight[is_judged]
        before, after = (
            metric.loss(y[is_judged], as_certain(decide(p, t)[is_judged], p.shape[1]), w) for t in (None, thresholds)
        )
    except (CashmereError, ValueError):  # a custom metric may need what a half does not have
        return TunedThresholds(thresholds=None, gain=None)
    gain = float(before - after)
    if gain <= _ROUNDING:
        return TunedThresholds(thresholds=None, gain=gain)
    return TunedThresholds(thresholds=_softmax(total / (2 * n_halvings)), gain=gain)


def choose_thresholds(
    probabilities: FloatArray, y: AnyArray, metric: Loss, *, weight: FloatArray | None = None
) -> Float64:
    """Return the thresholds with the lowest loss on these rows.

    For two classes and a built-in metric, every threshold between two rows is tried, in O(n log n). Other metrics are
    called at about 50 thresholds: quantiles over all rows and over those of the class. With more classes, one threshold
    after the other is moved to the best place, in up to three rounds: about 50 places in all, at least six of a class.

    Parameters
    ----------
    probabilities : (n_rows, n_classes) array
        Rows with a positive sum; the classes are columns.
    y : (n_rows,) array
        Class codes.
    metric : Loss
        A metric computed from labels.
    weight : (n_rows,) array, optional
        Row weights.

    Returns
    -------
    (n_classes,) array
        Positive, summing to one; in the middle of the widest range of equally good ones. All equal if no others are
        better.
    """
    p, y = _normalised(probabilities), np.asarray(y, dtype=np.int64)
    n_classes = p.shape[1]
    judge = _Judge(p, y, metric, weight)
    best, least = np.zeros(n_classes), judge.loss(np.zeros(n_classes))
    if n_classes == 2:
        best, _ = judge.move(1, best, least)
        return _softmax(best)
    # Where several classes are never the most probable one, moving a single threshold from equal ones may gain nothing.
    shares = np.log(np.maximum(judge.support / judge.support.sum(), _LEAST_SHARE))
    if (loss := judge.loss(shares)) < least - _ROUNDING:
        best, least = shares, loss
    for _ in range(_ROUNDS):
        before = least
        for c in range(n_classes):
            best, least = judge.move(c, best, least)
        if least >= before - _ROUNDING:
            break
    return _softmax(best)


class _Judge:
    """Losses of decisions on fixed rows; only differences between log thresholds matter."""

    def __init__(self, p: Float64, y: IntArray, metric: Loss, weight: FloatArray | None) -> None:
        self._p, self._y, self._metric, self._weight = p, y, metric, weight
        self._n_classes = p.shape[1]
        self._w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        self.support = self._sums(y, self._w)
        known = (table for table in _TABLES.get(metric.name, ()) if self._is_loss(table))
        self._table = next(known, None)

    def _is_loss(self, table: _FromCounts) -> bool:
        """Return whether a table computes the metric: a custom one may bear a known name, and F1 be of either class."""
        for codes in (decide(self._p, None), np.zeros(len(self._y), dtype=np.int64)):
            hits, predicted = self._counts(codes)
            if abs(table(hits[None], predicted[None], self.support)[0] - self._called(codes)) > 1e-9:
                return False
        return True

    def loss(self, logs: Float64) -> float:
        """Return the loss of thresholds."""
        return self._called(decide(self._p, _softmax(logs)))

    def move(self, c: int, logs: Float64, least: float) -> tuple[Float64, float]:
        """Move the threshold of class c to its best place; return the log thresholds and their loss."""
        odds = self._p * np.exp(-logs)
        own = self._p[:, c]
        odds[:, c] = -1.0
        rival = odds.argmax(axis=1)
        share = own / (own + odds[np.arange(len(own)), rival])
        lower, upper = self._cuts(share, c)
        if not len(lower):
            return logs, least
        losses = self._losses((lower + upper) / 2, share, c, rival)
        if losses.min() >= least - _ROUNDING:
            return logs, least
        cut = _middle_of_widest(lower, upper, losses <= losses.min() + _ROUNDING)
        moved = logs.copy()
        moved[c] = np.log(cut / (1 - cut))
        return moved, float(losses.min())

    def _cuts(self, share: Float64, c: int) -> tuple[Float64, Float64]:
        """Return the shares between which a cut changes a decision, ascending."""
        ordered = np.sort(share)
        gaps = np.flatnonzero(np.diff(ordered) > _RESOLUTION * ordered[1:])
        if self._n_classes > 2:
            most = max(_LEAST_PLACES, _PLACES // self._n_classes)
        else:
            most = _PLACES if self._table is None else len(gaps)
        if len(gaps) > most:
            # A rare class has few of the rows, but the threshold lies among them.
            grid = np.linspace(0, 1, most // 2)
            of_class = share[self._y == c]
            values = np.quantile(share, grid)
            if len(of_class):
                values = np.concatenate([values, np.quantile(of_class, grid)])
            places = np.searchsorted(ordered[gaps + 1], values)
            gaps = gaps[np.unique(np.minimum(places, len(gaps) - 1))]
        return ordered[gaps], ordered[gaps + 1]

    def _losses(self, cuts: Float64, share: Float64, c: int, rival: IntArray) -> Float64:
        """Return the loss for each cut: rows with at least this share go to class c, the others to the rival."""
        if self._table is None:
            return np.array([self._called(np.where(share >= cut, c, rival)) for cut in cuts])
        n_cuts, n_classes = len(cuts), self._n_classes
        passed = np.searchsorted(cuts, share, side="right")

        def given(codes: IntArray, weight: Float64) -> Float64:
            """Sum weights by class over the rows assigned to class c at each cut, ``(n_cuts, n_classes)``."""
            sums = np.bincount(passed * n_classes + codes, weights=weight, minlength=(n_cuts + 1) * n_classes)
            return np.asarray(sums.reshape(-1, n_classes)[::-1].cumsum(axis=0)[::-1][1:])

        hits, predicted = self._counts(rival)
        all_c = np.full(len(share), c)
        hits = hits - given(rival, self._w * (rival == self._y)) + given(all_c, self._w * (self._y == c))
        predicted = predicted - given(rival, self._w) + given(all_c, self._w)
        return self._table(hits, predicted, self.support)

    def _counts(self, codes: IntArray) -> tuple[Float64, Float64]:
        return self._sums(codes, self._w * (codes == self._y)), self._sums(codes, self._w)

    def _sums(self, codes: IntArray, weight: Float64) -> Float64:
        return np.asarray(np.bincount(codes, weights=weight, minlength=self._n_classes), dtype=np.float64)

    def _called(self, codes: IntArray) -> float:
        return self._metric.loss(self._y, as_certain(codes, self._n_classes), self._weight)


def _middle_of_widest(lower: Float64, upper: Float64, is_best: NDArray[np.bool_]) -> float:
    """Return the middle of the widest run of best places."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_best, [False]]).astype(np.int8)))
    starts, ends = lower[edges[::2]], upper[edges[1::2] - 1]
    widest = np.argmax(ends - starts)
    return float((starts[widest] + ends[widest]) / 2)


def _halves(y: IntArray, rng: np.random.Generator, structure: RowStructure | None) -> tuple[Fold, Fold]:
    """Cut the rows into two halves, each class evenly; each half chooses, and judges the choice of the other.

    In time the halves are the older and the newer rows, and the choice of the newer judges nothing.
    """
    if is_in_time(structure):
        (older,) = structured_folds(structure, 1, rng)
        return older, Fold(older.validation, np.empty(0, dtype=np.int64))
    if structure is not None:
        first, second = structured_folds(structure, 2, rng, classes=y)
        return first, second
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    half = np.empty(len(y), dtype=np.int64)
    half[order] = np.arange(len(y)) % 2
    rows = np.flatnonzero(half == 0), np.flatnonzero(half == 1)
    return Fold(*rows), Fold(*rows[::-1])


def _normalised(probabilities: FloatArray) -> Float64:
    p = np.asarray(probabilities, dtype=np.float64)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _softmax(logs: Float64) -> Float64:
    """Return the thresholds with these logarithms, scaled to sum to one."""
    t = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(t / t.sum(axis=-1, keepdims=True))


# ---------------------------------------------------------------- losses from counts
# hits (m, C): weight of the rows correctly assigned to a class; predicted (m, C): of all rows assigned to it;
# support (C,): of the rows that belong to it.


def _error_rate(hits: Float64, predicted: Float64, support: Float64) -> Float64:
    return np.asarray(1 - hits.sum(axis=1) / support.sum())


def _balanced_error_rate(hits: Float64, predicted: Float64, support: Float64) -> Float64:
    return np.asarray(1 - (hits[:, support > 0] / support[support > 0]).mean(axis=1))


def _one_minus_geometric_mean(hits: Float64, predicted: Float64, support: Float64) -> Float64:
    recalls = hits[:, support > 0] / support[support > 0]
    recalls[recalls < _ROUNDING] = 0  # differences of sums may be 1e-17, whose root is not small, or negative
    return np.asarray(1 - np.prod(recalls ** (1 / recalls.shape[1]), axis=1))


def _one_minus_f1(hits: Float64, predicted: Float64, support: Float64) -> Float64:
    f1, occurs = _f1_of_classes(hits, predicted, support)
    return np.asarray(1 - f1.sum(axis=1) / occurs.sum(axis=1))


def _one_minus_weighted_f1(hits: Float64, predicted: Float64, support: Float64) -> Float64:
    f1, _ = _f1_of_classes(hits, predicted, support)
    return np.asarray(1 - f1 @ (support / support.sum()))


def _f1_of_classes(hits: Float64, predicted: Float64, support: Float64) -> tuple[Float64, BoolArray]:
    """Return F1 of each class, and whether it is there or predicted."""
    total = predicted + support
    occurs = total > _ROUNDING * support.sum()
    return np.divide(2 * hits, total, out=np.zeros_like(total), where=occurs), occurs


def _one_minus_f1_of_second(hits: Float64, predicted: Float64, support: Float64) -> Float64:
    total = predicted[:, 1] + support[1]
    occurs = total > _ROUNDING * support.sum()
    return np.asarray(1 - np.divide(2 * hits[:, 1], total, out=np.ones_like(total), where=occurs))


def _one_minus_f1_of_first(hits: Float64, predicted: Float64, support: Float64) -> Float64:
    return _one_minus_f1_of_second(hits[:, ::-1], predicted[:, ::-1], support[::-1])


def _one_minus_matthews(hits: Float64, predicted: Float64, support: Float64) -> Float64:
    true, called, correct = support / support.sum(), predicted / support.sum(), hits.sum(axis=1) / support.sum()
    spread_true, spread_called = 1 - true @ true, 1 - (called**2).sum(axis=1)  # may be -1e-17
    occurs = np.minimum(spread_true, spread_called) >= _ROUNDING
    spread = np.maximum(spread_true * spread_called, 0)
    correlation = np.divide(correct - called @ true, np.sqrt(spread), out=np.zeros_like(spread), where=occurs)
    return np.asarray(1 - correlation)


_TABLES: dict[str, tuple[_FromCounts, ...]] = {
    "accuracy": (_error_rate,),
    "balanced_accuracy": (_balanced_error_rate,),
    "g_mean": (_one_minus_geometric_mean,),
    "f1_macro": (_one_minus_f1,),
    "f1_weighted": (_one_minus_weighted_f1,),
    "f1": (_one_minus_f1_of_second, _one_minus_f1_of_first),
    "mcc": (_one_minus_matthews,),
}
"""How metrics can be computed for all thresholds at once, by name."""
