"""Test whether the gain of an ensemble is real: choose on one half of the validation rows, judge on the other.

The loss of an ensemble on the rows it was chosen on is optimistic, the more so the fewer and noisier the rows are.
Every decision that relies on a gain should know how much of it is left on unseen rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.ensembles.added_member import losses_with_added
from cashmere.ensembles.selection import select_ensemble
from cashmere.exceptions import CashmereError
from cashmere.records.loss import Loss

_LEAST_ROWS = 20
"""Halves with fewer rows would be too noisy to judge by."""

_N_HALVINGS = 4
"""In each, both halves choose once and judge once, so there are twice as many splits."""

_N_CANDIDATES = 20
"""Ensembles are selected from the best on the choosing half: others rarely enter, but would take most of the time."""

_N_PROMISING = 10
"""Candidates whose gain is measured on the other half."""

_SIZES = (1, 2, 3, 5, 8, 12, 18)
"""Sizes judged besides the full one, few because a metric takes about as long as a step of the selection."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GainEvidence:
    """Losses and gains of ensembles of growing size, measured on halves of the rows.

    Attributes
    ----------
    sizes : (n_sizes,) int array
        Numbers of steps of the selection, ascending.
    losses : (n_splits, n_sizes) array
        Loss of the ensemble after that many steps, on the rows that did not choose it.
    gains : (n_splits,) array
        How much the additions that gain most on the choosing half lower the loss on the other half, on average;
        negative where they raise it.
    """

    sizes: IntArray
    losses: Float64
    gains: Float64

    @property
    def credibility(self) -> float:
        """How far gains can be trusted, in [0, 1]: their mean on other rows in standard deviations, cut at 0 and 1."""
        mean, deviation = float(self.gains.mean()), float(self.gains.std())
        if deviation > 0:
            return float(np.clip(mean / deviation, 0, 1))
        return float(mean > 0)

    @property
    def best_size(self) -> int:
        """Size with the lowest mean loss; the smaller in a tie."""
        return int(self.sizes[np.argmin(self.losses.mean(axis=0))])


def judge_gain(
    predictions: Sequence[FloatArray],
    y: AnyArray,
    metric: Loss,
    *,
    rng: np.random.Generator,
    size: int = 25,
    row_weights: Float64 | None = None,
) -> GainEvidence | None:
    """Select ensembles on halves of the rows, and judge them and possible additions on the other halves.

    Parameters
    ----------
    predictions : sequence of (n_rows, n_classes) or (n_rows,) arrays
        Finite predictions of each candidate for the same rows.
    y : (n_rows,) array
        Class codes or values; classes are spread evenly over the halves, a class with a single row is left out.
    metric : Loss
        The metric.
    rng : numpy.random.Generator
        Draws the halves; the same halves in all calls keep noise from flipping decisions back and forth.
    size : int
        Steps of the selection.
    row_weights : (n_rows,) array, optional
        Weights of the rows.

    Returns
    -------
    GainEvidence or None
        None if there are fewer than 40 rows, a half has no weight, or the metric cannot be computed on a half.
    """
    is_classification = predictions[0].ndim == 2
    kept = _rows_of_larger_classes(y) if is_classification else np.arange(len(y))
    if len(kept) < 2 * _LEAST_ROWS:
        return None
    sizes = np.array([m for m in _SIZES if m < size] + [size])
    judged, gains = [], []
    for _ in range(_N_HALVINGS):
        halves = [
            _Half(rows, y[rows], None if row_weights is None else row_weights[rows], metric)
            for rows in _halve(kept, y, is_classification, rng)
        ]
        if any(half.weights is not None and half.weights.sum() <= 0 for half in halves):
            return None
        try:
            for choosing, judging in (halves, halves[::-1]):
                losses, gain = _judge(predictions, choosing, judging, sizes)
                judged.append(losses)
                gains.append(gain)
        except (CashmereError, ValueError):  # a custom metric may need what a half does not have
            return None
    return GainEvidence(sizes=sizes, losses=np.array(judged), gains=np.array(gains))


@dataclass(frozen=True, slots=True)
class _Half:
    rows: IntArray
    y: AnyArray
    weights: Float64 | None
    metric: Loss

    def loss(self, prediction: FloatArray) -> float:
        return self.metric.loss(self.y, prediction[self.rows], self.weights)

    def losses_with_added(self, predictions: Sequence[FloatArray], ensemble: FloatArray, size: int) -> Float64:
        here = [prediction[self.rows] for prediction in predictions]
        return losses_with_added(here, ensemble[self.rows], self.y, self.metric, size=size, row_weights=self.weights)


def _judge(
    predictions: Sequence[FloatArray], choosing: _Half, judging: _Half, sizes: IntArray
) -> tuple[list[float], float]:
    """Return the losses of the ensembles of all sizes, and the mean gain of promising additions, when judged."""
    size = int(sizes[-1])
    ensemble, n_added = np.zeros(predictions[0].shape), 0
    own = choosing.losses_with_added(predictions, ensemble, 0)
    best = [predictions[i] for i in np.argsort(own, kind="stable")[:_N_CANDIDATES]]
    chosen = select_ensemble(
        [stack[choosing.rows] for stack in best], choosing.y, choosing.metric, size=size, weight=choosing.weights
    )
    losses = []
    for m in sizes.tolist():
        for position in chosen.order[n_added:m]:
            ensemble += best[position]
        losses.append(judging.loss(ensemble / m))
        n_added = m
    ensemble /= size
    order = np.argsort(choosing.losses_with_added(predictions, ensemble, size), kind="stable")
    promising = [predictions[i] for i in order[:_N_PROMISING]]
    return losses, losses[-1] - float(np.mean(judging.losses_with_added(promising, ensemble, size)))


def _rows_of_larger_classes(y: AnyArray) -> IntArray:
    """Return the rows whose class has another row, so that every class can be in both halves."""
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[codes] > 1)


def _halve(rows: IntArray, y: AnyArray, is_classification: bool, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Cut rows into two random halves, each ascending; classes with two or more rows are in both."""
    order = rng.permutation(rows)
    if is_classification:
        order = order[np.argsort(y[order], kind="stable")]
    return np.sort(order[::2]), np.sort(order[1::2])
