"""Epochs of a network's fit, without the checks, losses and copies of arrays that the library adds."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax

from cashmere.base.arrays import FloatArray, IntArray
from cashmere.space.estimators.adamw import AdamW, WeightGroup, views_of
from cashmere.space.path import PathData

_DECAYS = (0.9, 0.999)


class AdamEpochs:
    """Continue the fit of scikit-learn's networks (ReLU, Adam) after their first epoch.

    Steps of a small network take a third of the library's time. All weights and biases are views of one array.

    Parameters
    ----------
    learner : MLPClassifier or MLPRegressor
        After its first `partial_fit`; its weights are replaced by equal ones, which `learn` changes.
    data : PathData
        As in that fit.
    """

    def __init__(self, learner: Any, data: PathData) -> None:
        self._X, self._n_classes = data.X, data.n_classes
        self._y = np.eye(data.n_classes)[data.y] if data.n_classes > 2 else np.asarray(data.y)[:, None]
        self._y = self._y.astype(data.X.dtype)
        self._weight: Any = None
        if data.weight is not None:
            self._weight = data.weight.astype(data.X.dtype)[:, None]
        self._batch_size, self._alpha = learner.batch_size, learner.alpha
        # One order for all epochs, as in `partial_fit`: with new ones, losses jump, and paths end too soon.
        self._order = np.random.default_rng(learner.random_state).permutation(len(data.X))
        arrays = [*learner.coefs_, *learner.intercepts_]
        self._all = np.concatenate([each.ravel() for each in arrays])
        self._gradient = np.zeros_like(self._all)
        self._adam = AdamW(self._all, [WeightGroup(size=self._all.size, rate=learner.learning_rate_init)], _DECAYS)
        n_layers = len(learner.coefs_)
        views, gradients = views_of(self._all, arrays), views_of(self._gradient, arrays)
        self._weights, self._biases = views[:n_layers], views[n_layers:]
        self._weight_gradients, self._bias_gradients = gradients[:n_layers], gradients[n_layers:]
        learner.coefs_, learner.intercepts_ = self._weights, self._biases

    def learn(self) -> None:
        """Go through all rows once.

        Raises
        ------
        FloatingPointError
            If a weight becomes NaN or infinite.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for start in range(0, len(self._order), self._batch_size):
                self._compute_gradient(self._order[start : start + self._batch_size])
                self._adam.step(self._gradient)
        if not np.isfinite(self._all).all():
            raise FloatingPointError("a network has diverged")

    def _compute_gradient(self, rows: IntArray) -> None:
        """Backpropagate the mean loss of some rows, with the penalty of the library."""
        inputs = [self._X[rows]]
        for weights, biases in zip(self._weights[:-1], self._biases[:-1], strict=True):
            values = inputs[-1] @ weights
            values += biases
            inputs.append(np.maximum(values, 0, out=values))
        delta = self._output(inputs[-1] @ self._weights[-1] + self._biases[-1])
        delta -= self._y[rows]
        total: Any = len(rows)
        if self._weight is not None:
            delta *= self._weight[rows]
            total = self._weight[rows].sum()
        for k in reversed(range(len(self._weights))):
            np.matmul(inputs[k].T, delta, out=self._weight_gradients[k])
            self._weight_gradients[k] += self._alpha * self._weights[k]
            np.sum(delta, axis=0, out=self._bias_gradients[k])
            if k:
                delta = delta @ self._weights[k].T
                delta *= inputs[k] > 0
        self._gradient /= total

    def _output(self, values: FloatArray) -> FloatArray:
        if self._n_classes == 1:
            return values
        probabilities: FloatArray = expit(values) if self._n_classes == 2 else softmax(values, axis=1)
        return probabilities
