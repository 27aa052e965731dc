"""Groups of strongly associated columns, whose importance can only be measured together.

Notation (shapes)
-----------------
A ``(c, c)``: associations of columns in [0, 1], symmetric, 1 on the diagonal.
Two ordered columns (numbers, dates, booleans): absolute value of Spearman's rank correlation. An ordered and a
categorical column: square root of the share of the variance of the ranks that the categories explain, corrected for
their number (epsilon squared). Two categorical columns: Cramer's V, corrected for their numbers of levels.

References
----------
Kelley (1935), An unbiased correlation ratio measure, PNAS 21 (epsilon squared).
Bergsma (2013), A bias-correction for Cramer's V and Tschuprow's T, Journal of the Korean Statistical Society 42.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata

from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.explanations.unseen_rows import SourceColumn

TOGETHER = 0.7
"""Mean association from which on two groups of columns are merged."""

_DAYS = 4
"""The part of a date that orders it: the days since 1970."""


def standardised_ranks(values: FloatArray) -> Float64:
    """Return the ranks of a column with mean 0 and variance 1; missing values are in the middle, and equal ones all 0.

    Examples
    --------
    >>> standardised_ranks(np.array([5.0, np.nan, 9.0])).round(3)
    array([-1.225,  0.   ,  1.225])
    """
    ranks = np.zeros(len(values))
    present = ~np.isnan(values)
    ranks[present] = rankdata(values[present]) if present.any() else 0.0
    ranks[present] -= ranks[present].mean() if present.any() else 0.0
    spread = ranks.std()
    return ranks / spread if spread > 0 else ranks


def levels_of(values: FloatArray) -> IntArray:
    """Return the levels of a column numbered from 0 on, missing as one of them."""
    return np.asarray(np.unique(np.nan_to_num(values, nan=-1.0), return_inverse=True)[1], dtype=np.int64)


def explained_by_levels(levels: IntArray, ranks: Float64) -> Float64:
    """Return how far levels explain standardised ranks, in [0, 1].

    Parameters
    ----------
    levels : (n_rows,) int array
        Numbered from 0 on.
    ranks : (n_rows, n_columns) array
        From `standardised_ranks`.
    """
    n, n_levels = len(levels), int(levels.max()) + 1
    if n <= n_levels:
        return np.zeros(ranks.shape[1])
    counts = np.bincount(levels, minlength=n_levels)
    order = np.argsort(levels, kind="stable")
    sums = np.add.reduceat(ranks[order], np.r_[0, np.cumsum(counts)[:-1]], axis=0)
    total = (ranks**2).sum(axis=0)
    explained = np.divide((sums**2 / counts[:, None]).sum(axis=0), total, out=np.zeros(len(total)), where=total > 0)
    return np.asarray(np.sqrt(np.clip(1 - (1 - explained) * (n - 1) / (n - n_levels), 0, 1) * (total > 0)))


def cramers_v(first: IntArray, second: IntArray) -> float:
    """Return the corrected association of two columns of levels, in [0, 1]."""
    n, a, b = len(first), int(first.max()) + 1, int(second.max()) + 1
    if min(a, b) < 2 or n < 2:
        return 0.0
    # Only pairs that occur, as columns may have thousands of levels: the others add nothing to this sum.
    pairs, counts = np.unique(first * b + second, return_counts=True)
    expected = np.bincount(first)[pairs // b] * np.bincount(second)[pairs % b]
    phi = float((counts**2 / expected).sum()) - 1
    phi = max(0.0, phi - (a - 1) * (b - 1) / (n - 1))
    least = min(a - (a - 1) ** 2 / (n - 1), b - (b - 1) ** 2 / (n - 1)) - 1
    return min(1.0, float(np.sqrt(phi / least))) if least > 0 else 0.0


def associations(values: FloatArray, columns: Sequence[SourceColumn]) -> Float64:
    """Return the association between each pair of columns.

    Parameters
    ----------
    values : (n_rows, n_value_columns) array
        Coded rows.
    columns : sequence of SourceColumn
        Columns to compare; text columns are associated with no other.

    Returns
    -------
    (n_columns, n_columns) array
        See the notation.
    """
    found = np.eye(len(columns))
    ordered = [i for i, column in enumerate(columns) if column.places and not column.categories]
    others = [i for i, column in enumerate(columns) if column.categories]
    ranks = np.zeros((len(values), 0))
    if ordered:
        ranks = np.column_stack([standardised_ranks(values[:, order_place(columns[i])]) for i in ordered])
        found[np.ix_(ordered, ordered)] = np.minimum(np.abs(ranks.T @ ranks) / len(values), 1)
    levels = {i: levels_of(values[:, columns[i].places[0]]) for i in others}
    for position, i in enumerate(others):
        found[i, ordered] = found[ordered, i] = explained_by_levels(levels[i], ranks)
        for j in others[:position]:
            found[i, j] = found[j, i] = cramers_v(levels[i], levels[j])
    np.fill_diagonal(found, 1)
    return found


def order_place(column: SourceColumn) -> int:
    """Return the coded column that orders the values of a column."""
    return column.places[_DAYS if len(column.places) > _DAYS else 0]


def group_columns(association: Float64, together: float = TOGETHER) -> list[list[int]]:
    """Group strongly associated columns: average linkage, cut where the mean association falls below a limit.

    Parameters
    ----------
    association : (n_columns, n_columns) array
        From `associations`.
    together : float
        The limit.

    Returns
    -------
    list of list of int
        Numbers of the columns of each group; groups in the order of their first columns.

    Examples
    --------
    >>> group_columns(np.array([[1, 0.1, 0.9], [0.1, 1, 0.2], [0.9, 0.2, 1]]))
    [[0, 2], [1]]
    """
    if len(association) < 2:
        return [[i] for i in range(len(association))]
    distances = squareform(1 - association, checks=False)
    labels = fcluster(linkage(distances, "average"), 1 - together, "distance")
    groups: dict[int, list[int]] = {}
    for i, label in enumerate(labels.tolist()):
        groups.setdefault(label, []).append(i)
    return list(groups.values())
