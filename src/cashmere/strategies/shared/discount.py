"""The discount for cost: what its seconds take off the acquisition value of a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import FloatArray
from cashmere.costs.predicted import PredictedSeconds
from cashmere.records.time_left import TimeLeft
from cashmere.records.trial import History
from cashmere.space.encoding import SpaceEncoder


@dataclass(frozen=True, kw_only=True, eq=False)
class Discount:
    """Subtracted from the logarithm of any acquisition value when the budget of the study is time.

    A value a(x) becomes a(x) / c(x)^alpha, where c are the predicted seconds and alpha is the share of the time that is
    left: improvement per second at the beginning, improvement alone at the end. Close to the end it is also multiplied
    by the probability that the trial ends in time. Without a budget of time there is no discount.

    Attributes
    ----------
    time_left : TimeLeft or None
        What is left; None if the budget is not time.
    predicted : PredictedSeconds or None
        Of the history; None if the budget is not time.

    References
    ----------
    Lee, Eriksson, Perrone and Seeger (2021), A nonmyopic approach to cost-constrained Bayesian optimization, UAI: cost
    cooling, after Lee, Perrone, Archambeau and Seeger (2020), Cost-aware Bayesian optimization, arXiv:2003.10870.
    """

    time_left: TimeLeft | None
    predicted: PredictedSeconds | None

    @classmethod
    def of(cls, history: History, encoder: SpaceEncoder) -> Self:
        """Learn the seconds of configurations from a history, if its budget is time."""
        if history.time_left is None:
            return cls(time_left=None, predicted=None)
        return cls(time_left=history.time_left, predicted=PredictedSeconds.learn(encoder, history.observations))

    @property
    def counts(self) -> bool:
        """Whether cost matters: the budget is time."""
        return self.time_left is not None

    def __call__(self, rows: FloatArray) -> NDArray[np.float64]:
        """Return what to subtract from the logarithm of the value of encoded rows ``(n, d)``, shape ``(n,)``."""
        if self.time_left is None or self.predicted is None:
            return np.zeros(len(rows))
        discount = self.time_left.share * self.predicted.mean_log_seconds(rows)
        if np.isfinite(self.time_left.seconds):
            discount = discount - self.predicted.log_probability_within(self.time_left.seconds, rows)
        return discount
