"""Numbers far away from all others, brought closer."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from cashmere.base.arrays import AnyArray, BoolArray, FloatArray
from cashmere.data.column_values import LARGEST

_SHARE = 0.005
"""Share of the rows, on either side, that may be outliers."""

_MOST_ROWS = 100_000
"""Bounds are learned from at most this many rows, evenly spaced."""


class OutlierClipper(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Clip single numbers that are far away from all others, such as errors of sensors.

    One such number determines the mean and the deviation by which a column is scaled, and the range in which extremely
    randomised trees draw their splits: the other rows then hardly differ.

    Parameters
    ----------
    categorical : (n_features,) bool array
        Columns that hold category codes, which stay as they are.
    factor : float
        Distance of a bound from the median, relative to that of the quantile for 0.5 % or 99.5 %. With 3, columns with
        long tails stay as they are; with 1, every column loses its tails.

    Attributes
    ----------
    least_, most_ : (n_features,) arrays
        Bounds, of the type of the columns; ``-LARGEST`` and ``LARGEST`` for columns that stay as they are.

    References
    ----------
    Ours; figures in docs/benchmarks.md#outliers.
    """

    def __init__(self, categorical: BoolArray, factor: float = 3.0) -> None:
        self.categorical = categorical
        self.factor = factor

    def fit(self, X: AnyArray, y: AnyArray | None = None) -> Self:
        """Learn the bounds of each column of ``(n_rows, n_features)``; NaN are ignored."""
        X = np.asarray(X)
        self.n_features_in_ = X.shape[1]
        rows = X[:: 1 + (len(X) - 1) // _MOST_ROWS]
        bounds = np.array([_bounds(column[~np.isnan(column)], self.factor) for column in rows.T]).reshape(-1, 2)
        bounds[np.asarray(self.categorical)] = -LARGEST, LARGEST
        self.least_, self.most_ = np.clip(bounds, -LARGEST, LARGEST).T.astype(X.dtype)
        return self

    def transform(self, X: AnyArray) -> AnyArray:
        """Return the columns within their bounds, of the same type; NaN stay."""
        clipped: AnyArray = np.clip(X, self.least_, self.most_)
        return clipped


def _bounds(numbers: FloatArray, factor: float) -> tuple[float, float]:
    """Return the bounds of a column; infinite on a side where the quantile equals the median."""
    n = len(numbers)
    if n == 0:
        return -np.inf, np.inf
    n_outliers = min(int(np.ceil(_SHARE * n)), (n - 1) // 2)
    positions = [n_outliers, n // 2, n - 1 - n_outliers]
    low, median, high = np.partition(numbers, positions)[positions].astype(np.float64)
    least = median - factor * (median - low) if low < median else -np.inf
    most = median + factor * (high - median) if high > median else np.inf
    return least, most
