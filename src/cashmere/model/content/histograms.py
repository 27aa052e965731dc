"""Histogram gradient boosting of scikit-learn: trees as arrays of nodes, and bits for sets of categories.

Prediction follows children, reads features and looks up bits without checking any of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cashmere.base.arrays import BoolArray
from cashmere.model.content.fault import array, count, indices, require
from cashmere.model.content.structure import tree_depths

_BITSET_WORDS = 8
_MOST_CATEGORIES = 256
_TREES_AT_ONCE = 5_000


def check_histogram_boosting(where: str, model: Any) -> None:
    """Check `HistGradientBoostingClassifier` and `HistGradientBoostingRegressor` with all their trees."""
    per_round = count(f"{where}.n_trees_per_iteration_", model.n_trees_per_iteration_)
    n_classes = len(model.classes_) if hasattr(model, "classes_") else 1
    expected = n_classes if n_classes > 2 else 1
    require(per_round == expected, where, f"has {per_round} trees per round. Expected {expected}.")
    n_features = count(f"{where}._n_features", model._n_features)
    categorical = _check_bins(f"{where}._bin_mapper", model._bin_mapper, n_features)
    array(f"{where}._baseline_prediction", model._baseline_prediction, (1, per_round))
    require(isinstance(model._predictors, list), where, "has no list of trees.")
    for i, trees in enumerate(model._predictors):
        require(len(trees) == per_round, where, f"has {len(trees)} trees in round {i}. Expected {per_round}.")
    trees = [tree for trees in model._predictors for tree in trees]
    for first in range(0, len(trees), _TREES_AT_ONCE):
        place = f"{where}._predictors, from tree {first}"
        _check_predictors(place, trees[first : first + _TREES_AT_ONCE], n_features, categorical)


def _check_bins(where: str, mapper: Any, n_features: int) -> BoolArray:
    """Return which features hold categories."""
    marked = array(f"{where}.is_categorical_", mapper.is_categorical_, (n_features,), kinds="iub")
    same = len(mapper.bin_thresholds_) == n_features
    require(same, where, f"has not one list of thresholds for each of {n_features} columns.")
    for column in np.flatnonzero(marked):
        place = f"{where}.bin_thresholds_[{column}]"
        values = array(place, mapper.bin_thresholds_[column], (-1,), kinds="fiu")
        in_range = not len(values) or (values.min() >= 0 and values.max() < _MOST_CATEGORIES)
        require(in_range, place, f"holds categories out of range. Expected 0 to {_MOST_CATEGORIES - 1}.")
    return np.asarray(marked, dtype=bool)


def _check_predictors(where: str, trees: list[Any], n_features: int, categorical: BoolArray) -> None:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    for tree in trees:
        nodes, sets = tree.nodes, tree.raw_left_cat_bitsets
        right_kind = isinstance(nodes, np.ndarray) and nodes.dtype == PREDICTOR_RECORD_DTYPE and nodes.ndim == 1
        require(right_kind, where, "has no array of nodes as scikit-learn makes it.")
        array(where, sets, (-1, _BITSET_WORDS), kinds="u")
    sizes = np.array([len(tree.nodes) for tree in trees])
    n_sets = np.repeat([len(tree.raw_left_cat_bitsets) for tree in trees], sizes)
    nodes = np.concatenate([tree.nodes for tree in trees])
    inner = nodes["is_leaf"] == 0
    tree_depths(sizes, nodes["left"], nodes["right"], inner, lambda k: f"{where}: tree {k}")
    features = indices(f"{where}: features", nodes["feature_idx"][inner].astype(np.int64), n_features)
    require(np.isfinite(nodes["value"]).all(), where, "has values that are not finite.")
    require(not np.isnan(nodes["num_threshold"][inner]).any(), where, "has a threshold that is NaN.")
    by_category = nodes["is_categorical"][inner] != 0
    require(categorical[features[by_category]].all(), where, "looks for categories in a column of numbers.")
    chosen = nodes["bitset_idx"][inner][by_category].astype(np.int64)
    require((chosen < n_sets[inner][by_category]).all(), where, "looks for a set of categories that is not there.")
