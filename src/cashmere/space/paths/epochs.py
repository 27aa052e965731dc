"""Neural networks, followed over their epochs."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from cashmere.base.arrays import FloatArray
from cashmere.space.path import PathData


class EpochsPath:
    """See `cashmere.space.path.FittedPath`."""

    def __init__(self, learner: Any, data: PathData) -> None:
        # The rows that early stopping would set aside are learned from: the unseen rows say when to stop.
        self._learner, self._data = learner.set_params(early_stopping=False), data
        self._layers: dict[float, tuple[list[FloatArray], list[FloatArray], dict[str, Any]]] = {}
        self._n_epochs = 0

    def advance(self, position: float) -> None:
        """Learn for more epochs."""
        data, learner = self._data, self._learner
        while self._n_epochs < position:
            classes = {"classes": np.arange(data.n_classes)} if data.n_classes > 1 and self._n_epochs == 0 else {}
            try:
                learner.partial_fit(data.X, data.y, sample_weight=data.weight, **classes)
            except ValueError as error:
                if _has_finite_weights(learner):
                    raise
                raise FloatingPointError(f"the network has diverged in epoch {self._n_epochs + 1}") from error
            self._n_epochs += 1
        counts = {name: getattr(learner, name) for name in ("n_iter_", "t_", "loss_", "best_loss_")}
        counts["loss_curve_"] = list(learner.loss_curve_)
        self._layers[position] = ([w.copy() for w in learner.coefs_], [b.copy() for b in learner.intercepts_], counts)

    def predict(self) -> FloatArray:
        """Apply the network as it is."""
        predict = self._learner.predict_proba if self._data.n_classes > 1 else self._learner.predict
        predicted: FloatArray = predict(self._data.unseen)
        return predicted

    def learner_at(self, position: float) -> Any:
        """Return a learner with the weights of then."""
        learner = copy.copy(self._learner)
        learner.coefs_, learner.intercepts_, counts = self._layers[position]
        for name, value in counts.items():
            setattr(learner, name, value)
        return learner


def _has_finite_weights(learner: Any) -> bool:
    """Tell other errors from divergence; there may be no weights yet."""
    weights = (*getattr(learner, "coefs_", ()), *getattr(learner, "intercepts_", ()))
    return all(np.isfinite(each).all() for each in weights)
