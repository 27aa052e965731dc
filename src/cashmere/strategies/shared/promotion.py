"""Asynchronous successive halving over rungs of rows, around any strategy.

New configurations are tried on few rows; the best third of every rung is tried again on three times as many. Unlike in
the paper, a rung never holds more than a third of those below: a strategy that gets better and better would send nearly
everything up. And among the best third, algorithms with the fewest trials on the next rung go first: one that is ahead
on few rows would fill the upper rungs, and the ensemble, alone. The strategy that decides about new ones sees one loss
per configuration, as if on all rows.

References
----------
Li et al. (2020), A System for Massively Parallel Hyperparameter Tuning, MLSys, algorithm 2 (docs/paths.md#rungs).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from ConfigSpace import Configuration

from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Observation, Suggestion
from cashmere.space.encoding.algorithm_blocks import ALGORITHM

_ETA = 3
"""One of so many is promoted."""


def promotion(
    history: History,
    rungs: Sequence[float],
    *,
    is_late: bool = False,
    largest_share: Callable[[Configuration], float] | None = None,
) -> Suggestion | None:
    """Return the configuration to try on more rows, None if none has earned it.

    Parameters
    ----------
    history : History
        With losses at all rungs.
    rungs : sequence of float
        Shares of the training rows, ascending.
    is_late : bool
        Whether to promote the best configuration of every rung, although too few were tried beside it: otherwise a
        short search would never see all rows.
    largest_share : callable, optional
        The share that is allowed for a configuration; by default all rows.
    """
    decided = {(trial.key, trial.fidelity) for trial in history.trials}
    n_decided = Counter((_algorithm(trial.configuration), trial.fidelity) for trial in history.trials)
    for share, next_share in reversed(list(pairwise(rungs))):
        tried = [o for o in history.successes if o.trial.fidelity == share]
        quota = -(-len(tried) // _ETA) if is_late else len(tried) // _ETA
        if sum(each == next_share for _, each in decided) >= quota:
            continue
        candidates = [
            observation.trial
            for observation in sorted(tried, key=_by_loss)[:quota]
            if (observation.trial.key, next_share) not in decided
            and (largest_share is None or largest_share(observation.trial.configuration) >= next_share)
        ]
        if candidates:
            counts = [n_decided[_algorithm(trial.configuration), next_share] for trial in candidates]
            trial = candidates[int(np.argmin(counts))]
            origin = Origin(OriginKind.PROMOTED, f"trial {trial.number}")
            return Suggestion(configuration=trial.configuration, origin=origin, fidelity=next_share)
    return None


def on_all_rows(history: History, rungs: Sequence[float]) -> History:
    """Return the history with one observation per configuration, and losses as if on the most rows tried.

    Parameters
    ----------
    history : History
        With losses at all rungs.
    rungs : sequence of float
        Shares of the training rows, ascending.

    Returns
    -------
    History
        What more rows bring is the median over the configurations tried at both of two rungs, and nothing where there
        is none. Of each configuration the trial on the most rows is kept, in the order of the trials; one that was cut
        short there only if its loss is lower than that of the one before.
    """
    gains = np.zeros(len(rungs))  # gains[r]: loss at the highest rung minus loss at rung r
    for r in reversed(range(len(rungs) - 1)):
        gains[r] = gains[r + 1] + _gain(history, rungs[r], rungs[r + 1])
    rung_of = {share: r for r, share in enumerate(rungs)}
    best: dict[str, Observation] = {}
    for observation in sorted(history, key=lambda o: (o.trial.fidelity, o.trial.number)):
        gain = gains[rung_of.get(observation.trial.fidelity, -1)]
        if observation.loss is not None and gain:
            observation = replace(observation, outcome=replace(observation.outcome, loss=observation.loss + gain))
        known = best.get(observation.trial.key)
        if known is None or _is_whole(observation) or _by_loss(observation) < _by_loss(known):
            best[observation.trial.key] = observation
    kept = sorted(best.values(), key=lambda o: o.trial.number)
    return replace(history, observations=tuple(kept))


def _gain(history: History, share: float, next_share: float) -> float:
    """Return the median change of the loss from one rung to the next, at most 0."""
    before, after = (
        {o.trial.key: o.loss for o in history.successes if o.trial.fidelity == each and _is_whole(o)}
        for each in (share, next_share)
    )
    changes = [
        loss - earlier for key, loss in after.items() if loss is not None and (earlier := before.get(key)) is not None
    ]
    return min(0.0, float(np.median(changes))) if changes else 0.0


def _is_whole(observation: Observation) -> bool:
    return observation.loss is not None and observation.outcome.cut_short is None


def _algorithm(configuration: Configuration) -> object:
    return configuration.get(ALGORITHM)


def _by_loss(observation: Observation) -> tuple[float, int]:
    return (float("inf") if observation.loss is None else observation.loss, observation.trial.number)
