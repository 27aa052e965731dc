"""Decisions in the last seconds: replace a trial that would not end in time by a shorter one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from ConfigSpace import Configuration

from cashmere.costs.predicted import PredictedSeconds
from cashmere.protocols import Strategy
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Suggestion
from cashmere.space.encoding import SpaceEncoder
from cashmere.strategies.shared.drawing import first_unseen
from cashmere.strategies.shared.promotion import on_all_rows

_LIKELY = 0.5
"""Trials that are less likely to end in time are not started."""

_N_DRAWS = 256


def decide_in_time(
    decision: Suggestion,
    seconds: float,
    *,
    strategy: Strategy | None,
    history: History,
    encoder: SpaceEncoder,
    rng: np.random.Generator,
    rungs: Sequence[float] = (1.0,),
) -> Suggestion | None:
    """Return a decision whose trial is more likely than not to end within some seconds.

    That is the given one, or else what the strategy suggests if it knows the seconds, since its acquisition values are
    then multiplied by the probability of ending in time, or else a random configuration.

    Parameters
    ----------
    decision : Suggestion
        Taken without regard to the seconds.
    seconds : float
        Wall seconds until the end.
    strategy : Strategy or None
        The strategy that made the decision. With None, no other one is looked for.
    history : History
        With ``time_left``, and with a success: before the first one, every decision passes.
    encoder : SpaceEncoder
        The search space.
    rng : numpy.random.Generator
        Source of randomness.
    rungs : sequence of float
        Shares of the rows, ascending; new configurations are tried on the first.

    Returns
    -------
    Suggestion or None
        None if no such configuration is found.
    """
    if history.time_left is None or not history.successes:
        return decision
    predicted = PredictedSeconds.learn(encoder, history.observations)

    def is_likely(configuration: Configuration, share: float) -> bool:
        row = encoder.encode([configuration])
        return bool(predicted.log_probability_within(seconds, row, share)[0] >= np.log(_LIKELY))

    if is_likely(decision.configuration, decision.fidelity):
        return decision
    if strategy is None:
        return None
    # Strategies reckon with all rows; seconds are roughly proportional to their number.
    seen_by_strategy = history if len(rungs) == 1 else on_all_rows(history, rungs)
    time_left = replace(history.time_left, seconds=seconds / rungs[0])
    another = strategy.suggest(replace(seen_by_strategy, time_left=time_left), rng)
    if another is not None and is_likely(another.configuration, rungs[0]):
        return replace(another, fidelity=rungs[0])
    rows = encoder.sample(_N_DRAWS, rng)
    rows = rows[predicted.log_probability_within(seconds, rows, rungs[0]) >= np.log(_LIKELY)]
    seen = encoder.keys(encoder.encode(trial.configuration for trial in history.trials))
    found = first_unseen(encoder, rows, seen, origin=Origin(OriginKind.RANDOM))
    return None if found is None else replace(found, fidelity=rungs[0])
