"""LightGBM, followed over its rounds."""

from __future__ import annotations

from typing import Any

from lightgbm import Booster, Dataset

from cashmere.base.arrays import FloatArray
from cashmere.space.path import PathData
from cashmere.space.paths.boosted import fitted_shell, predictions_of
from cashmere.space.paths.leaf_weights import least_leaf_weight
from cashmere.space.paths.log_links import LOGS_OF_LIGHTGBM

_OURS = ("n_estimators", "category_columns", "class_weight", "importance_type", "objective")
"""Parameters of the estimator that the library does not know or that are set here."""


class LightGBMPath:
    """See `cashmere.space.path.FittedPath`."""

    def __init__(self, learner: Any, data: PathData) -> None:
        self._learner, self._data = learner, data
        parameters = {name: value for name, value in learner.get_params().items() if name not in _OURS}
        parameters |= _objective(data.n_classes, learner.objective)
        if (least := least_leaf_weight(learner, data)) is not None:
            parameters["min_child_weight"] = least
        columns: Any = learner.get_params().get("category_columns") or "auto"
        # A booster hands no parameters to its data set, which would then drop the columns in which no split leaves 20
        # rows, LightGBM's own default, on both sides.
        rows = Dataset(data.X, data.y, weight=data.weight, categorical_feature=columns, params=dict(parameters))
        self._booster = Booster(parameters, rows)
        self._raw: Any = 0.0
        self._n_rounds = self._n_predicted = 0
        self._is_exhausted = False

    def advance(self, position: float) -> None:
        """Grow more rounds of trees."""
        while self._n_rounds < position and not self._is_exhausted:
            self._is_exhausted = self._booster.update()  # no further split would help
            self._n_rounds += 1

    def predict(self) -> FloatArray:
        """Add the predictions of the new trees."""
        n_new = self._n_rounds - self._n_predicted
        if n_new:
            self._raw = self._raw + self._booster.predict(
                self._data.unseen,
                start_iteration=self._n_predicted,
                num_iteration=n_new,
                raw_score=True,
                num_threads=self._data.n_threads,
            )
            self._n_predicted = self._n_rounds
        return predictions_of(self._raw, self._data.n_classes, are_logs=self._learner.objective in LOGS_OF_LIGHTGBM)

    def learner_at(self, position: float) -> Any:
        """Return a learner with the first rounds."""
        learner = fitted_shell(self._learner, self._data)
        learner.n_estimators = int(position)
        learner.take(self._booster, min(int(position), self._n_rounds))
        return learner


def _objective(n_classes: int, of_values: str | None) -> dict[str, Any]:
    if n_classes == 1:
        return {"objective": of_values or "regression"}
    return {"objective": "binary"} if n_classes == 2 else {"objective": "multiclass", "num_class": n_classes}
