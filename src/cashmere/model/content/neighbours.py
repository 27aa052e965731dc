"""Nearest neighbours: the KD and ball trees of scikit-learn, and the estimators that search them.

A query walks through nodes and reads rows by number without checking either.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cashmere.model.content.fault import array, count, indices, require

_WITHOUT_WEIGHTS = {"EuclideanDistance64", "ManhattanDistance64", "ChebyshevDistance64", "MinkowskiDistance64"}
_NODE_FIELDS = ("idx_start", "idx_end", "is_leaf", "radius")


def check_search_tree(where: str, tree: Any) -> None:
    """Check a `KDTree` or `BallTree`: every row is in one leaf, and every node is where a query expects it."""
    data, rows, nodes, bounds, leaf_size, n_levels, n_nodes, *_, distance, weights = tree.__getstate__()
    data = array(f"{where}: data", np.asarray(data), (-1, -1))
    n, n_features = data.shape
    require(n >= 1 and n_features >= 1, where, "holds no rows.")
    rows = indices(f"{where}: row numbers", np.asarray(rows), n, (n,))
    require((np.bincount(rows, minlength=n) == 1).all(), where, "names a row twice.")
    leaf_size = count(f"{where}: leaf size", leaf_size)
    levels = int(math.log2(max(1, (n - 1) / leaf_size))) + 1
    same = n_levels == levels and n_nodes == 2**levels - 1
    require(same, where, f"has {n_nodes} nodes in {n_levels} levels. Expected {2**levels - 1} in {levels}.")
    nodes = np.asarray(nodes)
    require(nodes.shape == (n_nodes,) and nodes.dtype.names == _NODE_FIELDS, where, "has no array of nodes.")
    n_bounds = 2 if type(tree).__name__.startswith("KD") else 1
    array(f"{where}: bounds", np.asarray(bounds), (n_bounds, n_nodes, n_features))
    _check_nodes(where, nodes, n)
    require(weights is None, where, "has weights of rows. Expected none.")
    power, vector, _ = distance.__getstate__()
    require(power >= 1, where, f"measures distances with the power {power}. Expected at least 1.")
    plain = type(distance).__name__ in _WITHOUT_WEIGHTS and len(vector) <= 1
    require(plain or len(vector) == n_features, where, f"measures distances with {len(vector)} weights of columns.")


def _check_nodes(where: str, nodes: np.ndarray[Any, Any], n_rows: int) -> None:
    n = len(nodes)
    start, end = nodes["idx_start"].astype(np.int64), nodes["idx_end"].astype(np.int64)
    require(start[0] == 0 and end[0] == n_rows, where, "has a root that does not hold all rows.")
    inner = np.arange(n // 2)  # a complete binary tree
    require(
        (nodes["is_leaf"][: n // 2] == 0).all() and (nodes["is_leaf"][n // 2 :] == 1).all(),
        where,
        "has leaves in the wrong places.",
    )
    left, right = 2 * inner + 1, 2 * inner + 2
    halves = (start[left] == start[inner]) & (end[left] == start[right]) & (end[right] == end[inner])
    require(halves.all() and (start <= end).all(), where, "has children that do not share the rows of their parent.")
    require(np.isfinite(nodes["radius"]).all(), where, "has a radius that is not finite.")


def check_neighbours(where: str, model: Any) -> None:
    """Check a `KNeighborsClassifier` or `KNeighborsRegressor`."""
    from scipy.sparse import issparse

    n = count(f"{where}.n_samples_fit_", model.n_samples_fit_)
    n_features = count(f"{where}.n_features_in_", model.n_features_in_)
    require(count(f"{where}.n_neighbors", model.n_neighbors) <= n, where, f"asks for more than its {n} rows.")
    rows = model._fit_X
    if issparse(rows):
        shape = model._fit_X.shape
        require(shape == (n, n_features), where, f"has rows of another shape than {(n, n_features)}.")
    else:
        array(f"{where}._fit_X", rows, (n, n_features))
    named = isinstance(model.effective_metric_, str) and model.effective_metric_ != "precomputed"
    require(named, where, f"measures by {str(model.effective_metric_)[:40]!r}.")
    options = model.effective_metric_params_
    plain = isinstance(options, dict) and options.keys() <= {"p", "w"} and options.get("w") is None
    plain = plain and _is_power(options.get("p", 2)) and model.metric_params is None
    require(plain, where, "has unknown options of its metric.")
    if hasattr(model, "classes_"):
        classes = array(f"{where}.classes_", model.classes_, (-1,), kinds="iuf")
        indices(f"{where}._y", model._y, len(classes), (n,))
    else:
        array(f"{where}._y", model._y, (n,))
    if model._tree is not None:
        data = np.asarray(model._tree.__getstate__()[0])
        require(data.shape == (n, n_features), where, f"searches rows of shape {data.shape}.")
    require((model._tree is None) == (model._fit_method == "brute"), where, "has no tree to search.")


def _is_power(value: object) -> bool:
    return isinstance(value, (int, float)) and value >= 1
