"""Class probabilities for learners that only have a decision function."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from scipy.special import log_expit, softmax
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


class CoupledMargins(MarginProbabilities):
    """Classifier whose probabilities follow from the margins between every two classes.

    Two classes: the sigmoid of the margin times a sharpness. More: the probability of class i is proportional to the
    product over all other classes j of the sigmoid of the sharpness times the margin of i over j.

    Parameters
    ----------
    estimator : classifier
        Learner whose ``decision_function`` compares every two classes: `SVC` with ``decision_function_shape="ovo"``.
    sharpness : float
        How fast probabilities approach 0 and 1 as margins grow.
    """

    def __init__(self, estimator: Any, sharpness: float = 2.0) -> None:
        super().__init__(estimator)
        self.sharpness = sharpness

    def decision_function(self, X: FloatArray) -> FloatArray:
        """Return the margins, ``(n_samples,)`` for two classes, else ``(n_samples, n_pairs)``.

        The pairs are (0, 1), (0, 2), ..., (1, 2), ...; a positive margin is for the first class of its pair, but with
        only two classes for the second one.
        """
        return super().decision_function(X)

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return probabilities, ``(n_samples, n_classes)``."""
        return coupled_margins(self.decision_function(X), self.sharpness)


def coupled_margins(margins: FloatArray, sharpness: float) -> FloatArray:
    """Return probabilities of classes, see `CoupledMargins`.

    Parameters
    ----------
    margins : (n_rows,) or (n_rows, n_pairs) array
        As returned by `CoupledMargins.decision_function`.
    sharpness : float
        Factor of the margins.

    Examples
    --------
    >>> coupled_margins(np.array([-1.0, 0.0, 1.0]), 3.0).round(2)[:, 1].tolist()
    [0.05, 0.5, 0.95]
    >>> coupled_margins(np.array([[1.0, 1.0, 0.0]]), 3.0).round(2).tolist()
    [[0.95, 0.02, 0.02]]
    """
    duels = np.asarray(sharpness * margins, dtype=np.float64)
    if duels.ndim == 1:
        duels = -duels[:, None]
    n_classes = (1 + math.isqrt(1 + 8 * duels.shape[1])) // 2
    firsts, seconds = (np.eye(n_classes)[k] for k in np.triu_indices(n_classes, 1))
    probabilities: FloatArray = softmax(log_expit(duels) @ firsts + log_expit(-duels) @ seconds, axis=1)
    return probabilities
