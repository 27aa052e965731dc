"""Choose the next of the configurations that a search starts with, under a time budget."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from ConfigSpace import Configuration

from cashmere.costs.predicted import PredictedSeconds
from cashmere.records.trial import Observation
from cashmere.space.encoding import SpaceEncoder

_LIKELY = 0.5
"""Configurations that are less likely to end in time come last."""


def best_per_second(
    left: Sequence[Configuration],
    gains: Sequence[float],
    *,
    observations: Sequence[Observation],
    encoder: SpaceEncoder,
    seconds: float,
    share: float = 1.0,
) -> Configuration:
    """Return the configuration with the largest gain per predicted second.

    Those that are unlikely to end in time come last.

    Parameters
    ----------
    left : sequence of Configuration
        Those not tried yet, at least one.
    gains : sequence of float
        Their expected gains, positive, on any scale; if all are equal, the cheapest comes first.
    observations : sequence of Observation
        The trials so far, from which the seconds are predicted.
    encoder : SpaceEncoder
        The search space.
    seconds : float
        Worker seconds that are left of the budget. With several workers, less is left on the clock, and trials that it
        would stop are replaced when they are to start, see `decide_in_time`; those with checkpoints begin even so.
    share : float
        Share of the rows on which it will be tried.
    """
    predicted = PredictedSeconds.learn(encoder, observations)
    rows = encoder.encode(left)
    rates = np.log(np.asarray(gains, dtype=np.float64)) - predicted.mean_log_seconds(rows)
    if observations:  # before the first trial, only ratios of seconds are known
        in_time = predicted.log_probability_within(seconds, rows, share) >= np.log(_LIKELY)
        rates = np.where(in_time | ~in_time.any(), rates, -np.inf)
    return left[int(np.argmax(rates))]
