"""Estimators that the space ``autosklearn6`` needs in addition to scikit-learn's.

Import this module only where a pipeline is built: it loads scikit-learn.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_sample_weight

from cashmere.base.arrays import AnyArray, FloatArray
from cashmere.space.component import MAX_BYTES, MAX_COLUMNS

MISSING_LEVEL = -1.0
"""Code of missing categories; codes of the table are 0, 1, ..."""

RARE_LEVEL = -2.0
"""Code of all merged categories."""


class LevelMerger(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn missing categories into a separate level, then merge rare levels into one.

    Parameters
    ----------
    columns : list of int
        Columns that hold category codes, NaN where missing; the others are left unchanged.
    minimum_fraction : float
        Levels (missing is one) with a smaller share of the training rows are merged; later, so are levels absent from
        the training rows. 0 merges nothing.
    """

    def __init__(self, columns: list[int], minimum_fraction: float) -> None:
        self.columns = columns
        self.minimum_fraction = minimum_fraction

    def fit(self, X: FloatArray, y: AnyArray | None = None) -> Self:
        """Count the levels of ``X`` ``(n_rows, n_features)``."""
        self.kept_levels_ = []
        for codes in self._codes(X).T:
            levels, counts = np.unique(codes, return_counts=True)
            self.kept_levels_.append(levels[counts >= self.minimum_fraction * len(codes)])
        return self

    def transform(self, X: FloatArray) -> FloatArray:
        """Return a copy of ``X`` without gaps in the category columns."""
        result = X.copy()
        codes = self._codes(X)
        if self.minimum_fraction > 0:
            for column, kept in zip(codes.T, self.kept_levels_, strict=True):
                column[~np.isin(column, kept)] = RARE_LEVEL
        result[:, self.columns] = codes
        return result

    def _codes(self, X: FloatArray) -> FloatArray:
        codes: Any = X[:, self.columns]
        return np.where(np.isnan(codes), X.dtype.type(MISSING_LEVEL), codes)


class LimitedOneHotEncoder(OneHotEncoder):  # type: ignore[misc]
    """One-hot encoder that raises an error instead of exceeding the size limits of feature operators."""

    def fit(self, X: FloatArray, y: AnyArray | None = None) -> Self:
        """Learn the levels.

        Raises
        ------
        ValueError
            If there are too many levels.
        """
        super().fit(X)
        n_columns = sum(len(levels) for levels in self.categories_)
        size = n_columns * len(X) * np.dtype(self.dtype).itemsize
        if n_columns > MAX_COLUMNS or size > MAX_BYTES:
            raise ValueError(
                f"One-hot encoding would make {n_columns} columns ({size / 2**20:.0f} MiB); "
                f"the limits are {MAX_COLUMNS} columns and {MAX_BYTES / 2**20:.0f} MiB. Merge rare levels."
            )
        return self


class BalancedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier that gives every class the same weight: rows weigh the inverse of the share of their class.

    Parameters
    ----------
    estimator : classifier
        Learner whose ``fit`` takes ``sample_weight``.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None) -> Self:
        """Fit a copy of the estimator; given weights are multiplied."""
        weight = compute_sample_weight("balanced", y)
        if sample_weight is not None:
            weight = weight * sample_weight
        self.estimator_ = clone(self.estimator).fit(X, y, sample_weight=weight)
        self.classes_ = self.estimator_.classes_
        return self

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return the probabilities of the fitted copy, ``(n_samples, n_classes)``."""
        probabilities: FloatArray = self.estimator_.predict_proba(X)
        return probabilities

    def predict(self, X: FloatArray) -> AnyArray:
        """Return the labels predicted by the fitted copy."""
        labels: AnyArray = self.estimator_.predict(X)
        return labels


class NegativeClipper(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Set negative numbers to zero, for learners of counts."""

    def fit(self, X: Any, y: AnyArray | None = None) -> Self:
        """Learn nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Return the non-negative matrix, sparse if ``X`` is."""
        matrix: Any = X
        return matrix.maximum(0) if sparse.issparse(X) else np.maximum(matrix, 0)


class DoublePrecision(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn the prepared float32 into float64, for learners that sum many large terms.

    Naive Bayes subtracts log-likelihoods of 1e8 and more: in float32, both of two classes may get probability 1.
    """

    def fit(self, X: Any, y: AnyArray | None = None) -> Self:
        """Learn nothing."""
        return self

    def transform(self, X: Any) -> Any:
        """Return the same matrix in double precision, sparse if ``X`` is."""
        return X.astype(np.float64)


class RelativeDepthTree(DecisionTreeClassifier):  # type: ignore[misc]
    """Decision tree whose ``max_depth`` is a multiple of the number of columns; at least 1."""

    max_depth: Any

    def fit(self, X: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None) -> Self:
        """Grow the tree."""
        factor = self.max_depth
        self.max_depth = max(1, round(factor * X.shape[1]))
        try:
            super().fit(X, y, sample_weight=sample_weight)
        finally:
            self.max_depth = factor
        return self
