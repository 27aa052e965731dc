"""XGBoost, followed over its rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import xgboost

from cashmere.base.arrays import FloatArray
from cashmere.space.path import PathData
from cashmere.space.paths.boosted import fitted_shell, predictions_of
from cashmere.space.paths.leaf_weights import least_leaf_weight
from cashmere.space.paths.log_links import LOGS_OF_XGBOOST


class XGBoostPath:
    """See `cashmere.space.path.FittedPath`."""

    def __init__(self, learner: Any, data: PathData) -> None:
        self._learner, self._data = learner, data
        parameters = {**learner.get_xgb_params(), **_objective(data.n_classes)}
        if (least := least_leaf_weight(learner, data)) is not None:
            given = parameters.get("min_child_weight")
            parameters["min_child_weight"] = least * (1.0 if given is None else given)
        # All boosters of a process draw from one generator, and creating any of them, even a slice for a checkpoint,
        # seeds it again. With a seed for each round, folds depend neither on each other nor on checkpoints.
        parameters["seed_per_iteration"] = True
        kinds = learner.get_params().get("feature_types")
        described = {"feature_types": kinds, "enable_categorical": kinds is not None, "nthread": data.n_threads}
        rows = xgboost.QuantileDMatrix(
            data.X, data.y, weight=data.weight, max_bin=parameters.get("max_bin") or 256, **described
        )
        # The booster caches its predictions for the matrices it is given, so each tree is applied once. The quantile
        # loss requires targets for all of them.
        targets = np.zeros(len(data.unseen)) if data.n_classes == 1 else None
        self._unseen = xgboost.DMatrix(data.unseen, targets, **described)
        self._booster = xgboost.Booster(parameters, [rows, self._unseen])
        self._rows = rows
        self._n_rounds = 0

    def advance(self, position: float) -> None:
        """Grow more rounds of trees."""
        while self._n_rounds < position:
            self._booster.update(self._rows, self._n_rounds)
            self._n_rounds += 1

    def predict(self) -> FloatArray:
        """Apply the new trees; predictions of the others are cached."""
        margins = self._booster.predict(self._unseen, output_margin=True)
        return predictions_of(margins, self._data.n_classes, are_logs=self._learner.objective in LOGS_OF_XGBOOST)

    def learner_at(self, position: float) -> Any:
        """Return a learner with the first rounds."""
        learner = fitted_shell(self._learner, self._data)
        learner.n_estimators = int(position)
        learner._Booster = self._booster[: int(position)]
        return learner


def _objective(n_classes: int) -> dict[str, Any]:
    if n_classes == 1:
        return {}  # the learner's
    if n_classes == 2:
        return {"objective": "binary:logistic"}
    return {"objective": "multi:softprob", "num_class": n_classes}
