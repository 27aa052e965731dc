"""Class probabilities for learners that only have a decision function."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from cashmere.base.arrays import AnyArray, FloatArray


class MarginProbabilities(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier whose probabilities are the squashed margins of another one.

    Two classes: the sigmoid of the margin; more: the softmax over the margins (as in auto-sklearn). The probabilities
    are not calibrated, but their order is that of the margins and their arg max is the prediction.

    Parameters
    ----------
    estimator : classifier
        Learner with ``decision_function``.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: FloatArray, y: AnyArray, sample_weight: FloatArray | None = None) -> Self:
        """Fit a copy of the estimator."""
        weighting = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(X, y, **weighting)
        self.classes_ = self.estimator_.classes_
        self.n_features_in_ = self.estimator_.n_features_in_
        return self

    def decision_function(self, X: FloatArray) -> FloatArray:
        """Return the margins, ``(n_samples,)`` for two classes, else ``(n_samples, n_classes)``."""
        margins: FloatArray = self.estimator_.decision_function(X)
        return margins

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return squashed margins, ``(n_samples, n_classes)``."""
        margins: Any = self.decision_function(X)
        if margins.ndim == 1:
            margins = np.stack([np.zeros_like(margins), margins], axis=1)
        probabilities: FloatArray = softmax(margins, axis=1)
        return probabilities

    def predict(self, X: FloatArray) -> AnyArray:
        """Return the most probable class of each row."""
        labels: AnyArray = self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return labels
