"""The discount for cost: lower acquisition values for configurations whose trials take long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from cashmere.base.arrays import Float64, FloatArray
from cashmere.costs.predicted import PredictedSeconds
from cashmere.records.time_left import TimeLeft
from cashmere.records.trial import History
from cashmere.space.encoding import SpaceEncoder

_N_DRAWS = 256
"""Number of configurations, always the same, whose median cost is the largest without a discount."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Discount:
    """Discount to subtract from the logarithm of any acquisition value if the budget of the study is time.

    A value a(x) becomes a(x) / max(1, c(x) / m)^alpha, where c are the predicted seconds, m is their median over the
    space and alpha is the share of the time that is left: what takes longer than usual has to promise more, much more
    at the beginning and no more at the end. Close to the end it is also multiplied by the probability that the trial
    ends in time. Without a budget of time there is no discount.

    Attributes
    ----------
    time_left : TimeLeft or None
        What is left; None if the budget is not time.
    predicted : PredictedSeconds or None
        Learned from the history; None if the budget is not time.
    median : float
        Logarithm of m.

    Notes
    -----
    - In the reference the value is a(x) / c(x)^alpha, so what is cheaper than usual gains. But many candidates share a
      leaf of the forest, and with it their improvement: the cheapest of the leaf would always be chosen, and the search
      would stay in the cheapest corner of an algorithm, such as large learning rates
      (docs/benchmarks.md#costs-under-budgets-of-time).
    - Seconds are those of all rows, although new configurations of a large table are tried on few. The share of the
      rows multiplies all predictions by the same number, which c / m does not contain.

    References
    ----------
    Lee, Eriksson, Perrone and Seeger (2021), A nonmyopic approach to cost-constrained Bayesian optimization, UAI: cost
    cooling, after Lee, Perrone, Archambeau and Seeger (2020), Cost-aware Bayesian optimization, arXiv:2003.10870.
    """

    time_left: TimeLeft | None
    predicted: PredictedSeconds | None
    median: float = 0.0

    @classmethod
    def of(cls, history: History, encoder: SpaceEncoder) -> Self:
        """Learn the seconds of configurations from a history, if its budget is time."""
        if history.time_left is None:
            return cls(time_left=None, predicted=None)
        predicted = PredictedSeconds.learn(encoder, history.observations)
        usual = predicted.mean_log_seconds(encoder.sample(_N_DRAWS, np.random.default_rng(0)))
        return cls(time_left=history.time_left, predicted=predicted, median=float(np.median(usual)))

    @property
    def counts(self) -> bool:
        """Whether cost matters because the budget is time."""
        return self.time_left is not None

    def __call__(self, rows: FloatArray) -> Float64:
        """Return what to subtract from the logarithm of the value of encoded rows ``(n, d)``, shape ``(n,)``."""
        if self.time_left is None or self.predicted is None:
            return np.zeros(len(rows))
        beyond_median = np.maximum(self.predicted.mean_log_seconds(rows) - self.median, 0.0)
        discount = self.time_left.share * beyond_median
        if np.isfinite(self.time_left.seconds):
            discount = discount - self.predicted.log_probability_within(self.time_left.seconds, rows)
        return discount
