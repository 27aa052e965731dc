"""Whether the gain of an ensemble is real: choose on one half of the validation rows, judge on the other.

The loss of an ensemble on the rows it was chosen on is too good, the more so the fewer and noisier the rows are. Every
decision that rests on a gain should know how much of it is left on other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from cashmere.arrays import AnyArray, FloatArray, IntArray
from cashmere.ensembles.added_member import losses_with_added
from cashmere.ensembles.selection import select_ensemble
from cashmere.loss import Loss

_LEAST_ROWS = 20
"""Halves of fewer rows would say nothing."""

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
    correlations : (n_splits,) array
        Spearman's rank correlation, over all candidates, between what adding each to the chosen ensemble changes on
        one half and on the other, in [-1, 1].
    """

    sizes: IntArray
    losses: NDArray[np.float64]
    correlations: NDArray[np.float64]

    @property
    def reliability(self) -> float:
        """How far the order of candidates by gain holds on other rows, in [0, 1]; 0 if it is noise."""
        return float(max(0.0, self.correlations.mean()))

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
    n_splits: int = 4,
    n_candidates: int = 30,
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
    judged, correlations = np.empty((n_splits, len(sizes))), np.empty(n_splits)
    for split in range(n_splits):
        halves = _halves(y, is_classification, rng)
        if is_classification and len(np.unique(y[halves[0]])) != len(np.unique(y[halves[1]])):
            return None
        targets = [y[half] for half in halves]
        weights = [None if row_weights is None else row_weights[half] for half in halves]
        chosen = select_ensemble(
            [stack[halves[0]] for stack in stacks], targets[0], metric, size=size, weight=weights[0]
        )
        total, done = np.zeros(stacks[0].shape), 0
        for column, m in enumerate(sizes):
            for position in chosen.order[done:m]:
                total += stacks[position]
            judged[split, column], done = metric.loss(targets[1], total[halves[1]] / m, weights[1]), m
        added = [
            losses_with_added(
                [stack[half] for stack in predictions],
                total[half] / size,
                target,
                metric,
                size=size,
                row_weights=weight,
            )
            for half, target, weight in zip(halves, targets, weights, strict=True)
        ]
        correlations[split] = rank_correlation(*added)
    return GainEvidence(sizes=sizes, losses=judged, correlations=correlations)


def rank_correlation(a: FloatArray, b: FloatArray) -> float:
    """Return Spearman's correlation of two sequences; 0 where one of them is constant."""
    ranks = rankdata(a), rankdata(b)
    if min(rank.std() for rank in ranks) == 0:
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def _halves(
    y: AnyArray, is_classification: bool, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ascending row numbers of two random halves with the same shares of classes."""
    order = rng.permutation(len(y))
    if is_classification:
        order = order[np.argsort(y[order], kind="stable")]
    return np.sort(order[::2]), np.sort(order[1::2])
