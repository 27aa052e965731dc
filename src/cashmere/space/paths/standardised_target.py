"""Regressors with a standardised target, whose inner regressor is followed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from cashmere.base.arrays import FloatArray
from cashmere.space.path import PathData


class StandardisedTargetPath:
    """The path of the regressor inside a `TransformedTargetRegressor`; see `cashmere.space.path.FittedPath`.

    Parameters
    ----------
    follow : callable
        Follows the inner regressor.
    learner : TransformedTargetRegressor
        Unfitted.
    data : PathData
        With the original target.
    """

    def __init__(self, follow: Callable[[Any, PathData], Any], learner: Any, data: PathData) -> None:
        self._learner = learner
        self._transformer = clone(learner.transformer)
        y = self._transformer.fit_transform(np.asarray(data.y, dtype=np.float64)[:, None])[:, 0]
        self._path = follow(clone(learner.regressor), replace(data, y=y))

    def advance(self, position: float) -> None:
        """Continue the inner fit."""
        self._path.advance(position)

    def predict(self) -> FloatArray:
        """Return values in the units of the target."""
        predicted = np.asarray(self._path.predict(), dtype=np.float64)
        values: FloatArray = self._transformer.inverse_transform(predicted[:, None])[:, 0]
        return values

    def learner_at(self, position: float) -> Any:
        """Return the fitted outer regressor."""
        learner = copy.copy(self._learner)
        learner.regressor_, learner.transformer_ = self._path.learner_at(position), self._transformer
        learner._training_dim = 1
        return learner
