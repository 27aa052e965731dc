"""How well a single column predicts the target, judged on rows that were not learned from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, FloatArray, IntArray
from cashmere.data.task import TaskType

_MOST_CLASSES = 20
"""Rarer classes count as one."""

_LEAST_LEAF = 5
"""Rows of a leaf; also the rows that the mean of all rows counts for where a level is judged."""

_MOST_LEAVES = 64


def target_matrix(y: AnyArray, task_type: TaskType) -> NDArray[np.float64]:
    """Return what a column has to predict: 0/1 for each class, or the ranks of values.

    Parameters
    ----------
    y : (n_rows,) array
        Class codes or values.
    task_type : TaskType
        How to read `y`.

    Returns
    -------
    (n_rows, n_outputs) array
        Of ranks between 0 and 1, because a few huge values would decide about squared errors.
    """
    if task_type is TaskType.REGRESSION:
        from scipy.stats import rankdata

        return (rankdata(y) / len(y))[:, None]
    codes, counts = np.unique(y, return_counts=True)
    shown = codes[np.argsort(-counts, kind="stable")[: _MOST_CLASSES - 1]]
    others = ~np.isin(y, shown)
    targets = (y[:, None] == shown).astype(np.float64)
    return np.column_stack([targets, others]) if others.any() else targets


def solo_skill(values: FloatArray, targets: FloatArray, part: IntArray, *, n_levels: int = 0) -> float:
    r"""Return the share of the squared error that a column alone takes away, on rows not learned from.

    .. math:: 1 - \sum_i \|y_i - \hat y_i\|^2 / \sum_i \|y_i - \bar y\|^2

    For classes this is the skill of Brier's score, for ranks the explained variance. Numbers are judged by a small
    tree, in which missing ones go their own way; levels by their mean, shrunk towards that of all rows.

    Parameters
    ----------
    values : (n_rows,) array
        Numbers, or level codes; NaN is missing.
    targets : (n_rows, n_outputs) array
        From `target_matrix`.
    part : (n_rows,) array of int
        Number of the part each row is in; the rows of a part are predicted from the others.
    n_levels : int
        Number of levels; 0 for numbers.

    Returns
    -------
    float
        1 for a perfect prediction, 0 for none; negative if the column misleads.

    Examples
    --------
    >>> values = np.arange(100.0)
    >>> targets = target_matrix((values > 70).astype(int), TaskType.BINARY)
    >>> round(solo_skill(values, targets, np.arange(100) % 3), 2) > 0.9
    True
    """
    predicted = np.empty_like(targets)
    mean = np.empty_like(targets)
    for number in np.unique(part):
        held_out = part == number
        train = ~held_out
        mean[held_out] = targets[train].mean(axis=0)
        predict = _level_means if n_levels else _tree_means
        predicted[held_out] = predict(values[train], targets[train], values[held_out])
    total = float(np.square(targets - mean).sum())
    return 1.0 - float(np.square(targets - predicted).sum()) / total if total > 0 else 0.0


def _tree_means(train: FloatArray, targets: FloatArray, values: FloatArray) -> FloatArray:
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor(min_samples_leaf=_LEAST_LEAF, max_leaf_nodes=_MOST_LEAVES, random_state=0)
    predicted: FloatArray = tree.fit(train[:, None], targets).predict(values[:, None])
    return predicted.reshape(len(values), -1)


def _level_means(train: FloatArray, targets: FloatArray, values: FloatArray) -> FloatArray:
    levels, positions = np.unique(train, return_inverse=True)  # NaN is a level of its own
    mean = targets.mean(axis=0)
    counts = np.bincount(positions)
    sums = np.column_stack([np.bincount(positions, weights=column) for column in targets.T])
    means = (sums + _LEAST_LEAF * mean) / (counts + _LEAST_LEAF)[:, None]
    found = np.searchsorted(levels, values).clip(max=len(levels) - 1)
    known = (levels[found] == values) | (np.isnan(levels[found]) & np.isnan(values))
    predicted: FloatArray = np.where(known[:, None], means[found], mean)
    return predicted
