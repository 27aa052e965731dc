"""Asynchronous successive halving over rungs of rows, around any strategy.

New configurations are tried on few rows; the best third of every rung is tried again on three times as many. The
strategy that decides about new ones sees one loss per configuration, as if on all rows. Unlike in the paper:

- A rung never holds more than a third of the configurations on the rung below: otherwise a strategy that keeps
  improving would promote nearly everything.
- The first configuration of every algorithm is promoted from the lowest rung whatever its loss, and higher rungs wait
  for these: few rows do not show which algorithm is best on all, since some gain much more from rows than others.
- Configurations are compared by the loss expected on all rows, given what more rows have brought their algorithm.
- Among the best third, algorithms with the fewest trials on the next rung go first, so that several meet in the
  ensemble.

References
----------
Li et al. (2020), A System for Massively Parallel Hyperparameter Tuning, MLSys, algorithm 2 (docs/paths.md#rungs).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from ConfigSpace import Configuration

from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Observation, Suggestion
from cashmere.space.space import ALGORITHM

_ETA = 3
"""One in this many configurations is promoted."""

_LEAST_TIME = 2 / 3
"""Share of the time per row on the rung below that a promoted trial needs."""

_FLATTENING = 0.5
"""Expected gain from tripling the rows, as a share of the gain from the tripling before."""


def promotion(
    history: History,
    rungs: Sequence[float],
    *,
    is_late: bool = False,
    seconds_left: float = math.inf,
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
        Whether to promote the best configuration of every rung, even if too few were tried there: otherwise a
        short search would never see all rows.
    seconds_left : float
        Until the search ends. A configuration that would have less than two thirds of its former time per row is not
        promoted: on more rows, a fit that ends early is worse.
    largest_share : callable, optional
        Largest share allowed for a configuration; by default all rows.
    """
    decided = {(trial.key, trial.fidelity) for trial in history.trials}
    n_decided = Counter((_algorithm(trial.configuration), trial.fidelity) for trial in history.trials)
    gains = _Gains(history, rungs)
    waiting = _not_compared_yet(history, rungs)
    for r in reversed(range(len(rungs) - 1)):
        if r > 0 and waiting and not is_late:
            continue
        share, next_share = rungs[r], rungs[r + 1]
        tried = [o for o in history.successes if o.trial.fidelity == share]
        tried.sort(key=lambda o: (_loss(o) + gains.to_all_rows(o.trial.configuration, share), o.trial.number))
        quota = -(-len(tried) // _ETA) if is_late else len(tried) // _ETA
        is_full = sum(each == next_share for _, each in decided) >= quota
        candidates = [
            o.trial
            for rank, o in enumerate(tried)
            if ((rank < quota and not is_full) or (r == 0 and _algorithm(o.trial.configuration) in waiting))
            and (o.trial.key, next_share) not in decided
            and _LEAST_TIME * o.duration_seconds * next_share / share <= seconds_left
            and (largest_share is None or largest_share(o.trial.configuration) >= next_share)
        ]
        if candidates:
            counts = [n_decided[_algorithm(trial.configuration), next_share] for trial in candidates]
            trial = candidates[int(np.argmin(counts))]
            origin = Origin(OriginKind.PROMOTED, f"trial {trial.number}")
            return Suggestion(configuration=trial.configuration, origin=origin, fidelity=next_share)
    return None


def _not_compared_yet(history: History, rungs: Sequence[float]) -> set[object]:
    """Return the algorithms that have a trial on the lowest rung, but none above; failures do not count."""
    failed = {o.trial.number for o in history.failures}
    tried = [trial for trial in history.trials if trial.number not in failed]
    above = {_algorithm(trial.configuration) for trial in tried if trial.fidelity != rungs[0]}
    return {_algorithm(trial.configuration) for trial in tried} - above - {None}


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
        What more rows bring an algorithm is estimated from its configurations tried at both of two rungs, and those of
        other algorithms. Of each configuration the trial on the most rows is kept, in the order of the trials; one that
        was cut short there only if its loss is lower than that of the one before.
    """
    best: dict[str, Observation] = {}
    for observation in sorted(history, key=lambda o: (o.trial.fidelity, o.trial.number)):
        known = best.get(observation.trial.key)
        if known is None or _is_whole(observation) or _loss(observation) < _loss(known):
            best[observation.trial.key] = observation
    gains = _Gains(history, rungs)
    kept = []
    for observation in sorted(best.values(), key=lambda o: o.trial.number):
        gain = gains.to_all_rows(observation.trial.configuration, observation.trial.fidelity)
        if observation.loss is not None and gain:
            observation = replace(observation, outcome=replace(observation.outcome, loss=observation.loss + gain))
        kept.append(observation)
    return replace(history, observations=tuple(kept))


class _Gains:
    """Expected change of an algorithm's loss from one rung to the next, at most 0.

    The estimate is the mean of the algorithm's observed changes and, counted as one more, the median change over all
    algorithms. For a rung that no trial has reached it is half of the gain before, because learning curves flatten.
    Trials that were cut short count too: they show how much more rows bring at least.
    """

    def __init__(self, history: History, rungs: Sequence[float]) -> None:
        losses = {(o.trial.key, o.trial.fidelity): _loss(o) for o in history.successes}
        algorithms = {o.trial.key: _algorithm(o.trial.configuration) for o in history.successes}
        self._rungs = tuple(rungs)
        self._by_algorithm: dict[object, list[float]] = {algorithm: [] for algorithm in algorithms.values()}
        self._otherwise: list[float] = []
        for share, next_share in pairwise(rungs):
            changes: dict[object, list[float]] = {}
            for key, algorithm in algorithms.items():
                if (key, share) in losses and (key, next_share) in losses:
                    change = losses[key, next_share] - losses[key, share]
                    changes.setdefault(algorithm, []).append(min(0.0, change))
            everybody = [change for each in changes.values() for change in each]
            before = self._otherwise[-1] if self._otherwise else 0.0
            usual = float(np.median(everybody)) if everybody else _FLATTENING * before
            self._otherwise.append(usual)
            for algorithm, gains in self._by_algorithm.items():
                own = changes.get(algorithm, [])
                prior = _FLATTENING * gains[-1] if gains and not everybody else usual
                gains.append((sum(own) + prior) / (len(own) + 1))

    def to_all_rows(self, configuration: Configuration, share: float) -> float:
        """Return the change of the loss expected from a share of the rows to all of them, at most 0."""
        gains = self._by_algorithm.get(_algorithm(configuration), self._otherwise)
        return sum(gains[self._rungs.index(share) :]) if share in self._rungs else 0.0


def _is_whole(observation: Observation) -> bool:
    return observation.loss is not None and observation.outcome.cut_short is None


def _algorithm(configuration: Configuration) -> object:
    return configuration.get(ALGORITHM)


def _loss(observation: Observation) -> float:
    return float("inf") if observation.loss is None else observation.loss
