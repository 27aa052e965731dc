"""Histogram gradient boosting of scikit-learn, followed over its rounds."""

from __future__ import annotations

import copy
from typing import Any

from cashmere.base.arrays import FloatArray
from cashmere.space.path import PathData


class HistogramPath:
    """See `cashmere.space.path.FittedPath`."""

    def __init__(self, learner: Any, data: PathData) -> None:
        self._learner, self._data = learner.set_params(warm_start=True), data

    def advance(self, position: float) -> None:
        """Grow more rounds of trees."""
        data = self._data
        if position > getattr(self._learner, "n_iter_", 0):
            self._learner.set_params(max_iter=int(position)).fit(data.X, data.y, sample_weight=data.weight)

    def predict(self) -> FloatArray:
        """Apply all trees."""
        predict = self._learner.predict_proba if self._data.n_classes > 1 else self._learner.predict
        predicted: FloatArray = predict(self._data.unseen)
        return predicted

    def learner_at(self, position: float) -> Any:
        """Return a learner with the first rounds."""
        learner = copy.copy(self._learner).set_params(warm_start=False, max_iter=int(position))
        learner._predictors = self._learner._predictors[: int(position)]
        learner.train_score_ = self._learner.train_score_
        return learner
