"""Decision trees of scikit-learn, and the estimators made of them.

Prediction follows children and reads features without checking either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cashmere.base.arrays import BoolArray
from cashmere.model.content.fault import ContentError, array, count, indices, require
from cashmere.model.content.structure import tree_depths

_LEAF = -1
_NODES_AT_ONCE = 500_000


def check_trees(trees: Sequence[tuple[str, Any]]) -> None:
    """Check objects of `sklearn.tree._tree.Tree`, given with their places."""
    batch: list[tuple[str, Any]] = []
    n_nodes = 0
    for where, tree in trees:
        count(f"{where}.n_features", tree.n_features)
        require(tree.n_outputs == 1, where, "has several outputs. Expected 1.")
        same = tree.node_count == tree.capacity >= 1
        require(same, where, "announces another number of nodes than it holds.")
        batch.append((where, tree))
        n_nodes += tree.node_count
        if n_nodes > _NODES_AT_ONCE:
            _check_nodes(batch)
            batch, n_nodes = [], 0
    _check_nodes(batch)


def _check_nodes(trees: Sequence[tuple[str, Any]]) -> None:
    if not trees:
        return
    states = [tree.__getstate__() for _, tree in trees]
    nodes = np.concatenate([state["nodes"] for state in states])
    sizes = np.array([len(state["nodes"]) for state in states])
    left, right = nodes["left_child"], nodes["right_child"]
    inner = left != _LEAF

    def name(position: int) -> str:
        return trees[position][0]

    def all_hold(holds: BoolArray, problem: str) -> None:
        if not holds.all():
            raise ContentError(f"{name(int(np.repeat(np.arange(len(sizes)), sizes)[np.argmin(holds)]))} {problem}")

    all_hold(inner == (right != _LEAF), "has a node with one child.")
    depths = tree_depths(sizes, left, right, inner, name)
    n_features = np.repeat([tree.n_features for _, tree in trees], sizes)
    all_hold(~inner | ((nodes["feature"] >= 0) & (nodes["feature"] < n_features)), "reads a column that is not there.")
    all_hold(~(inner & np.isnan(nodes["threshold"])), "has a threshold that is NaN.")
    for (where, tree), depth, state in zip(trees, depths, states, strict=True):
        require(depth <= tree.max_depth, where, "is deeper than it announces.")
        array(f"{where}.value", state["values"], (-1, 1, -1))


def check_tree_estimator(where: str, estimator: Any) -> None:
    """Check a single decision tree: its tree fits its columns and classes."""
    _check_outputs(where, estimator)
    _fits(where, estimator, estimator.n_features_in_, _n_classes(where, estimator))


def check_forest(where: str, forest: Any) -> None:
    """Check that the trees of a forest, of AdaBoost or of bagging fit its columns and classes."""
    trees = forest.estimators_
    require(isinstance(trees, list) and trees, where, "has no list of trees.")
    n_classes = _n_classes(where, forest)
    chosen = getattr(forest, "estimators_features_", None)
    if chosen is not None:
        require(len(chosen) == len(trees), where, f"has {len(trees)} trees but {len(chosen)} choices of columns.")
    for k, tree in enumerate(trees):
        n_features = forest.n_features_in_
        if chosen is not None:
            n_features = len(indices(f"{where}.estimators_features_[{k}]", chosen[k], forest.n_features_in_))
        _fits(f"{where}.estimators_[{k}]", tree, n_features, n_classes)
    if (weights := getattr(forest, "estimator_weights_", None)) is not None:
        found = array(f"{where}.estimator_weights_", weights, (-1,))
        require(len(found) >= len(trees), where, f"has {len(trees)} trees but {len(found)} weights.")
        require((found >= 0).all() and found[: len(trees)].sum() > 0, where, "has weights that are no weights.")


def check_gradient_boosting(where: str, model: Any) -> None:
    """Check `GradientBoostingClassifier` and `GradientBoostingRegressor`: one tree per round and output."""
    trees = model.estimators_
    per_round = count(f"{where}.n_trees_per_iteration_", model.n_trees_per_iteration_)
    n_classes = _n_classes(where, model)
    expected = n_classes if n_classes > 2 else 1
    require(per_round == expected, where, f"has {per_round} trees per round. Expected {expected}.")
    array(f"{where}.estimators_", trees, (-1, per_round), kinds="O")
    for k, tree in enumerate(trees.ravel()):
        _fits(f"{where}.estimators_[{k // per_round}, {k % per_round}]", tree, model.n_features_in_, 1)
    require(np.isfinite(model.learning_rate), where, "has a learning rate that is not finite.")


def _fits(where: str, estimator: Any, n_features: int, n_classes: int) -> None:
    tree = getattr(estimator, "tree_", None)
    require(type(tree).__name__ == "Tree", where, "has something else for a tree.")
    assert tree is not None
    if tree.n_features != n_features:
        raise ContentError(f"{where} reads {tree.n_features} columns. Expected {n_features}.")
    if tree.max_n_classes != n_classes or tree.n_outputs != 1:
        raise ContentError(f"{where} has {tree.max_n_classes} values per node. Expected {n_classes}.")


def _n_classes(where: str, estimator: Any) -> int:
    """Return how many values a node of the trees has: one per class, or one for regression."""
    if not hasattr(estimator, "classes_"):
        return 1
    n_classes = len(array(f"{where}.classes_", estimator.classes_, (-1,), kinds="iuf"))
    same = np.ndim(estimator.n_classes_) == 0 and int(estimator.n_classes_) == n_classes
    require(same, where, f"names {n_classes} classes but announces {estimator.n_classes_}.")
    return n_classes


def _check_outputs(where: str, estimator: Any) -> None:
    require(estimator.n_outputs_ == 1, where, f"has {estimator.n_outputs_} outputs. Expected 1.")
