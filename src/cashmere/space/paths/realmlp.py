"""RealMLP, followed over its epochs: every position is the end of a cycle of the learning rate."""

from __future__ import annotations

import copy
from typing import Any

from cashmere.base.arrays import FloatArray
from cashmere.space.estimators.realmlp_training import FIRST_CYCLE, RealMLPTraining
from cashmere.space.path import PathData


def ends_of_cycles(last: int) -> tuple[int, ...]:
    """Return the epochs at which cycles end, up to `last`; there is at least one.

    Examples
    --------
    >>> ends_of_cycles(150)
    (4, 12, 28, 60, 124)
    """
    ends = [FIRST_CYCLE]
    while 2 * ends[-1] + FIRST_CYCLE <= last:
        ends.append(2 * ends[-1] + FIRST_CYCLE)
    return tuple(ends)


class RealMLPPath:
    """See `cashmere.space.path.FittedPath`."""

    def __init__(self, learner: Any, data: PathData) -> None:
        self._learner, self._data = learner, data
        self._training = RealMLPTraining(learner, data.X, data.y, data.weight)
        self._weights: dict[float, dict[str, Any]] = {}

    def advance(self, position: float) -> None:
        """Learn for more epochs."""
        self._training.learn(position)
        self._weights[position] = self._learner.weights()

    def predict(self) -> FloatArray:
        """Apply the present network."""
        predict = self._learner.predict_proba if self._data.n_classes > 1 else self._learner.predict
        predicted: FloatArray = predict(self._data.unseen)
        return predicted

    def learner_at(self, position: float) -> Any:
        """Return a network with the weights at that position."""
        learner = copy.copy(self._learner)
        for name, value in self._weights[position].items():
            setattr(learner, name, value)
        return learner
