"""Columns without gaps and with mean 0 and variance 1, for learners and resamplers that measure distances."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from cashmere.base.arrays import AnyArray, BoolArray, FloatArray


class StandardisedColumns(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fill gaps, then shift and scale every column as learned from the training rows.

    A gap becomes the median of a numeric column, or the most frequent value of a nominal one (`nominal_columns`),
    because a median of codes may lie between two categories. Constant columns become zero.

    Parameters
    ----------
    categorical : (n_features,) bool array
        Columns that hold category codes.
    """

    def __init__(self, categorical: BoolArray) -> None:
        self.categorical = categorical

    def fit(self, X: FloatArray, y: AnyArray | None = None) -> Self:
        """Learn fillings, means and deviations from ``(n_rows, n_features)``."""
        X = np.asarray(X, dtype=np.float64)
        self.n_features_in_ = X.shape[1]
        nominal = nominal_columns(X, self.categorical)
        self.filling_ = np.array([_filling(column, is_nominal=n) for column, n in zip(X.T, nominal, strict=True)])
        X = np.where(np.isnan(X), self.filling_, X)
        self.mean_ = X.mean(axis=0)
        deviation = X.std(axis=0)
        # Rounding may give a constant column a tiny deviation, which would be scaled up to one.
        is_constant = np.ptp(X, axis=0) == 0
        self.scale_ = np.where(is_constant, 1.0, np.where(deviation > 0, deviation, 1.0))
        return self

    def transform(self, X: FloatArray) -> FloatArray:
        """Return ``(n_rows, n_features)`` as float64."""
        X = np.asarray(X, dtype=np.float64)
        result: FloatArray = (np.where(np.isnan(X), self.filling_, X) - self.mean_) / self.scale_
        return result


def nominal_columns(X: FloatArray, categorical: BoolArray) -> BoolArray:
    """Return which columns have values that must not be mixed, shape ``(n_features,)``.

    They are the columns of category codes and those with at most two different values: two-level categories and
    booleans are not marked in the prepared table, and no value between the two was ever seen.
    """
    is_number = ~np.asarray(categorical, dtype=bool)
    nominal = ~is_number
    for j in np.flatnonzero(is_number):
        column = X[:, j]
        nominal[j] = len(np.unique(column[~np.isnan(column)])) <= 2
    return nominal


def _filling(column: FloatArray, *, is_nominal: bool) -> float:
    present = column[~np.isnan(column)]
    if len(present) == 0:
        return 0.0
    if not is_nominal:
        return float(np.median(present))
    values, counts = np.unique(present, return_counts=True)
    return float(values[counts.argmax()])
