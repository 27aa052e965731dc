"""Neural networks that stop early if the rows allow it, without warnings."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor

from cashmere.base.arrays import AnyArray, FloatArray


class _QuietStop:
    """Stop early on a tenth of the training rows, if there are enough; do not warn at the epoch limit."""

    early_stopping: bool

    def fit(self, X: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None) -> Self:
        """Fit the network."""
        wanted = self.early_stopping
        self.early_stopping = wanted and _can_be_split(y, is_classes=isinstance(self, MLPClassifier))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                super().fit(X, y, sample_weight=sample_weight)  # type: ignore[misc]
        finally:
            self.early_stopping = wanted
        return self


class EarlyStoppedMLPClassifier(_QuietStop, MLPClassifier):  # type: ignore[misc]
    """Multi-layer perceptron for classes."""


class EarlyStoppedMLPRegressor(_QuietStop, MLPRegressor):  # type: ignore[misc]
    """Multi-layer perceptron for numbers."""


def _can_be_split(y: AnyArray, *, is_classes: bool) -> bool:
    """Return whether a stratified tenth can be set aside."""
    if not is_classes:
        return len(y) >= 100
    counts = np.unique(y, return_counts=True)[1]
    return bool(len(y) >= 100 and counts.min() >= 2 and len(counts) <= len(y) // 10)
