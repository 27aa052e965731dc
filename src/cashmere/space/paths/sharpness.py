"""Support vector classification, followed over the sharpness of its probabilities."""

from __future__ import annotations

import copy
from typing import Any

from cashmere.base.arrays import FloatArray
from cashmere.space.estimators.margins import coupled_margins
from cashmere.space.path import PathData


class SharpnessPath:
    """See `cashmere.space.path.FittedPath`; the learner is `CoupledMargins`, which is fitted once."""

    def __init__(self, learner: Any, data: PathData) -> None:
        self._learner = learner.fit(data.X, data.y, sample_weight=data.weight)
        self._margins = self._learner.decision_function(data.unseen)
        self._sharpness = 1.0

    def advance(self, position: float) -> None:
        """Set another sharpness; nothing is left to fit."""
        self._sharpness = position

    def predict(self) -> FloatArray:
        """Squash the margins again."""
        return coupled_margins(self._margins, self._sharpness)

    def learner_at(self, position: float) -> Any:
        """Return the learner with a sharpness."""
        return copy.copy(self._learner).set_params(sharpness=position)
