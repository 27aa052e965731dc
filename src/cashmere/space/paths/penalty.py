"""Linear models, followed over their penalty, from strong to weak."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from cashmere.base.arrays import AnyArray, FloatArray
from cashmere.space.path import PathData


class LogisticPath:
    """See `cashmere.space.path.FittedPath`; positions are values of ``C``, and each fit starts from the last."""

    def __init__(self, learner: Any, data: PathData) -> None:
        self._learner, self._data = learner.set_params(warm_start=True), data
        self._fitted: dict[float, tuple[AnyArray, AnyArray, AnyArray]] = {}

    def advance(self, position: float) -> None:
        """Fit with a weaker penalty."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._learner.set_params(C=position).fit(self._data.X, self._data.y, sample_weight=self._data.weight)
        learner = self._learner
        self._fitted[position] = (learner.coef_.copy(), learner.intercept_.copy(), learner.n_iter_.copy())

    def predict(self) -> FloatArray:
        """Apply the latest fit."""
        predicted: FloatArray = self._learner.predict_proba(self._data.unseen)
        return predicted

    def learner_at(self, position: float) -> Any:
        """Return the learner of an earlier fit."""
        learner = copy.copy(self._learner).set_params(C=position, warm_start=False)
        learner.coef_, learner.intercept_, learner.n_iter_ = self._fitted[position]
        return learner


class RidgePath:
    """See `cashmere.space.path.FittedPath`; positions are values of ``alpha``.

    All solutions come from one eigendecomposition of the matrix of products: of columns or, if there are fewer, of
    rows.
    """

    def __init__(self, learner: Any, data: PathData) -> None:
        self._learner, self._data = learner, data
        weight = np.ones(len(data.y)) if data.weight is None else np.asarray(data.weight, dtype=np.float64)
        X = np.asarray(data.X, dtype=np.float64)
        y = np.asarray(data.y, dtype=np.float64)
        self._X_mean, self._y_mean = np.average(X, axis=0, weights=weight), np.average(y, weights=weight)
        root = np.sqrt(weight)
        X, y = (X - self._X_mean) * root[:, None], (y - self._y_mean) * root
        self._X = X if len(X) < X.shape[1] else None
        if self._X is None:
            values, self._vectors = eigh(X.T @ X)
            self._projected = self._vectors.T @ (X.T @ y)
        else:
            values, self._vectors = eigh(X @ X.T)
            self._projected = self._vectors.T @ y
        self._values = np.maximum(values, 0.0)
        self._alpha = 1.0

    def _coefficients(self, alpha: float) -> FloatArray:
        solution: FloatArray = self._vectors @ (self._projected / (self._values + alpha))
        return solution if self._X is None else self._X.T @ solution

    def advance(self, position: float) -> None:
        """Set another penalty; nothing is left to fit."""
        self._alpha = position

    def predict(self) -> FloatArray:
        """Apply the solution for the penalty."""
        coefficients = self._coefficients(self._alpha)
        predicted: FloatArray = self._data.unseen @ coefficients + (self._y_mean - self._X_mean @ coefficients)
        return predicted

    def learner_at(self, position: float) -> Any:
        """Return the learner with the solution for a penalty."""
        few = slice(0, 2)
        learner = copy.deepcopy(self._learner).set_params(alpha=position)
        learner.fit(np.asarray(self._data.X[few], dtype=np.float64), self._data.y[few])  # sets all but the solution
        learner.coef_ = self._coefficients(position)
        learner.intercept_ = self._y_mean - self._X_mean @ learner.coef_
        return learner
