"""How well a single column predicts the target, measured on held-out rows."""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.data.task import TaskType

_MOST_CLASSES = 20
"""Rarer classes count as one."""

_LEAST_LEAF = 5
"""Fewest rows in a leaf; also the weight, in rows, of the overall mean when the mean of a level is shrunk."""

_MOST_LEAVES = 64


def target_matrix(y: AnyArray, task_type: TaskType) -> Float64:
    """Return what a column has to predict: 0/1 indicators of the classes, or ranks of a numeric target.

    Parameters
    ----------
    y : (n_rows,) array
        Class codes or values.
    task_type : TaskType
        How to read `y`.

    Returns
    -------
    (n_rows, n_outputs) array
        Ranks are scaled to between 0 and 1, since a few huge values would dominate squared errors.
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
    r"""Return the share of the variance of the targets that a column explains on its own, on held-out rows.

    .. math:: 1 - \sum_i \|y_i - \hat y_i\|^2 / \sum_i \|y_i - \bar y\|^2

    For classes this is the Brier skill score, for ranks R squared. Numbers are fitted by a small tree, in which missing
    values have their own branch; levels are predicted by their mean, shrunk towards that of all rows.

    Parameters
    ----------
    values : (n_rows,) array
        Numbers, or level codes; NaN means missing.
    targets : (n_rows, n_outputs) array
        From `target_matrix`.
    part : (n_rows,) array of int
        Fold of each row; the rows of a fold are predicted from the others.
    n_levels : int
        Number of levels; 0 for numbers.

    Returns
    -------
    float
        1 for perfect predictions, 0 for those of the mean; negative if the column misleads.

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
