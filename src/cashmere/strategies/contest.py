"""DACOpt: a contest among sub-spaces, each searched by an inner strategy."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

import numpy as np
from ConfigSpace import Configuration

from cashmere.contests import Contender, Elimination, Ledger, Rules, Schedule, Tie, derive_ledger
from cashmere.exceptions import MissingParameterError
from cashmere.protocols import MetricCheck, Strategy
from cashmere.records.loss import Loss
from cashmere.records.trial import History, Suggestion
from cashmere.records.work_budget import WorkBudget
from cashmere.space.encoding import SpaceEncoder
from cashmere.space.splitting.groups import SubspacePart, part_of, split
from cashmere.space.splitting.restriction import lift
from cashmere.strategies.bo4ml import BO4ML
from cashmere.strategies.shared.capacity import capacity
from cashmere.strategies.shared.drawing import draw_suggestion
from cashmere.strategies.shared.factories import HOLDS_STRATEGY, StrategyFactory, make_inner
from cashmere.strategies.shared.history_of_part import history_of_part
from cashmere.strategies.shared.option_checks import check_at_least
from cashmere.strategies.shared.search_space import SearchSpace, encoder_of, restrict_search
from cashmere.strategies.shared.study_budget import budget_of_study, check_budget

_CACHE_SIZE = 50_000
"""Number of configurations whose sub-space is cached."""


@dataclass(frozen=True)
class Contest:
    """Choose the sub-space to search next, from the losses in all of them; an inner strategy chooses within it.

    The space is split along the groups of its operators. In each round the remaining sub-spaces take turns; at its end
    the worse ones leave: those without one of the best values found so far (`elimination` "highest"), or those that a
    test finds worse than the best (`elimination` "statistical"). Everything follows from the history.

    Parameters
    ----------
    space : ConfigurationSpace or SpaceEncoder
        The search space.
    elimination : {"highest", "statistical"}
        Which sub-spaces leave: all but those with the best values, or those significantly worse than the best.
    inner : StrategyFactory
        Strategy inside each sub-space: a class, a `Preset` of one, or a function from a space; `make_strategy` also
        accepts a name, optionally with options after a colon. Its option ``n_initial`` is that of the contest unless a
        preset sets it.
    max_subspaces : int
        Largest number of sub-spaces, at least 1.
    n_initial : int
        Initial trials of each sub-space, at least 1.
    b_first : int or None
        Trials of each sub-space in the first round; `n_initial` by default. The paper's experiments use twice that.
    eta : int
        A round keeps one in `eta` sub-spaces, at least 2; only for "highest".
    schedule, tie, max_extra
        How "highest" divides the budget and treats ties; see `cashmere.contests.Rules`.
    alpha, min_blocks, authors_z
        Level and form of the statistical tests; see `cashmere.contests.Rules`.
    independent : bool
        Let a sub-space wait for its own pending trials: then a run is the same with any lookahead, but no more workers
        are busy than sub-spaces are left. False keeps all workers busy, except at the end of a round.
    seed : int
        Seed of the split, where groups are cut at random, and of the order of the sub-spaces.
    budget : int or None
        Trials of the whole study, at least 1; by default the plan of the study, in trials or seconds.

    Notes
    -----
    - The paper's listing contradicts itself on the budget of a round; `schedule` offers three readings.
    - The sub-space with the fewest trials has the next turn, in the order of the split. The paper runs whole searches
      one after the other, which is equivalent (docs/papers/dacopt.md#turns). If a sub-space is not ready, the contest
      answers None rather than taking another one, so that the order does not depend on the speed of trials.
    - Warm starts count for the sub-space they lie in; the surplus over its quota counts for later rounds. Failed trials
      count as evaluations.
    - With a budget in seconds, the length of rounds depends on durations, so such runs differ between machines.
    - A sub-space whose configurations have all been evaluated leaves the contest. If none is left, the rest of the
      space is searched at random.

    References
    ----------
    Nguyen, Kononova, Menzel, Sendhoff, Bäck (2022), An efficient contesting procedure for AutoML optimization, IEEE
    Access 10, doi:10.1109/ACCESS.2022.3192036.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace, EqualsCondition
    >>> from cashmere.strategies import RandomSearch
    >>> space = ConfigurationSpace({"model": ["svm", "tree"], "cost": (0.1, 10.0), "depth": (1, 9)})
    >>> space.add(EqualsCondition(space["cost"], space["model"], "svm"))
    >>> space.add(EqualsCondition(space["depth"], space["model"], "tree"))
    >>> contest = Contest(space, inner=RandomSearch, budget=20)
    >>> str(contest.suggest(History(), np.random.default_rng(0)).origin)
    'round 0 · svm · random'
    """

    space: SearchSpace
    _: KW_ONLY
    elimination: Elimination = "highest"
    inner: StrategyFactory = field(default=BO4ML, metadata=HOLDS_STRATEGY)
    max_subspaces: int = 10
    n_initial: int = 5
    b_first: int | None = None
    eta: int = 3
    schedule: Schedule = "inclusive"
    tie: Tie = "keep"
    max_extra: int = 1
    alpha: float = 0.05
    min_blocks: int = 3
    authors_z: bool = False
    independent: bool = True
    seed: int = 0
    budget: int | None = None

    def __post_init__(self) -> None:
        _ = self.rules  # raises for impossible rules now, not at the first suggestion
        check_at_least(self, max_subspaces=1, seed=0)
        check_budget(self.budget)
        self._make_inner(self.space)

    @functools.cached_property
    def rules(self) -> Rules:
        """The rules of the contest."""
        return Rules(**{rule.name: getattr(self, rule.name) for rule in dataclasses.fields(Rules)})

    @functools.cached_property
    def parts(self) -> tuple[SubspacePart, ...]:
        """The sub-spaces, in the order in which they take turns; a cache."""
        return split(self._encoder.space, self.max_subspaces, np.random.default_rng(self.seed))

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion | None:
        """Return the suggestion of the sub-space whose turn it is, see `cashmere.protocols.Strategy.suggest`.

        None while an outcome of the round or, with `independent`, of this sub-space is missing.

        Raises
        ------
        MissingParameterError
            If "highest" has a budget to divide that neither the contest nor the history knows.
        """
        current = self.ledger(history).open
        if current is None:
            decided = self._encoder.encode(trial.configuration for trial in history.trials)
            return draw_suggestion(self._encoder, decided, rng)
        members = self.memberships(history)
        counts = np.bincount(members, minlength=len(self.parts))
        quotas = zip(current.alive, current.quotas, strict=True)
        unfinished = [part for part, quota in quotas if quota is None or counts[part] < quota]
        if not unfinished:
            return None
        turn = min(unfinished, key=lambda part: counts[part])
        inside = history_of_part(history, [member == turn for member in members])
        if self.independent and inside.pending:
            return None
        suggestion = self._inner[turn].suggest(inside, rng)
        if suggestion is None:
            return None
        origin = suggestion.origin.within(self.parts[turn].label, round=current.number)
        return Suggestion(configuration=lift(suggestion.configuration, self._encoder.space), origin=origin)

    def check_metric(self, metric: Loss) -> None:
        """Reject a metric that does not suit the inner strategy, see `cashmere.protocols.MetricCheck`."""
        for inner in self._inner:
            if isinstance(inner, MetricCheck):
                inner.check_metric(metric)

    def ledger(self, history: History) -> Ledger:
        """Return the rounds of the contest so far, see `cashmere.contests.Ledger`."""
        members = [self._part_of(observation.trial.configuration) for observation in history]
        losses: list[list[float]] = [[] for _ in self.parts]
        seconds: list[list[float]] = [[] for _ in self.parts]
        for part, observation in zip(members, history, strict=True):
            losses[part].append(float("nan") if observation.loss is None else observation.loss)
            seconds[part].append(observation.duration_seconds)
        contenders = tuple(
            Contender(name=part.label, losses=np.array(lost), seconds=np.array(spent), capacity=capacity)
            for part, lost, spent, capacity in zip(self.parts, losses, seconds, self._capacities, strict=True)
        )
        return self._derive(contenders, self._budget(history), _failure_floor(history))

    def memberships(self, history: History) -> tuple[int, ...]:
        """Return the position in the ledger of every trial's sub-space, pending trials last."""
        return tuple(self._part_of(trial.configuration) for trial in history.trials)

    # ------------------------------------------------------------ the contest

    def _budget(self, history: History) -> WorkBudget | None:
        budget = budget_of_study(self.budget, history)
        if budget is None and self.elimination == "highest":
            raise MissingParameterError(
                "budget",
                "A contest by the highest value divides its budget among the rounds, but neither the strategy nor the "
                'study has one. Set the number of trials, for example "contest:budget=250".',
            )
        return budget

    def _derive(self, contenders: tuple[Contender, ...], budget: WorkBudget | None, failure_floor: float) -> Ledger:
        """Derive the ledger, continuing the latest one if it covers the beginning of the same history."""
        known = None
        latest = self._latest.get("ledger")
        if latest is not None:
            before, its_budget, its_floor, ledger = latest
            if (its_budget, its_floor) == (budget, failure_floor) and _is_continued(before, contenders):
                known = ledger
        ledger = derive_ledger(contenders, self.rules, budget=budget, failure_floor=failure_floor, known=known)
        self._latest["ledger"] = (contenders, budget, failure_floor, ledger)
        return ledger

    @functools.cached_property
    def _latest(self) -> dict[str, tuple[tuple[Contender, ...], WorkBudget | None, float, Ledger]]:
        """The latest ledger and the history it was derived from; a cache."""
        return {}

    # ------------------------------------------------------------ the sub-spaces

    def _part_of(self, configuration: Configuration) -> int:
        known = self._memberships.get(id(configuration))
        if known is None or known[0] is not configuration:
            if len(self._memberships) >= _CACHE_SIZE:
                self._memberships.clear()
            known = self._memberships[id(configuration)] = (configuration, part_of(configuration, self.parts))
        return known[1]

    @functools.cached_property
    def _memberships(self) -> dict[int, tuple[Configuration, int]]:
        """Id -> (configuration, part); keeping the configuration prevents the reuse of its id; a cache."""
        return {}

    @functools.cached_property
    def _encoder(self) -> SpaceEncoder:
        return encoder_of(self.space)

    @functools.cached_property
    def _searched(self) -> tuple[SearchSpace, ...]:
        """The space or encoder of each part."""
        return tuple(restrict_search(self.space, part.space, part.allowed) for part in self.parts)

    @functools.cached_property
    def _capacities(self) -> tuple[int | None, ...]:
        """Number of configurations of each part, see `capacity`."""
        return tuple(capacity(encoder_of(searched)) for searched in self._searched)

    @functools.cached_property
    def _inner(self) -> tuple[Strategy, ...]:
        return tuple(map(self._make_inner, self._searched))

    def _make_inner(self, searched: SearchSpace) -> Strategy:
        return make_inner(self.inner, searched, n_initial=self.n_initial)


def _failure_floor(history: History) -> float:
    if history.worst_loss is not None:
        return history.worst_loss
    return history.baseline_loss if np.isfinite(history.baseline_loss) else -np.inf


def _is_continued(before: Sequence[Contender], now: Sequence[Contender]) -> bool:
    return all(
        len(old.losses) <= len(new.losses)
        and np.array_equal(old.losses, new.losses[: len(old.losses)], equal_nan=True)
        and np.array_equal(old.seconds, new.seconds[: len(old.seconds)])
        for old, new in zip(before, now, strict=True)
    )
