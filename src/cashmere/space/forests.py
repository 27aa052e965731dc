"""Forests that predict the same floats with any number of threads, and such whose ``max_features`` is an exponent.

Threads add up the trees in the order in which they finish, so that the last digits would differ from call to call:
the forests here are grown by ``n_jobs`` threads and predict with one.

An exponent v lets each split look at d^v of the d columns that reach the forest. It means the same for narrow and
wide tables, and the width after a feature operator is known only at fit.
"""

from __future__ import annotations

from typing import Any, Self

from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from cashmere.arrays import AnyArray, FloatArray


class OrderedForestClassifier(RandomForestClassifier):  # type: ignore[misc]
    """Random forest for classes; ``max_features`` as in scikit-learn."""

    def fit(self, X: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None) -> Self:
        """Grow the trees; from now on ``n_jobs`` is 1."""
        super().fit(X, y, sample_weight=sample_weight)
        self.n_jobs = 1
        return self


class _ExponentFeatures:
    """Reads ``max_features`` as an exponent in [0, 1]."""

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


class ExponentForestClassifier(_ExponentFeatures, RandomForestClassifier):  # type: ignore[misc]
    """Random forest for classes."""


class ExponentForestRegressor(_ExponentFeatures, RandomForestRegressor):  # type: ignore[misc]
    """Random forest for numbers."""


class ExponentExtraTreesClassifier(_ExponentFeatures, ExtraTreesClassifier):  # type: ignore[misc]
    """Extremely randomised trees for classes."""


class ExponentExtraTreesRegressor(_ExponentFeatures, ExtraTreesRegressor):  # type: ignore[misc]
    """Extremely randomised trees for numbers."""
