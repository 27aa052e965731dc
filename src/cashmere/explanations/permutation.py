"""Permutation importance: by how much the loss increases when the values of a column are permuted.

The ensemble predicts rows that its models have not seen, with the values of one column, or of a group of columns, taken
from other rows. If other columns carry the same information, permuting one of them costs little; such columns therefore
form groups.

References
----------
Breiman (2001), Random forests, Machine Learning 45, section 10.
Fisher, Rudin, Dominici (2019), All models are wrong, but many are useful, JMLR 20 (any model, loss on unseen rows).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cashmere.base.arrays import AnyArray, FloatArray, IntArray
from cashmere.exceptions import MetricError
from cashmere.explanations.unseen_rows import SourceColumn, UnseenRows

COVERAGE = 0.9
_DRAWS = 100

_Loss = Callable[[AnyArray, FloatArray], float]
"""From predictions and row weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance:
    """Permutation importance of a column or a group of columns.

    Attributes
    ----------
    columns : tuple of str
        One column, or a group of associated columns.
    mean : float
        Increase of the loss, averaged over the permutations.
    lower, upper : float
        Ends of its interval.
    """

    columns: tuple[str, ...]
    mean: float
    lower: float
    upper: float


def permutation_importance(
    unseen: UnseenRows,
    groups: Sequence[Sequence[SourceColumn]],
    loss: _Loss,
    *,
    repeats: int,
    rng: np.random.Generator,
) -> list[Importance]:
    """Permute each group of columns several times.

    Parameters
    ----------
    unseen : UnseenRows
        Rows and models.
    groups : sequence of sequences of SourceColumn
        Columns to permute together.
    loss : callable
        (predictions, row weights) -> loss.
    repeats : int
        Permutations of each group.
    rng : numpy.random.Generator
        Draws them and the intervals.

    Returns
    -------
    list of Importance
        In the order of the groups.
    """
    n = len(unseen)
    weight = np.ones(n) if unseen.weight is None else np.asarray(unseen.weight, dtype=np.float64)
    base, rows = unseen.predict(), np.tile(np.arange(n), repeats)
    found = []
    for group in groups:
        sources = [rng.permutation(n) for _ in range(repeats)]
        permuted = np.split(_with_columns_of(unseen, group, rows, np.concatenate(sources)), repeats)
        mean, lower, upper = loss_increase(loss, base, permuted, sources, weight=weight, group=unseen.group, rng=rng)
        names = tuple(column.name for column in group)
        found.append(Importance(columns=names, mean=mean, lower=lower, upper=upper))
    return found


def _with_columns_of(unseen: UnseenRows, group: Sequence[SourceColumn], rows: IntArray, sources: IntArray) -> AnyArray:
    """Predict rows with some columns taken from other rows."""
    values = unseen.values[rows]
    places = np.array([place for column in group for place in column.places], dtype=np.int64)
    values[:, places] = unseen.values[np.ix_(sources, places)]
    changed = {column.text for column in group if column.text is not None}
    texts = None
    if changed:
        texts = tuple(text[sources if i in changed else rows] for i, text in enumerate(unseen.texts))
    return unseen.predict(values, rows, texts)


def loss_increase(
    loss: _Loss,
    base: AnyArray,
    permuted: Sequence[AnyArray],
    sources: Sequence[IntArray],
    *,
    weight: FloatArray,
    group: IntArray,
    rng: np.random.Generator,
) -> tuple[float, float, float]:
    """Return the mean increase of a loss, and its interval by resampling rows (bootstrap).

    A row that is drawn c times counts c times, both by itself and as the source of another row's values: the pair of a
    row and its source is weighted by the product of both counts.

    Parameters
    ----------
    loss : callable
        (predictions, row weights) -> loss.
    base : array
        Predictions for the rows as they are.
    permuted : sequence of arrays
        Predictions for each permutation.
    sources : sequence of (n_rows,) int arrays
        For each permutation, the row from which each row got its values.
    weight : (n_rows,) array
        Row weights.
    group : (n_rows,) int array
        Groups of rows that are drawn together.
    rng : numpy.random.Generator
        Draws the groups.

    Returns
    -------
    mean, lower, upper : float
    """

    def increase(counts: FloatArray) -> float:
        pairs = [weight * counts * counts[rows] for rows in sources]
        if not min(pair.sum() for pair in pairs) > 0:
            return np.nan
        # Both losses have the same weights, so that every draw gives 0 where no prediction changes.
        return float(np.mean([loss(p, pair) - loss(base, pair) for p, pair in zip(permuted, pairs, strict=True)]))

    n_groups = int(group.max()) + 1
    mean = increase(np.ones(len(weight)))
    draws = []
    for _ in range(_DRAWS):
        counts = np.bincount(rng.integers(n_groups, size=n_groups), minlength=n_groups)[group].astype(np.float64)
        try:
            draws.append(increase(counts))
        except MetricError:  # a draw may lack what the metric needs
            continue
    known = np.array(draws)[np.isfinite(draws)]
    if not len(known):
        return mean, mean, mean
    lower, upper = np.quantile(known, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return mean, float(min(lower, mean)), float(max(upper, mean))
