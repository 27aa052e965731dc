"""How well a single column predicts the target, measured on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.data.column_values import LARGEST
from cashmere.data.task import TaskType
from cashmere.data.text_scores import count_parts, part_rarities, score_weights, scores_of, with_parts, word_counter
from cashmere.data.words import pairs_as_words

PARTS = 3
LEAST_ROWS = 30
"""Folds into which rows are divided, and fewest rows on which skills are measured."""

_MOST_CLASSES = 20
"""Rarer classes count as one."""

_LETTERS_READ = 1_000
_LEAST_LEAF = 5
"""Fewest rows in a leaf; also the weight, in rows, of the overall mean when the mean of a level is shrunk."""

FINE = {"max_leaf_nodes": 64, "min_samples_leaf": _LEAST_LEAF}
"""A tree that follows close relations, such as those of copies of the target."""

_COARSE = {"max_leaf_nodes": 4, "min_samples_leaf": 0.1}
"""One that finds weak relations, which the leaves of the other hide: their means of few rows are noise."""


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


def draw_rows(y: AnyArray, n_rows: int, task_type: TaskType, rng: np.random.Generator) -> IntArray:
    """Sample row numbers, ascending; each class gets its share, but at least ten rows per part if it has them."""
    if n_rows >= len(y):
        return np.arange(len(y))
    shuffled = rng.permutation(len(y))
    if not task_type.is_classification:
        return np.sort(shuffled[:n_rows])
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    groups = np.split(by_class, np.cumsum(np.unique(y, return_counts=True)[1])[:-1])
    kept = [group[: max(round(n_rows * len(group) / len(y)), 10 * PARTS)] for group in groups]
    return np.sort(np.concatenate(kept))


def solo_skill(values: FloatArray, targets: FloatArray, part: IntArray, *, n_levels: int = 0) -> float:
    r"""Return the share of the variance of the targets that a column explains on its own, on held-out rows.

    .. math:: 1 - \sum_i \|y_i - \hat y_i\|^2 / \sum_i \|y_i - \bar y\|^2

    For classes this is the Brier skill score, for ranks R squared. Numbers are fitted by two trees, one of few leaves
    and one of many, of which the better counts; missing values have their own branch. Levels are predicted by their
    mean, shrunk towards that of all rows.

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
    mean = np.empty_like(targets)
    fits: list[Callable[..., FloatArray]] = (
        [_level_means] if n_levels else [partial(_tree_means, **shape) for shape in (FINE, _COARSE)]
    )
    predicted = [np.empty_like(targets) for _ in fits]
    for number in np.unique(part):
        held_out = part == number
        train = ~held_out
        mean[held_out] = targets[train].mean(axis=0)
        for fit, result in zip(fits, predicted, strict=True):
            result[held_out] = fit(values[train], targets[train], values[held_out])
    total = float(np.square(targets - mean).sum())
    left = min(float(np.square(targets - result).sum()) for result in predicted)
    return 1.0 - left / total if total > 0 else 0.0


def text_skill(texts: AnyArray, targets: Float64, part: IntArray) -> float:
    """Return the share of the variance of the targets that texts explain on their own, on held-out rows.

    They are predicted by ridge regressions on words and their parts, as in `cashmere.data.text_scores`, from the first
    thousand letters of each. Predictions are shrunk towards the mean as the held-out rows want it: on texts that tell
    nothing, the regressions follow noise.

    Parameters
    ----------
    texts : (n_rows,) array of str
        The texts.
    targets, part
        As for `solo_skill`.

    Examples
    --------
    >>> texts = np.array(["closed as bad, again", "all is good"] * 50)
    >>> text_skill(texts, target_matrix(np.array([0, 1] * 50), TaskType.BINARY), np.arange(100) % 3) > 0.8
    True
    """
    shown = pairs_as_words(text[:_LETTERS_READ] for text in texts)
    try:
        words = word_counter().fit_transform(shown)
    except ValueError:  # there are no words
        return 0.0
    counts = count_parts(shown)
    terms = with_parts(words, counts, part_rarities(counts))
    wanted, predicted = np.empty_like(targets), np.empty_like(targets)  # as differences from the mean
    for number in np.unique(part):
        held_out = part == number
        mean = targets[~held_out].mean(axis=0)
        weights = score_weights(terms[~held_out], (targets[~held_out] - mean).astype(np.float32))
        wanted[held_out] = targets[held_out] - mean
        predicted[held_out] = scores_of(terms[held_out], weights)
    total, size = float(np.square(wanted).sum()), float(np.square(predicted).sum())
    if total == 0 or size == 0:
        return 0.0
    share = float(np.clip((wanted * predicted).sum() / size, 0, 1))
    return 1.0 - float(np.square(wanted - share * predicted).sum()) / total


def _tree_means(
    train: FloatArray, targets: FloatArray, values: FloatArray, *, max_leaf_nodes: int, min_samples_leaf: float
) -> FloatArray:
    shape = {"max_leaf_nodes": max_leaf_nodes, "min_samples_leaf": min_samples_leaf}
    return fit_tree(train[:, None], targets, values[:, None], **shape)[0]


def fit_tree(train: FloatArray, targets: FloatArray, values: FloatArray, **shape: Any) -> tuple[FloatArray, Float64]:
    """Fit a tree to columns, and return its predictions for other rows and the importance of each column."""
    from sklearn.tree import DecisionTreeRegressor

    train, values = (each.clip(-LARGEST, LARGEST) for each in (train, values))  # trees read float32
    tree = DecisionTreeRegressor(random_state=0, **shape)
    with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds them up in its checks
        predicted: FloatArray = tree.fit(train, targets).predict(values)
    return predicted.reshape(len(values), -1), tree.feature_importances_


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
