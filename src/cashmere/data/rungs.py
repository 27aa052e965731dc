"""Rungs: nested shares of the training rows, on which configurations are tried first if a table is large.

Validation rows are the same for all rungs, so that models of different rungs may join one ensemble.
"""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, IntArray
from cashmere.base.sorting import sorted_by
from cashmere.data.row_structure import RowStructure, is_in_time
from cashmere.data.task import TaskType

LEAST_ROWS = 10_000
"""No rung is smaller: starting a fit would take about as long as the fit, and the order of configurations be noise."""

_FACTOR = 3


def rungs(n_rows: int) -> tuple[float, ...]:
    """Return the shares of the training rows that trials may use, ascending.

    Parameters
    ----------
    n_rows : int
        Training rows of a fold.

    Returns
    -------
    tuple of float
        Powers of 1/3 that leave at least `LEAST_ROWS` rows; the last is 1.0, the only one of small tables.

    Examples
    --------
    >>> rungs(5_000)
    (1.0,)
    >>> [rows_at(share, 300_000) for share in rungs(300_000)]
    [11111, 33333, 100000, 300000]
    """
    n_below = 0
    while n_rows >= LEAST_ROWS * _FACTOR ** (n_below + 1):
        n_below += 1
    return tuple(1 / _FACTOR**power for power in range(n_below, -1, -1))


def rows_at(share: float, n_rows: int) -> int:
    """Return how many of `n_rows` training rows a share has, at least 1."""
    return max(1, round(share * n_rows))


def rung_order(y: AnyArray, task_type: TaskType, seed: int, structure: RowStructure | None = None) -> IntArray:
    """Order training rows so that every rung is a leading slice: at random, with each class in its share.

    Groups stay together, so that a rung has whole ones; in time, a rung has the newest rows.

    Parameters
    ----------
    y : (n_rows,) array
        Class codes or values of the training rows.
    task_type : TaskType
        How to read `y`.
    seed : int
        Seed of the order.
    structure : RowStructure, optional
        Groups or moments of these rows.

    Returns
    -------
    (n_rows,) array of int64
        Positions in `y`. The first n rows contain the share of each class, at most rounded up, so that even the
        smallest rung has a row of every class. Groups allow this only approximately; in time, it does not hold.
    """
    if is_in_time(structure):
        return np.argsort(-structure.codes, kind="stable")
    if structure is not None:
        return _order_of_groups(y, task_type, seed, structure.codes)
    order = np.random.default_rng(seed).permutation(len(y)).astype(np.int64)
    if not task_type.is_classification:
        return order
    return order[sorted_by([_due(y[order])])]


def _order_of_groups(y: AnyArray, task_type: TaskType, seed: int, groups: IntArray) -> IntArray:
    """Order whole groups at random; each enters as soon as the first of its rows is due."""
    n_groups = int(groups.max()) + 1
    rank = np.random.default_rng(seed).permutation(n_groups)
    order = np.argsort(rank[groups], kind="stable")
    if not task_type.is_classification:
        return order
    first = np.ones(n_groups)
    np.minimum.at(first, groups[order], _due(y[order]))
    return np.lexsort((rank[groups], first[groups]))


def _due(codes: AnyArray) -> Float64:
    """Return the share of all rows at which each row must enter for its class to keep its share."""
    due = np.empty(len(codes))
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        due[members] = np.arange(len(members)) / len(members)
    return due
