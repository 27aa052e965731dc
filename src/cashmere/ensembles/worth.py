"""What groups of candidates are worth to an ensemble: the loss that it would have without them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.ensembles.selection import TieRule, select_ensemble
from cashmere.records.loss import Loss


def worth_of_groups(
    predictions: Sequence[FloatArray],
    groups: IntArray,
    y: AnyArray,
    metric: Loss,
    *,
    n_groups: int,
    size: int = 25,
    row_weights: FloatArray | None = None,
    tie: TieRule = "first",
) -> Float64:
    """Return by how much the loss of the selected ensemble rises if a group of candidates is missing.

    Parameters
    ----------
    predictions : sequence of n arrays (n_rows, n_classes) or (n_rows,)
        Finite predictions of the candidates, at least one.
    groups : (n,) int array
        Group of each candidate, from 0.
    y : (n_rows,) array
        Class codes or values.
    metric : Loss
        The metric to minimise.
    n_groups : int
        Number of groups.
    size, row_weights, tie
        See `cashmere.ensembles.select_ensemble`.

    Returns
    -------
    (n_groups,) array
        The ensemble is selected again without the group. Groups without a member are worth 0, a group that holds all
        candidates is worth infinity. Greedy selection is not optimal, so numbers slightly below 0 occur.

    Examples
    --------
    >>> import numpy as np
    >>> class Squared:
    ...     name = "mse"
    ...     def loss(self, y, predictions, weight=None):
    ...         return float(np.average((predictions - y) ** 2, weights=weight))
    >>> y = np.array([0.0, 1.0, 2.0])
    >>> worth_of_groups([y + 1, y - 1, y + 4], np.array([0, 1, 2]), y, Squared(), n_groups=3, size=2)
    array([1., 1., 0.])
    """

    def select(positions: IntArray) -> tuple[IntArray, float]:
        kept = [predictions[i] for i in positions]
        found = select_ensemble(kept, y, metric, size=size, weight=row_weights, tie=tie)
        return positions[found.members], float(found.trajectory[-1])

    members, loss = select(np.arange(len(predictions)))
    worth = np.zeros(n_groups)
    for group in np.unique(groups[members]):
        others = np.flatnonzero(groups != group)
        worth[group] = select(others)[1] - loss if len(others) else np.inf
    return worth
