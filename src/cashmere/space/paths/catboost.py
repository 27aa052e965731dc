"""CatBoost, followed over its rounds: each stretch continues the model of the one before."""

from __future__ import annotations

from typing import Any

import numpy as np

from cashmere.base.arrays import FloatArray
from cashmere.space.estimators.category_catboost import pool_of
from cashmere.space.path import PathData


class CatBoostPath:
    """See `cashmere.space.path.FittedPath`."""

    def __init__(self, learner: Any, data: PathData) -> None:
        self._learner, self._data = learner, data
        self._rows = pool_of(learner, data.X, data.y, data.weight)
        self._unseen = pool_of(learner, data.unseen)
        self._model: Any = None
        self._n_rounds = 0

    def advance(self, position: float) -> None:
        """Grow more rounds of trees."""
        if self._n_rounds < position:
            stretch = self._learner.copy()
            seed = self._learner.get_params()["random_seed"]
            # Every stretch starts from its seed: with equal seeds, all would draw the same rows.
            stretch.set_params(iterations=int(position) - self._n_rounds, random_seed=(seed + self._n_rounds) % 2**31)
            self._model = stretch.fit(self._rows, init_model=self._model)
            self._n_rounds = int(position)

    def predict(self) -> FloatArray:
        """Apply all trees."""
        kind = "RawFormulaVal" if self._data.n_classes == 1 else "Probability"
        return np.asarray(self._model.predict(self._unseen, prediction_type=kind, thread_count=self._data.n_threads))

    def learner_at(self, position: float) -> Any:
        """Return a learner with the first rounds."""
        learner = self._model.copy()
        if position < self._n_rounds:
            learner.shrink(ntree_end=int(position))
        return learner
