"""Forests, followed over their trees."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from cashmere.base.arrays import FloatArray
from cashmere.space.path import PathData


class ForestPath:
    """See `cashmere.space.path.FittedPath`."""

    def __init__(self, learner: Any, data: PathData) -> None:
        self._learner, self._data = learner.set_params(warm_start=True), data
        self._unseen = np.ascontiguousarray(data.unseen, dtype=np.float32)
        self._sum: Any = 0.0
        self._n_trees = self._n_predicted = 0

    def advance(self, position: float) -> None:
        """Grow more trees."""
        data = self._data
        if position > self._n_trees:
            self._learner.set_params(n_estimators=int(position), n_jobs=data.n_threads)
            self._learner.fit(data.X, data.y, sample_weight=data.weight)
            self._n_trees = int(position)

    def predict(self) -> FloatArray:
        """Add the predictions of the new trees."""
        for tree in self._learner.estimators_[self._n_predicted :]:
            predict = tree.predict_proba if self._data.n_classes > 1 else tree.predict
            self._sum = self._sum + predict(self._unseen, check_input=False)
        self._n_predicted = self._n_trees
        mean: FloatArray = self._sum / self._n_trees
        return mean

    def learner_at(self, position: float) -> Any:
        """Return a learner with the first trees."""
        learner = copy.copy(self._learner).set_params(warm_start=False, n_estimators=int(position))
        learner.estimators_ = self._learner.estimators_[: int(position)]
        return learner
