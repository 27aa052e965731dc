"""Rising bandits: algorithms take turns, and those that cannot win any more are dropped."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace

from cashmere.arrays import IntArray
from cashmere.budget import Budget
from cashmere.contests import Candidate, RisingRules, Slope, Standing, derive_standing
from cashmere.exceptions import InvalidParameterError
from cashmere.loss import Loss
from cashmere.protocols import MetricCheck, Strategy
from cashmere.space.algorithm_blocks import ALGORITHM, AlgorithmBlocks
from cashmere.space.encoding import SpaceEncoder
from cashmere.space.restriction import lift, restrict
from cashmere.strategies.random_search import draw_suggestion, make_encoder
from cashmere.trial import History, Suggestion

_LARGEST_COUNTED = 1000
"""Algorithms of more configurations count as endless."""


@dataclass(frozen=True)
class RisingBandit:
    """Decides which algorithm comes next, from how the best loss of each has fallen; its own strategy where in it.

    The algorithms are pulled in turn, a few trials each. One is dropped when it could not reach the best loss of
    another even if its own fell as fast as in its last pulls until the budget is spent. Everything follows from the
    history.

    Parameters
    ----------
    space : ConfigurationSpace
        The search space; without a categorical ``algorithm`` the inner strategy has all of it.
    inner : str
        Name of the strategy inside each algorithm, with options after a colon if need be.
    evaluations_per_pull : int
        Trials of one pull, at least 1.
    window : int
        Pulls over which the slope is measured, at least 1; the first algorithms are dropped after one pull more.
    slope : {"paper", "authors"}
        ``"authors"`` measures the slope like their code, a little lower and one pull earlier; see
        `cashmere.contests.pessimistic_and_optimistic`.
    budget : int or None
        Trials of the whole study, at least 1; by default what the study was planned for, in trials or seconds. If
        neither is known, only algorithms that have not improved within the window can be dropped.
    catalogue : tuple of Configuration, optional
        The only configurations that may be suggested, as for replays of recorded trials.

    Notes
    -----
    - The trials of the algorithms' pulls are interleaved one by one, which comes to the same as they are independent.
      At the end of a cycle in which algorithms are judged the answer is None until all outcomes are known.
    - Warm starts count for their algorithm. Failed trials count with the worst possible loss, of an unbounded metric
      with that of the constant predictor.
    - An algorithm all of whose configurations have been evaluated is dropped too. If none is left, the rest of the
      space is searched at random.

    References
    ----------
    Li, Jiang, Gao, Shao, Zhang and Cui (2020), Efficient automatic CASH via rising bandits, AAAI 34.
    """

    space: ConfigurationSpace
    _: KW_ONLY
    inner: str = "bo"
    evaluations_per_pull: int = 5
    window: int = 3
    slope: Slope = "paper"
    budget: int | None = None
    catalogue: tuple[Configuration, ...] | None = None

    def __post_init__(self) -> None:
        _ = self.rules  # refuses impossible ones now and not at the first suggestion
        if self.budget is not None and (not isinstance(self.budget, int | np.integer) or self.budget < 1):
            raise InvalidParameterError("budget", self.budget, "a number of trials, or None for that of the study")
        self._make_inner(self.space, self.catalogue)

    @property
    def rules(self) -> RisingRules:
        """How algorithms are pulled and judged."""
        return RisingRules(evaluations_per_pull=self.evaluations_per_pull, window=self.window, slope=self.slope)

    @functools.cached_property
    def encoder(self) -> SpaceEncoder:
        """The compiled space; a cache."""
        return make_encoder(self.space, self.catalogue)

    @functools.cached_property
    def blocks(self) -> AlgorithmBlocks:
        """The space as a set of algorithms; a cache."""
        return AlgorithmBlocks(self.encoder)

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion | None:
        """Return the suggestion of the algorithm whose turn it is, see `cashmere.protocols.Strategy.suggest`.

        None if algorithms are to be judged and an outcome is missing.
        """
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        members = self.blocks.tasks(decided)
        standing = self._standing(history, members)
        counts = np.bincount(members, minlength=len(self.blocks.names))
        tasks = [self.blocks.drawable[arm] for arm in standing.alive]
        unfinished = [
            task for task, quota in zip(tasks, standing.quotas, strict=True) if quota is None or counts[task] < quota
        ]
        if not unfinished:
            return None if len(tasks) > 1 else draw_suggestion(self.encoder, decided, rng)
        turn = min(unfinished, key=lambda task: counts[task])
        suggestion = self._inner[turn].suggest(self._inside(turn, history, members), rng)
        if suggestion is None:
            return None
        configuration = suggestion.configuration
        if configuration.config_space is not self.space:
            configuration = lift(configuration, self.space)
        return Suggestion(configuration=configuration, origin=f"{self.blocks.names[turn]} · {suggestion.origin}")

    def check_metric(self, metric: Loss) -> None:
        """Refuse a metric that does not suit the inner strategy, see `cashmere.protocols.MetricCheck`."""
        for inner in self._inner.values():
            if isinstance(inner, MetricCheck):
                inner.check_metric(metric)

    def standing(self, history: History) -> Standing:
        """Return which algorithms are left, as positions among those that are drawn, and all decisions so far."""
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        return self._standing(history, self.blocks.tasks(decided))

    def _standing(self, history: History, members: IntArray) -> Standing:
        budget = history.budget if self.budget is None else Budget(trials=int(self.budget))
        losses = np.array([np.nan if o.loss is None else o.loss for o in history], dtype=np.float64)
        seconds = np.array([o.duration_seconds for o in history], dtype=np.float64)
        observed = members[: len(history)]
        arms = [
            Candidate(
                name=self.blocks.names[task],
                losses=losses[observed == task],
                seconds=seconds[observed == task],
                capacity=self._capacities[task],
            )
            for task in self.blocks.drawable.tolist()
        ]
        failure_loss = history.baseline_loss if history.worst_loss is None else history.worst_loss
        return derive_standing(
            arms,
            self.rules,
            budget=budget,
            failure_loss=failure_loss if np.isfinite(failure_loss) else np.inf,
            least_loss=-np.inf if history.worst_loss is None else 0.0,
        )

    @functools.cached_property
    def _capacities(self) -> dict[int, int | None]:
        """How many configurations every algorithm has, None if (nearly) without end."""
        limit = _LARGEST_COUNTED if self.encoder.n_listed is None else self.encoder.n_listed
        everything = {
            task: self.encoder.enumerate(limit, fixed=self.blocks.fixed(task)) for task in self.blocks.drawable.tolist()
        }
        return {task: None if rows is None else len(rows) for task, rows in everything.items()}

    @functools.cached_property
    def _inner(self) -> dict[int, Strategy]:
        inner: dict[int, Strategy] = {}
        for task in self.blocks.drawable.tolist():
            space, catalogue = self.space, self.catalogue
            if fixed := self.blocks.fixed(task):
                choice = self.blocks.algorithms[fixed[ALGORITHM]]
                space = restrict(self.space, {ALGORITHM: [choice]})
                catalogue = catalogue and tuple(c for c in catalogue if c[ALGORITHM] == choice)
            inner[task] = self._make_inner(space, catalogue)
        return inner

    def _make_inner(self, space: ConfigurationSpace, catalogue: Sequence[Configuration] | None) -> Strategy:
        from cashmere.strategies import make_strategy  # it knows this one, too

        return make_strategy(self.inner, space, **({} if catalogue is None else {"catalogue": tuple(catalogue)}))

    def _inside(self, task: int, history: History, members: IntArray) -> History:
        """Return what happened under an algorithm; its configurations stay those of the whole space."""
        mine = (members == task).tolist()
        observations = tuple(o for o, is_mine in zip(history, mine, strict=False) if is_mine)
        pending = tuple(t for t, is_mine in zip(history.pending, mine[len(history) :], strict=True) if is_mine)
        return replace(history, observations=observations, pending=pending)


@dataclass(frozen=True)
class RisingSMAC(RisingBandit):
    """Decides like `RisingBandit`, with SMAC inside: RB-SMAC.

    Parameters
    ----------
    space, evaluations_per_pull, window, slope, budget, catalogue
        See `RisingBandit`.
    inner : str
        See `RisingBandit`.

    References
    ----------
    Li, Jiang, Gao, Shao, Zhang and Cui (2020), Efficient automatic CASH via rising bandits, AAAI 34.
    """

    _: KW_ONLY
    inner: str = "smac"
