"""Neural networks, followed over their epochs."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from cashmere.base.arrays import FloatArray
from cashmere.space.path import PathData
from cashmere.space.paths.adam import AdamEpochs


class EpochsPath:
    """See `cashmere.space.path.FittedPath`."""

    def __init__(self, learner: Any, data: PathData) -> None:
        # No rows are set aside for early stopping: the unseen rows decide when to stop.
        self._learner, self._data = learner.set_params(early_stopping=False), data
        self._layers: dict[float, tuple[list[FloatArray], list[FloatArray], dict[str, int]]] = {}
        self._adam: AdamEpochs | None = None
        self._n_epochs = 0

    def advance(self, position: float) -> None:
        """Learn for more epochs."""
        learner = self._learner
        while self._n_epochs < position:
            if self._adam is None:
                self._adam = self._begin()
            else:
                self._adam.learn()
            self._n_epochs += 1
        # The library's curve of training losses ends with the first epoch, the only one that it runs.
        counts = {"n_iter_": self._n_epochs, "t_": self._n_epochs * len(self._data.X)}
        self._layers[position] = ([w.copy() for w in learner.coefs_], [b.copy() for b in learner.intercepts_], counts)

    def _begin(self) -> AdamEpochs:
        """Let the library draw the weights and train for an epoch."""
        data = self._data
        classes = {"classes": np.arange(data.n_classes)} if data.n_classes > 1 else {}
        self._learner.partial_fit(data.X, data.y, sample_weight=data.weight, **classes)
        return AdamEpochs(self._learner, data)

    def predict(self) -> FloatArray:
        """Apply the present network."""
        predict = self._learner.predict_proba if self._data.n_classes > 1 else self._learner.predict
        predicted: FloatArray = predict(self._data.unseen)
        return predicted

    def learner_at(self, position: float) -> Any:
        """Return a learner with the weights at that position."""
        learner = copy.copy(self._learner)
        learner.coefs_, learner.intercepts_, counts = self._layers[position]
        for name, value in counts.items():
            setattr(learner, name, value)
        return learner
