"""CatBoost on a matrix of floats, some columns of which are codes of categories.

The library accepts categories only as integers or texts, in a table with columns of several types.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier, CatBoostRegressor, Pool

from cashmere.base.arrays import AnyArray, FloatArray

_NO_LEVEL = -1
"""Category of missing values and of levels that were not seen when the table was prepared."""


def pool_of(learner: Any, X: FloatArray, y: AnyArray | None = None, weight: FloatArray | None = None) -> Pool:
    """Return rows as CatBoost reads them.

    Parameters
    ----------
    learner : CatBoostClassifier or CatBoostRegressor
        Its parameter ``cat_features`` lists the columns of non-negative codes or NaN.
    X : (n_rows, n_columns) array
        Rows.
    y, weight : (n_rows,) array, optional
        Targets and row weights.

    Returns
    -------
    Pool
    """
    columns = learner.get_param("cat_features") or None
    if columns is None:
        return Pool(X, y, weight=weight)
    frame = pd.DataFrame(X, copy=False)
    for column in columns:
        codes = X[:, column]
        frame.isetitem(column, np.where(np.isnan(codes), _NO_LEVEL, codes).astype(np.int32))
    return Pool(frame, y, weight=weight, cat_features=columns)


class _CatBoostCategories:
    """CatBoost whose ``cat_features`` are columns of non-negative codes or NaN."""

    def fit(
        self, X: FloatArray | Pool, y: AnyArray | None = None, *, sample_weight: FloatArray | None = None, **kwargs: Any
    ) -> Self:
        """Fit the trees."""
        rows = X if isinstance(X, Pool) else pool_of(self, X, y, sample_weight)
        super().fit(rows, **kwargs)  # type: ignore[misc]
        return self

    def predict(self, data: FloatArray | Pool, *args: Any, **kwargs: Any) -> AnyArray:
        """Return values or classes, like the library."""
        predicted: AnyArray = super().predict(self._rows(data), *args, **kwargs)  # type: ignore[misc]
        return predicted

    def _rows(self, data: FloatArray | Pool) -> Pool:
        return data if isinstance(data, Pool) else pool_of(self, data)


class CategoryCatBoostClassifier(_CatBoostCategories, CatBoostClassifier):  # type: ignore[misc]
    """CatBoost for classes."""

    def predict_proba(self, data: FloatArray | Pool, *args: Any, **kwargs: Any) -> FloatArray:
        """Return probabilities ``(n_rows, n_classes)``."""
        probabilities: FloatArray = super().predict_proba(self._rows(data), *args, **kwargs)
        return probabilities


class CategoryCatBoostRegressor(_CatBoostCategories, CatBoostRegressor):  # type: ignore[misc]
    """CatBoost for numbers."""
