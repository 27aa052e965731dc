"""Forests that predict the same floats with any number of threads, and forests whose ``max_features`` is an exponent.

Threads add up the trees in the order in which they finish, so the last digits would differ from call to call. These
forests are therefore grown by ``n_jobs`` threads, but predict with one, and without scikit-learn's loop over jobs: it
sets the warning filters of the process anew for each tree, so callers in several threads would destroy them.

Trees are made without copying a tree that was made before, as scikit-learn does: on a few hundred rows, the copy takes
half as long as growing the tree.

An exponent v lets each split use d^v of the d columns that reach the forest. It has the same meaning for narrow and
wide tables, and the width after a feature operator is known only in `fit`.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor

from cashmere.base.arrays import AnyArray, Float64, FloatArray
from cashmere.space.estimators.narrow_trees import from_whole_sums, narrow_nodes, whole_sums
from cashmere.space.estimators.packed_state import PackedState


class _PackedTrees(PackedState):
    """Make trees without copies, and store them in a few large arrays.

    Thousands of small arrays took longer to write than the forest to grow. In files of earlier versions, nodes and
    values have scikit-learn's types.
    """

    estimator_: Any
    estimators_: list[Any]
    estimator_params: tuple[str, ...]

    def _make_estimator(self, append: bool = True, random_state: np.random.RandomState | None = None) -> Any:
        """Return a tree with the parameters and the seed that scikit-learn would give it."""
        tree = type(self.estimator_)(**{name: getattr(self, name) for name in self.estimator_params})
        if random_state is not None:
            tree.random_state = random_state.randint(np.iinfo(np.int32).max)
        if append:
            self.estimators_.append(tree)
        return tree

    def _mean_of_trees(self, X: FloatArray) -> Float64:
        """Return the mean of the values of all trees, shape ``(n_rows, n_values)``; added up as scikit-learn does."""
        rows = self._validate_X_predict(X)  # type: ignore[attr-defined]
        total = np.zeros((rows.shape[0], self.estimators_[0].tree_.max_n_classes))
        for tree in self.estimators_:
            total += tree.tree_.predict(rows)
        return np.divide(total, len(self.estimators_), out=total)

    def __getstate__(self) -> dict[str, Any]:
        raw: Any = super().__getstate__()
        state: dict[str, Any] = dict(raw)
        if trees := state.pop("estimators_", None):
            states = [tree.tree_.__getstate__() for tree in trees]
            nodes, values = (np.concatenate([s[name] for s in states]) for name in ("nodes", "values"))
            state["_packed_nodes"] = narrow_nodes(nodes)
            if (sums := whole_sums(values, nodes)) is None:
                state["_packed_values"] = values
            else:
                state["_packed_sums"] = sums
            state["_packed_sizes"] = np.array([s["node_count"] for s in states])
            state["_packed_depths"] = np.array([s["max_depth"] for s in states])
            state["_packed_seeds"] = np.array([tree.random_state for tree in trees])
            state["_first_tree"] = trees[0]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if (first := state.pop("_first_tree", None)) is not None:
            sizes, depths, seeds = (state.pop(f"_packed_{name}") for name in ("sizes", "depths", "seeds"))
            nodes = state.pop("_packed_nodes").astype(first.tree_.__getstate__()["nodes"].dtype)
            sums = state.pop("_packed_sums", None)
            values = state.pop("_packed_values") if sums is None else from_whole_sums(sums, nodes)
            parts = [np.split(part, np.cumsum(sizes)[:-1]) for part in (nodes, values)]
            constructor, arguments, _ = first.tree_.__reduce__()
            state["estimators_"] = []
            for nodes, values, size, depth, seed in zip(*parts, sizes, depths, seeds, strict=True):
                tree = copy.copy(first)
                tree.random_state = int(seed)
                tree.tree_ = constructor(*arguments)
                tree.tree_.__setstate__(
                    {"max_depth": int(depth), "node_count": int(size), "nodes": nodes, "values": values}
                )
                state["estimators_"].append(tree)
        super().__setstate__(state)  # type: ignore[misc]


class _Probabilities(_PackedTrees):
    def predict_proba(self, X: FloatArray) -> Float64:
        """Return the mean of the probabilities of all trees, shape ``(n_rows, n_classes)``."""
        return self._mean_of_trees(X)


class _Values(_PackedTrees):
    def predict(self, X: FloatArray) -> Float64:
        """Return the mean of the values of all trees, shape ``(n_rows,)``."""
        return self._mean_of_trees(X)[:, 0]


class OrderedForestClassifier(_Probabilities, RandomForestClassifier):  # type: ignore[misc]
    """Random forest for classes; ``max_features`` as in scikit-learn."""

    def fit(self, X: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None) -> Self:
        """Grow the trees; from now on ``n_jobs`` is 1."""
        super().fit(X, y, sample_weight=sample_weight)
        self.n_jobs = 1
        return self


class _ExponentFeatures(_PackedTrees):
    """Read ``max_features`` as an exponent in [0, 1]."""

    max_features: Any
    n_jobs: int | None

    def fit(self, X: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None) -> Self:
        """Grow the trees; from now on ``n_jobs`` is 1."""
        exponent = self.max_features
        self.max_features = max(1, int(X.shape[1] ** exponent))
        try:
            super().fit(X, y, sample_weight=sample_weight)  # type: ignore[misc]
        finally:
            self.max_features = exponent
        self.n_jobs = 1
        return self


class ExponentForestClassifier(_ExponentFeatures, _Probabilities, RandomForestClassifier):  # type: ignore[misc]
    """Random forest for classes."""


class ExponentForestRegressor(_ExponentFeatures, _Values, RandomForestRegressor):  # type: ignore[misc]
    """Random forest for numbers."""


class ExponentExtraTreesClassifier(_ExponentFeatures, _Probabilities, ExtraTreesClassifier):  # type: ignore[misc]
    """Extremely randomised trees for classes."""


class ExponentExtraTreesRegressor(_ExponentFeatures, _Values, ExtraTreesRegressor):  # type: ignore[misc]
    """Extremely randomised trees for numbers."""
