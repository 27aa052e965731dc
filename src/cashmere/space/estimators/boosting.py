"""Boosting machines that take the columns of category codes as a constructor parameter.

The originals take them as an argument of ``fit`` (LightGBM), or reject columns with many levels (scikit-learn).
These classes also keep their state in a few large arrays: model files with a text of megabytes or thousands of small
trees took longer to write than some models took to fit.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from lightgbm import Booster, LGBMClassifier, LGBMRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

from cashmere.base.arrays import AnyArray, BoolArray, FloatArray
from cashmere.space.estimators.packed_state import PackedState

_TREE_PARTS = ("nodes", "binned_left_cat_bitsets", "raw_left_cat_bitsets")
"""Arrays of a `TreePredictor`, in the order of its constructor."""


_OF_PROCESS = ("_handle", "train_set", "valid_sets")
"""Attributes of a LightGBM booster that are not part of its state."""


class _LightGBMCategories(PackedState):
    """LightGBM with ``category_columns``: positions of the columns that contain non-negative codes or NaN."""

    def fit(self, X: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None) -> Self:
        """Fit the trees."""
        self.__dict__.pop("_text", None)  # of other trees, see `take`
        columns = list(self.category_columns or ()) or "auto"  # type: ignore[attr-defined]
        super().fit(X, y, sample_weight=sample_weight, categorical_feature=columns)  # type: ignore[misc]
        return self

    def _process_params(self, stage: str) -> dict[str, Any]:
        params: dict[str, Any] = super()._process_params(stage)  # type: ignore[misc]
        params.pop("category_columns", None)  # unknown to LightGBM
        return params

    def take(self, booster: Booster, n_rounds: int) -> None:
        """Take over the first rounds of a booster, and keep their text for the model file.

        Without it, LightGBM would write the same text again (docs/benchmarks.md#making-use-of-time).

        Parameters
        ----------
        booster : lightgbm.Booster
            In training or not; it is left as it is.
        n_rounds : int
            Rounds to take over, at least 1.
        """
        text = booster.model_to_string(num_iteration=n_rounds)
        self._Booster = Booster(model_str=text)
        self._text = text

    def __getstate__(self) -> dict[str, Any]:
        raw: Any = super().__getstate__()
        state: dict[str, Any] = dict(raw)
        booster, text = state.pop("_Booster", None), state.pop("_text", None)
        if booster is not None:
            if text is None:
                text = booster.model_to_string(num_iteration=-1)
            state["_booster_text"] = np.frombuffer(text.encode(), dtype=np.uint8)
            state["_booster_rest"] = {name: value for name, value in vars(booster).items() if name not in _OF_PROCESS}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if (text := state.pop("_booster_text", None)) is not None:
            state["_Booster"] = Booster.__new__(Booster)
            handle = np.asarray(text).tobytes().decode()
            state["_Booster"].__setstate__({**state.pop("_booster_rest"), "_handle": handle})
        super().__setstate__(state)  # type: ignore[misc]


class CategoryLGBMClassifier(_LightGBMCategories, LGBMClassifier):  # type: ignore[misc]
    """LightGBM for classes."""

    def __init__(self, *, category_columns: list[int] | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.category_columns = category_columns


class CategoryLGBMRegressor(_LightGBMCategories, LGBMRegressor):  # type: ignore[misc]
    """LightGBM for numbers."""

    def __init__(self, *, category_columns: list[int] | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.category_columns = category_columns


class _HistogramCategories(PackedState):
    """Histogram boosting that treats code columns with more levels than bins as numbers."""

    categorical_features: BoolArray | None
    max_bins: int

    def fit(self, X: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None) -> Self:
        """Fit the trees."""
        marked = self.categorical_features
        self.categorical_features = _narrow(marked, X, self.max_bins)
        try:
            super().fit(X, y, sample_weight=sample_weight)  # type: ignore[misc]
        finally:
            self.categorical_features = marked
        _make_storable(getattr(self, "_preprocessor", None))
        return self

    def __getstate__(self) -> dict[str, Any]:
        raw: Any = super().__getstate__()
        state: dict[str, Any] = dict(raw)
        if "_predictors" in state:
            rounds = state.pop("_predictors")
            trees = [tree for trees in rounds for tree in trees]
            state["_trees_per_round"] = len(rounds[0]) if rounds else 1
            for name in _TREE_PARTS:
                parts = [getattr(tree, name) for tree in trees]
                state[f"_packed_{name}"] = np.concatenate(parts) if parts else None
                state[f"_sizes_{name}"] = np.array([len(part) for part in parts], dtype=np.int64)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if (n := state.pop("_trees_per_round", None)) is not None:
            parts = []
            for name in _TREE_PARTS:
                packed, ends = state.pop(f"_packed_{name}"), np.cumsum(state.pop(f"_sizes_{name}"))
                parts.append([] if packed is None else np.split(packed, ends[:-1]))
            trees = [TreePredictor(*arrays) for arrays in zip(*parts, strict=True)]
            state["_predictors"] = [trees[i : i + n] for i in range(0, len(trees), n)]
        super().__setstate__(state)  # type: ignore[misc]


class CategoryHistogramClassifier(_HistogramCategories, HistGradientBoostingClassifier):  # type: ignore[misc]
    """Histogram boosting for classes."""


class CategoryHistogramRegressor(_HistogramCategories, HistGradientBoostingRegressor):  # type: ignore[misc]
    """Histogram boosting for numbers."""


def _narrow(marked: BoolArray | None, X: FloatArray, max_levels: int) -> BoolArray | None:
    """Return the marked columns with few enough levels, or None if there is none."""
    if marked is None:
        return None
    narrow = np.zeros(X.shape[1], dtype=bool)
    for column in np.flatnonzero(marked):
        values = X[:, column]
        narrow[column] = len(np.unique(values[~np.isnan(values)])) <= max_levels
    return narrow if narrow.any() else None


def _make_storable(preprocessor: Any) -> None:
    """Remove from scikit-learn's category coder what a model file should not have to trust.

    It checks number columns by a `functools.partial`, without which they pass unchanged. Columns with gaps are keys of
    a dictionary; in our model files, keys are texts or `numpy.int64`.
    """
    if preprocessor is not None:
        for _, transformer, _ in (*preprocessor.transformers, *preprocessor.transformers_):
            if hasattr(transformer, "func"):
                transformer.func = None
            if hasattr(transformer, "_missing_indices"):
                transformer._missing_indices = {np.int64(k): place for k, place in transformer._missing_indices.items()}
