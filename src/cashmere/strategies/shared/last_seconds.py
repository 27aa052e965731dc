"""Decisions in the last seconds: what would not end in time is not started, and something shorter is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from ConfigSpace import Configuration

from cashmere.costs.predicted import PredictedSeconds
from cashmere.protocols import Strategy
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Suggestion
from cashmere.space.encoding import SpaceEncoder
from cashmere.strategies.shared.drawing import first_unseen

_LIKELY = 0.5
"""Least probability of ending in time with which a trial is started."""

_N_DRAWS = 256


def decide_in_time(
    decision: Suggestion,
    seconds: float,
    *,
    strategy: Strategy,
    history: History,
    encoder: SpaceEncoder,
    rng: np.random.Generator,
) -> Suggestion | None:
    """Return a decision whose trial is more likely than not to end within some seconds.

    That is the given one; or what the strategy suggests when it is told the seconds, since its acquisition values are
    then multiplied by the probability of ending in time; or a random configuration.

    Parameters
    ----------
    decision : Suggestion
        Taken without regard to the seconds.
    seconds : float
        Wall seconds until the end.
    strategy : Strategy
        That has decided.
    history : History
        With ``time_left``, and with a success: before the first one every trial is let pass.
    encoder : SpaceEncoder
        The search space.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    Suggestion or None
        None if no such configuration is found.
    """
    if history.time_left is None or not history.successes:
        return decision
    predicted = PredictedSeconds.learn(encoder, history.observations)

    def is_likely(configuration: Configuration) -> bool:
        row = encoder.encode([configuration])
        return bool(predicted.log_probability_within(seconds, row)[0] >= np.log(_LIKELY))

    if is_likely(decision.configuration):
        return decision
    another = strategy.suggest(replace(history, time_left=replace(history.time_left, seconds=seconds)), rng)
    if another is not None and is_likely(another.configuration):
        return another
    rows = encoder.sample(_N_DRAWS, rng)
    rows = rows[predicted.log_probability_within(seconds, rows) >= np.log(_LIKELY)]
    seen = encoder.keys(encoder.encode(trial.configuration for trial in history.trials))
    return first_unseen(encoder, rows, seen, origin=Origin(OriginKind.RANDOM))
