"""XGBoost, followed over its rounds."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import xgboost
from scipy.special import expit, softmax

from cashmere.base.arrays import FloatArray
from cashmere.space.path import PathData


class XGBoostPath:
    """See `cashmere.space.path.FittedPath`."""

    def __init__(self, learner: Any, data: PathData) -> None:
        self._learner, self._data = learner, data
        parameters = {**learner.get_xgb_params(), **_objective(data.n_classes)}
        kinds = learner.get_params().get("feature_types")
        described = {"feature_types": kinds, "enable_categorical": kinds is not None, "nthread": data.n_threads}
        rows = xgboost.QuantileDMatrix(
            data.X, data.y, weight=data.weight, max_bin=parameters.get("max_bin") or 256, **described
        )
        # The booster remembers what its trees say about matrices it was given: each tree is applied once.
        self._unseen = xgboost.DMatrix(data.unseen, **described)
        self._booster = xgboost.Booster(parameters, [rows, self._unseen])
        self._rows = rows
        self._n_rounds = 0

    def advance(self, position: float) -> None:
        """Grow more rounds of trees."""
        while self._n_rounds < position:
            self._booster.update(self._rows, self._n_rounds)
            self._n_rounds += 1

    def predict(self) -> FloatArray:
        """Apply the new trees; the others are remembered."""
        raw = self._booster.predict(self._unseen, output_margin=True)
        if self._data.n_classes == 1:
            return np.asarray(raw)
        if self._data.n_classes == 2:
            positive = expit(raw)
            return np.column_stack([1 - positive, positive])
        probabilities: FloatArray = softmax(raw, axis=1)
        return probabilities

    def learner_at(self, position: float) -> Any:
        """Return a learner with the first rounds."""
        data = self._data
        one_of_each = np.unique(data.y, return_index=True)[1] if data.n_classes > 1 else np.arange(min(2, len(data.y)))
        learner = copy.deepcopy(self._learner).set_params(n_estimators=1)
        learner.fit(np.asarray(data.X[one_of_each]), data.y[one_of_each])  # sets all but the trees
        learner.n_estimators = int(position)
        learner._Booster = self._booster[: int(position)]
        return learner


def _objective(n_classes: int) -> dict[str, Any]:
    if n_classes == 1:
        return {"objective": "reg:squarederror"}
    if n_classes == 2:
        return {"objective": "binary:logistic"}
    return {"objective": "multi:softprob", "num_class": n_classes}
