"""Boosting machines that are told by a constructor parameter which columns hold category codes.

Their originals want it as an argument of ``fit`` (LightGBM), or refuse columns with many levels (scikit-learn).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from cashmere.arrays import AnyArray, BoolArray, FloatArray


class _LightGBMCategories:
    """LightGBM with ``category_columns``: numbers of the columns that hold non-negative codes or NaN."""

    def fit(self, X: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None) -> Self:
        """Fit the trees."""
        columns = list(self.category_columns or ()) or "auto"  # type: ignore[attr-defined]
        super().fit(X, y, sample_weight=sample_weight, categorical_feature=columns)  # type: ignore[misc]
        return self

    def _process_params(self, stage: str) -> dict[str, Any]:
        params: dict[str, Any] = super()._process_params(stage)  # type: ignore[misc]
        params.pop("category_columns", None)  # not LightGBM's own
        return params


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


class _HistogramCategories:
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
        _drop_partial(getattr(self, "_preprocessor", None))
        return self


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


def _drop_partial(preprocessor: Any) -> None:
    """Let number columns pass scikit-learn's category coder as they are.

    It checks them by a `functools.partial`, a type that a model file should not have to be trusted with.
    """
    if preprocessor is not None:
        for _, transformer, _ in (*preprocessor.transformers, *preprocessor.transformers_):
            if hasattr(transformer, "func"):
                transformer.func = None
