"""The base of strategies that divide their trials among algorithms, each searched by an inner strategy."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from cashmere.base.arrays import IntArray
from cashmere.protocols import MetricCheck, Strategy
from cashmere.records.loss import Loss
from cashmere.records.trial import History, Suggestion
from cashmere.space.encoding import SpaceEncoder
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.space.space import ALGORITHM
from cashmere.space.splitting.restriction import lift, restrict
from cashmere.strategies.shared.capacity import capacity
from cashmere.strategies.shared.drawing import draw_suggestion
from cashmere.strategies.shared.factories import HOLDS_STRATEGY, StrategyFactory, make_inner
from cashmere.strategies.shared.history_of_part import history_of_part
from cashmere.strategies.shared.search_space import SearchSpace, encoder_of, restrict_search


@dataclass(frozen=True)
class PerAlgorithm(ABC):
    """Choose the algorithm to try next; an inner strategy chooses within it.

    Among the algorithms that may have a trial, the one with the fewest comes next, in the order of the space.
    Subclasses decide which algorithms may have a trial.

    Parameters
    ----------
    space : ConfigurationSpace or SpaceEncoder
        The search space; without a categorical ``algorithm`` the inner strategy searches the whole space.
    inner : StrategyFactory
        Strategy inside each algorithm: a class, a `Preset` of one, or a function from a space; `make_strategy` also
        accepts a name, optionally with options after a colon.
    """

    space: SearchSpace
    _: KW_ONLY
    inner: StrategyFactory = field(metadata=HOLDS_STRATEGY)

    def __post_init__(self) -> None:
        make_inner(self.inner, self.space)  # raises for impossible options now, not at the first suggestion

    @functools.cached_property
    def encoder(self) -> SpaceEncoder:
        """The compiled space; a cache."""
        return encoder_of(self.space)

    @functools.cached_property
    def blocks(self) -> AlgorithmBlocks:
        """The space as a set of algorithms; a cache."""
        return AlgorithmBlocks(self.encoder)

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion | None:
        """Return the suggestion of the algorithm whose turn it is, see `cashmere.protocols.Strategy.suggest`."""
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        members = self.blocks.tasks(decided)
        candidates = self._open_tasks(history, members)
        if candidates is None:
            return None
        if not candidates:
            return draw_suggestion(self.encoder, decided, rng)
        counts = np.bincount(members, minlength=len(self.blocks.names))
        turn = min(candidates, key=lambda task: counts[task])
        suggestion = self._inner[turn].suggest(history_of_part(history, (members == turn).tolist()), rng)
        if suggestion is None:
            return None
        configuration = lift(suggestion.configuration, self.encoder.space)
        return Suggestion(configuration=configuration, origin=suggestion.origin.within(self.blocks.names[turn]))

    @abstractmethod
    def _open_tasks(self, history: History, members: IntArray) -> list[int] | None:
        """Return the algorithms that may have the next trial; None to wait for outcomes.

        If there is none, the whole space is searched at random. `members` ``(n_trials,)`` is the algorithm of each
        trial, pending ones last.
        """

    def check_metric(self, metric: Loss) -> None:
        """Reject a metric that does not suit the inner strategy, see `cashmere.protocols.MetricCheck`."""
        for inner in self._inner.values():
            if isinstance(inner, MetricCheck):
                inner.check_metric(metric)

    def _unexhausted(self, members: IntArray) -> list[int]:
        """Return the algorithms that have undecided configurations left; `members` as in `_open_tasks`."""
        counts = np.bincount(members, minlength=len(self.blocks.names))
        return [task for task, capacity in self._capacities.items() if capacity is None or counts[task] < capacity]

    @functools.cached_property
    def _capacities(self) -> dict[int, int | None]:
        """Number of configurations of each algorithm, see `capacity`."""
        return {task: capacity(self.encoder, fixed=self.blocks.fixed(task)) for task in self.blocks.drawable.tolist()}

    @functools.cached_property
    def _inner(self) -> dict[int, Strategy]:
        inner: dict[int, Strategy] = {}
        for task in self.blocks.drawable.tolist():
            searched = self.space
            if fixed := self.blocks.fixed(task):
                allowed = {ALGORITHM: [self.blocks.algorithms[fixed[ALGORITHM]]]}
                searched = restrict_search(self.space, restrict(self.encoder.space, allowed), allowed)
            inner[task] = make_inner(self.inner, searched)
        return inner
