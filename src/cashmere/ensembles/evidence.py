"""Whether the gain of an ensemble is real: choose on one half of the validation rows, judge on the other.

The loss of an ensemble on the rows it was chosen on is too good, the more so the fewer and noisier the rows are. Every
decision that rests on a gain should know how much of it is left on other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cashmere.arrays import AnyArray, FloatArray, IntArray
from cashmere.ensembles.added_member import losses_with_added
from cashmere.ensembles.selection import select_ensemble
from cashmere.loss import Loss

_LEAST_ROWS = 20
"""Halves of fewer rows would say nothing."""

_N_PROMISING = 10
"""Candidates whose gain is looked for on the other half."""

_SIZES = (1, 2, 3, 5, 8, 12, 18)
"""Sizes that are judged, beside the full one: a metric takes about as long as a step of the selection."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GainEvidence:
    """What halves of the rows say about ensembles of growing size.

    Attributes
    ----------
    sizes : (n_sizes,) int array
        Numbers of steps of the selection, ascending.
    losses : (n_splits, n_sizes) array
        Loss of the ensemble after so many steps, on the rows that did not choose it.
    helped : (n_splits,) array
        Of the candidates whose addition to the chosen ensemble gains most on the choosing half, the share that also
        lowers its loss on the other half.
    """

    sizes: IntArray
    losses: NDArray[np.float64]
    helped: NDArray[np.float64]

    @property
    def credibility(self) -> float:
        """How far gains can be believed, in [0, 1].

        0 if the best additions help on other rows no more often than a coin falls on heads, 1 from two in three on;
        linear between.
        """
        return float(np.clip(6 * (self.helped.mean() - 0.5), 0, 1))

    @property
    def best_size(self) -> int:
        """Size with the lowest mean loss; the smaller of equals."""
        return int(self.sizes[np.argmin(self.losses.mean(axis=0))])


def judge_gain(
    predictions: Sequence[FloatArray],
    y: AnyArray,
    metric: Loss,
    *,
    losses: FloatArray,
    rng: np.random.Generator,
    size: int = 25,
    n_splits: int = 3,
    n_candidates: int = 20,
    row_weights: NDArray[np.float64] | None = None,
) -> GainEvidence | None:
    """Select ensembles on random halves of the rows and judge them on the other halves.

    Parameters
    ----------
    predictions : sequence of (n_rows, n_classes) or (n_rows,) arrays
        Predictions of each candidate for the same rows.
    y : (n_rows,) array
        Class codes or values; classes are spread evenly over the halves.
    metric : Loss
        The metric.
    losses : (n,) array
        Losses of the candidates on all rows. Ensembles are chosen from the best `n_candidates`: others rarely enter,
        and it takes a fraction of the time.
    rng : numpy.random.Generator
        Draws the halves.
    size : int
        Steps of the selection.
    n_splits : int
        Number of halvings; each gives one half to choose.
    n_candidates : int
        See `losses`.
    row_weights : (n_rows,) array, optional
        Weights of the rows.

    Returns
    -------
    GainEvidence or None
        None if there are fewer than 40 rows, or a half misses a class.
    """
    if len(y) < 2 * _LEAST_ROWS:
        return None
    best = np.argsort(np.asarray(losses), kind="stable")[:n_candidates]
    stacks = [predictions[i] for i in best]
    is_classification = stacks[0].ndim == 2
    sizes = np.array([m for m in _SIZES if m < size] + [size])
    judged, helped = np.empty((n_splits, len(sizes))), np.empty(n_splits)
    for split in range(n_splits):
        choosing, judging = (
            _Half(rows, y[rows], None if row_weights is None else row_weights[rows], metric)
            for rows in _halves(y, is_classification, rng)
        )
        if is_classification and len(np.unique(choosing.y)) != len(np.unique(judging.y)):
            return None
        chosen = select_ensemble(
            [stack[choosing.rows] for stack in stacks], choosing.y, metric, size=size, weight=choosing.weights
        )
        ensemble, n_added = np.zeros(stacks[0].shape), 0
        for column, m in enumerate(sizes):
            for position in chosen.order[n_added:m]:
                ensemble += stacks[position]
            judged[split, column], n_added = judging.loss(ensemble / m), m
        ensemble /= size
        gains = choosing.loss(ensemble) - choosing.losses_with_added(predictions, ensemble, size)
        promising = [predictions[i] for i in np.argsort(-gains, kind="stable")[:_N_PROMISING]]
        helped[split] = np.mean(judging.losses_with_added(promising, ensemble, size) < judged[split, -1])
    return GainEvidence(sizes=sizes, losses=judged, helped=helped)


@dataclass(frozen=True, slots=True)
class _Half:
    rows: IntArray
    y: AnyArray
    weights: NDArray[np.float64] | None
    metric: Loss

    def loss(self, prediction: FloatArray) -> float:
        return self.metric.loss(self.y, prediction[self.rows], self.weights)

    def losses_with_added(
        self, predictions: Sequence[FloatArray], ensemble: FloatArray, size: int
    ) -> NDArray[np.float64]:
        here = [prediction[self.rows] for prediction in predictions]
        return losses_with_added(here, ensemble[self.rows], self.y, self.metric, size=size, row_weights=self.weights)


def _halves(
    y: AnyArray, is_classification: bool, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ascending row numbers of two random halves with the same shares of classes."""
    order = rng.permutation(len(y))
    if is_classification:
        order = order[np.argsort(y[order], kind="stable")]
    return np.sort(order[::2]), np.sort(order[1::2])
