"""The study: ask the strategy, run the trial, tell the store, in an order that does not depend on the machine.

For large numbers of workers, this order can be given up: `Order.ARRIVAL`.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import itertools
import json
import logging
import math
import queue
import time
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
from ConfigSpace import Configuration

from cashmere.base.arrays import Float64
from cashmere.base.pace import Pace
from cashmere.base.threads import one_blas_thread
from cashmere.costs.predicted import OVERHEAD_SECONDS
from cashmere.exceptions import (
    InconsistentResumeError,
    InvalidParameterError,
    LookaheadError,
    StrategyError,
    UsageError,
)
from cashmere.execution.in_process import InProcessExecutor
from cashmere.execution.outcome_check import why_unusable
from cashmere.protocols import BatchStrategy, Executor, MetricCheck, Objective, Strategy, SupervisedObjective
from cashmere.records.budget import Budget, Deadline
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.loss import Loss
from cashmere.records.order import Order
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.time_left import TimeLeft
from cashmere.records.trial import (
    FOLD_RACING,
    History,
    Observation,
    Outcome,
    Suggestion,
    Trial,
    TrialStatus,
    configuration_key,
)
from cashmere.records.work_budget import WorkBudget
from cashmere.space.encoding import SpaceEncoder
from cashmere.storage.store import RunStore, plain_values
from cashmere.strategies import make_strategy
from cashmere.strategies.shared.drawing import draw_suggestion
from cashmere.strategies.shared.first_configurations import best_per_second
from cashmere.strategies.shared.last_seconds import decide_in_time
from cashmere.strategies.shared.promotion import on_all_rows, promotion
from cashmere.strategies.shared.search_space import SearchSpace, encoder_of

_FIRST_RESULT_SECONDS = 3.0
"""With less time left, a trial is only started if it is likely to end, even if it would have earlier results."""

_DECIDING_SHARE = 0.25
"""Under a time budget, decisions may take this share of the seconds of trials; beyond it, random draws replace them. If
trials take a tenth of a second, several of them are worth more than one good decision."""

_DECIDING_SECONDS = 2.0
"""Seconds that decisions may take in any case."""

BATCHES_FROM = 64
"""Lookahead from which strategies decide several trials at once."""

BATCHES_IN_LOOKAHEAD = 8
"""Batches in a lookahead. As the lookahead is twice the workers, a batch is enough for a quarter of them."""

_WORKERS_PER_WAITING_TRIAL = 4
"""Workers for which one trial is submitted ahead, to wait for the first free one. So workers continue while the
coordinator decides a batch or selects the ensemble, for a quarter of a trial's time if all trials take equally long."""

_EARLY_SHARE = 0.4
"""Share of the planned time during which configurations are promoted only if enough others were tried, too."""

logger = logging.getLogger(__name__)

Callback = Callable[["Study", Observation], None]

_DECIDING, _STORING = "deciding", "storing"

_SECONDS_PER_MIB = 0.02
"""Expected time to store outcomes until one has been stored, as on a slow disk."""

_FORGOTTEN_SECONDS = 5.0
"""How much of its elapsed time a study may lose if it is killed."""


class Study:
    """One search: a space, a strategy, a seed, and the resulting history.

    Trial n is decided from the outcomes of trials 0 .. n - `lookahead` and from the decisions in between, and outcomes
    are committed in trial order. The same seed therefore gives the same run with any number of workers up to
    `lookahead`. A larger lookahead keeps more workers busy, but each decision knows fewer outcomes. If the plan is a
    time alone, the run depends on the clock anyway: outcomes are committed as they arrive, and every decision sees all
    of them.

    With a lookahead of 64 or more, strategies that support it (`cashmere.protocols.BatchStrategy`) decide batches of an
    eighth of the lookahead: trials n, n + 1, ... from what is known for trial n.

    Parameters
    ----------
    space : ConfigurationSpace or SpaceEncoder
        The search space.
    strategy : str or Strategy
        A name from `cashmere.strategies`, or an object with a method ``suggest(history, rng)``.
    seed : int
        Seed for all randomness; each trial's generators are derived from it and the trial's number.
    lookahead : int
        Number of trials that may be decided ahead of known results, at least 1 (strictly sequential).
    order : Order or str
        ``"trials"``: as above. ``"arrival"``: outcomes are committed as they arrive, whatever the plan, so that no
        trial waits for an earlier, slower one, and every decision sees all of them. Which outcomes these are depends on
        the clock, so the same seed gives different runs. The lookahead then only limits how many trials are open.
    warm_start : sequence of Configuration, or mapping of Configuration to float
        Configurations to evaluate before the strategy is asked: in this order, or cheapest first if the plan is a time.
        A mapping gives the expected gain of each, a positive number on any scale: if the plan is a time, those with the
        largest gain per predicted second come first.
    store : RunStore, optional
        Where finished trials are stored; if it already holds a study, that study is continued.
    fold_racing : {"none", "forgiving"}
        With ``"forgiving"`` a trial is stopped after a fold if the mean loss of its folds is above the worst fold of
        the best trial that it may know under the lookahead. A stopped trial gets no score, and a good configuration may
        be lost this way. This is the forgiving rule of Bergman, Purucker and Hutter (2024), Don't waste your time:
        early stopping cross-validation, AutoML Conf., https://arxiv.org/abs/2405.03389.
    plan : WorkBudget, optional
        Total work of the study, for strategies that divide it; by default the budget of the first call of `optimize`. A
        store keeps its first plan, so that an extended study continues as planned.
    worst_loss, baseline_loss, metric, targets, row_weights
        See `History`. Strategies that search for an ensemble need `metric` and `targets`.
    rungs : sequence of float
        Shares of the training rows, ascending. With more than one, configurations are tried on the smallest share
        first, and the best of them on larger ones (`cashmere.strategies.shared.promotion`). Promotions use all known
        outcomes, so the run then depends on the clock.
    largest_share : callable, optional
        Function that returns the largest share allowed for a configuration; by default all rows.
    already_spent : float
        Seconds to count as already spent in this study, such as those for preparing the table.

    Attributes
    ----------
    space : ConfigurationSpace
        The search space.
    strategy : Strategy
        As given, or made from the name.
    suggest_seconds : dict of int to float
        How long decisions took, by trial number; those of a batch count for its first trial.
    seed, lookahead, order, warm_start, fold_racing, worst_loss, baseline_loss, metric, targets, row_weights
        As given.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> from cashmere.study import Study
    >>> from cashmere.records.trial import Outcome, TrialStatus
    >>> def parabola(trial):
    ...     return Outcome(status=TrialStatus.SUCCESS, loss=(trial.configuration["x"] - 0.3) ** 2)
    >>> study = Study(ConfigurationSpace({"x": (0.0, 1.0)}), "bo", seed=1)
    >>> history = study.optimize(parabola, budget="20trials")
    >>> bool(history.incumbent.loss < 0.01)
    True
    """

    def __init__(
        self,
        space: SearchSpace,
        strategy: str | Strategy = "bo",
        *,
        seed: int = 0,
        lookahead: int = 1,
        order: Order | str = Order.TRIALS,
        warm_start: Sequence[Configuration] | Mapping[Configuration, float] = (),
        store: RunStore | None = None,
        fold_racing: str = "none",
        plan: WorkBudget | None = None,
        worst_loss: float | None = None,
        baseline_loss: float = float("nan"),
        metric: Loss | None = None,
        targets: Float64 | None = None,
        row_weights: Float64 | None = None,
        rungs: Sequence[float] = (1.0,),
        largest_share: Callable[[Configuration], float] | None = None,
        already_spent: float = 0.0,
    ) -> None:
        if lookahead < 1:
            raise InvalidParameterError("lookahead", lookahead, "at least 1")
        if fold_racing not in FOLD_RACING:
            raise InvalidParameterError("fold_racing", fold_racing, "'none' or 'forgiving'")
        self._searched = space
        self.space = space.space if isinstance(space, SpaceEncoder) else space
        self.strategy = make_strategy(strategy, space)
        if metric is not None and isinstance(self.strategy, MetricCheck):
            self.strategy.check_metric(metric)
        self.seed = seed
        self.lookahead = lookahead
        self.order = Order.parse(order)
        self.warm_start = tuple(warm_start)
        self._gains = dict(warm_start) if isinstance(warm_start, Mapping) else dict.fromkeys(warm_start, 1.0)
        self.fold_racing = fold_racing
        self.worst_loss, self.baseline_loss = worst_loss, baseline_loss
        self.metric, self.targets, self.row_weights = metric, targets, row_weights
        self._rungs, self._largest_share = tuple(rungs), largest_share
        self.suggest_seconds: dict[int, float] = {}
        self._pace = Pace()
        self._store = store
        self._trials: list[Trial] = []
        self._committed: list[Observation] = []
        self._arrived: dict[int, Observation] = {} if store is None else store.load(self.space)
        self._elapsed_before = 0.0 if store is None else store.facts().elapsed_seconds or 0.0
        self._elapsed_before = max([self._elapsed_before, *(o.finished_at for o in self._arrived.values())])
        self._elapsed_stored = self._elapsed_before
        self._clock = Deadline(None, already_spent=already_spent)
        self._plan: WorkBudget | None = None
        self._unfinished: dict[int, tuple[Trial, Future[Outcome] | None]] = {}
        self._decision: Suggestion | None = None
        self._batch: deque[Suggestion] = deque()
        self._n_insufficient = -1
        self._nothing_fits = (-1, -1, 0.0)
        self._seconds_left: Callable[[], float] = _for_ever
        if plan is not None or (store is not None and store.facts().plan is not None):
            self._set_plan(plan)
        self._replay()

    # ------------------------------------------------------------ what has happened

    @property
    def history(self) -> History:
        """All committed observations, without pending trials."""
        return self._history(len(self._committed), ())

    @property
    def elapsed(self) -> float:
        """Seconds spent in this study, summed over resumes."""
        return self._elapsed_before + self._clock.elapsed

    def _history(self, end: int, pending: Sequence[Trial]) -> History:
        return History(
            observations=tuple(self._committed[:end]),
            pending=tuple(pending),
            worst_loss=self.worst_loss,
            baseline_loss=self.baseline_loss,
            metric=self.metric,
            targets=self.targets,
            row_weights=self.row_weights,
            budget=self._plan,
            time_left=self._time_left(end),
        )

    def _history_for_strategy(self, end: int, pending: Sequence[Trial]) -> History:
        """Return the history as strategies see it: with one loss per configuration, as if on all rows."""
        history = self._history(end, pending)
        return history if len(self._rungs) == 1 else on_all_rows(history, self._rungs)

    def _time_left(self, end: int) -> TimeLeft | None:
        """Return what is left of the planned time after the first `end` trials, by their recorded seconds."""
        if self._planned_seconds is None:
            return None
        spent = sum(o.duration_seconds + OVERHEAD_SECONDS for o in self._committed[:end])
        return TimeLeft(share=max(0.0, 1.0 - spent / self._planned_seconds))

    def _set_plan(self, plan: WorkBudget | None) -> None:
        """Set the plan, unless the store has an earlier one."""
        text = (self._store.facts().plan if self._store is not None else None) or str(plan)
        self._plan = WorkBudget.from_text(text)  # parsed from the text, as a resumed study will read it
        if self._store is not None:
            self._store.set_fact("plan", text)

    def _replay(self) -> None:
        """Load stored trials: commit the leading ones, keep later ones until it is their turn."""
        while (observation := self._arrived.get(len(self._trials))) is not None:
            self._trials.append(observation.trial)
        self._commit()

    def _commit(self) -> list[Observation]:
        """Move outcomes of decided trials to the history, in trial order or as they have arrived."""
        if self._is_by_arrival:
            fresh = [self._arrived.pop(n) for n in sorted(self._arrived) if n < len(self._trials)]
            for each in fresh:
                bisect.insort(self._committed, each, key=_number)
            return fresh
        fresh = []
        while len(self._committed) < len(self._trials):
            observation = self._arrived.pop(len(self._committed), None)
            if observation is None:
                break
            self._committed.append(observation)
            fresh.append(observation)
        return fresh

    def _pending(self, end: int) -> list[Trial]:
        """Return the decided trials that are not among the first `end` committed ones."""
        if not self._is_by_arrival:
            return self._trials[end:]
        known = {o.trial.number for o in self._committed[:end]}
        return [trial for trial in self._trials if trial.number not in known]

    def _n_shown_to(self, number: int) -> int:
        """Return how many committed outcomes the decision of a trial may see at least."""
        if self._is_by_arrival:
            return len(self._committed)
        return min(len(self._committed), max(0, number - self.lookahead + 1))

    # ------------------------------------------------------------ ask and tell

    def can_ask(self) -> bool:
        """Return whether enough outcomes are known to decide the next trial; deciding it is how to find out."""
        self._take_stored()
        return self._can_decide()

    def ask(self) -> Trial:
        """Decide the next trial, after those whose outcomes the store already has.

        Raises
        ------
        LookaheadError
            If more than `lookahead` trials would be open.
        UsageError
            If the strategy must see the outcome of an open trial first.
        StrategyError
            If the strategy has seen all outcomes and still returns None, or if it returns a batch of the wrong size.
        InconsistentResumeError
            If the store has the outcome of another configuration.
        """
        self._take_stored()
        return self._next_trial()

    def _take_stored(self) -> None:
        """Decide the next trials as long as they have outcomes, which an earlier call has stored."""
        while len(self._trials) in self._arrived and self._can_decide():
            self._next_trial()
            self._commit()

    def _can_decide(self) -> bool:
        return len(self._trials) < len(self._committed) + self.lookahead and self._decide() is not None

    def _next_trial(self) -> Trial:
        """Decide the next trial, whether it has an outcome or not; see `ask`."""
        n_open = len(self._trials) - len(self._committed)
        if n_open >= self.lookahead:
            raise LookaheadError(
                f"ask() cannot decide another trial: trial {len(self._committed)} has no outcome yet, and the "
                f"lookahead is {self.lookahead}. Call tell() with its outcome first, or make the study with a larger "
                "lookahead.",
                lookahead=self.lookahead,
                n_open=n_open,
                instance=self,
            )
        if (suggestion := self._decide()) is None:
            raise UsageError(
                f"ask() cannot decide another trial yet: the strategy needs more outcomes than those of the first "
                f"{len(self._committed)} trials. Call tell() with the outcomes of open trials until can_ask() is true.",
                instance=self,
            )
        number = len(self._trials)
        _, learner_seed = self._seeds(number)
        trial = Trial(
            number=number,
            configuration=suggestion.configuration,
            seed=int(learner_seed.generate_state(1)[0] % 2**31),
            origin=suggestion.origin,
            fidelity=suggestion.fidelity,
            stop_above=self._stop_above(suggestion.fidelity),
        )
        stored = self._arrived.get(number)
        if stored is not None and not self._can_repeat:
            trial = stored.trial  # its decision depended on seconds, perhaps on the clock of an earlier call
        if stored is not None and stored.trial.key != trial.key:
            raise InconsistentResumeError(
                self._store.folder if self._store else "study",
                f"trial {number} was stored with another configuration than the strategy decides now. The settings, "
                "the package or a library have changed since. Continue with those in run.json, or start a new run.",
            )
        self._trials.append(trial)
        self._forget_decision()
        return trial

    def _stop_above(self, fidelity: float) -> float:
        """Return the worst fold of the best trial on this share of rows that the lookahead reveals."""
        if self.fold_racing == "none":
            return math.inf
        known = self._committed[: self._n_shown_to(len(self._trials))]
        best = History(observations=tuple(o for o in known if o.trial.fidelity == fidelity)).incumbent
        return max(best.fold_losses, default=math.inf) if best is not None else math.inf

    def _seeds(self, number: int) -> list[np.random.SeedSequence]:
        """Return the seeds of the strategy and of the learner for a trial."""
        return np.random.SeedSequence(self.seed, spawn_key=(number,)).spawn(2)

    def _decide(self) -> Suggestion | None:
        """Return the next decision, or None if it needs more outcomes."""
        if self._decision is None:
            self._decision = (
                self._stored_decision()
                or self._promotion()
                or self._next_warm_start()
                or self._next_of_batch()
                or self._ask_strategy()
            )
        return self._decision

    def _stored_decision(self) -> Suggestion | None:
        """Return the decision on a trial that is stored already, unless it can be made again."""
        if self._can_repeat or (stored := self._arrived.get(len(self._trials))) is None:
            return None
        trial = stored.trial
        return Suggestion(configuration=trial.configuration, origin=trial.origin, fidelity=trial.fidelity)

    def _ask_strategy(self) -> Suggestion | None:
        """Return the suggestion of the strategy, or None if it needs more outcomes; if it takes too long, draw one.

        The strategy first sees the outcomes that the lookahead reveals, then one more at a time until they suffice. So
        what it finally sees does not depend on which ones have arrived.
        """
        number = len(self._trials)
        for visible in range(max(self._n_shown_to(number), self._n_insufficient + 1), len(self._committed) + 1):
            clock = Deadline(None)
            history = self._history_for_strategy(visible, self._pending(visible))
            rng = np.random.default_rng(self._seeds(number)[0])
            if self._decides_too_long:
                decided = self._encoder.encode(trial.configuration for trial in history.trials)
                suggestion: Suggestion | None = draw_suggestion(self._encoder, decided, rng)
            else:
                with one_blas_thread():
                    suggestion = self.strategy.suggest(history, rng)
            self._note_deciding(number, clock.elapsed)
            if suggestion is not None:
                return replace(suggestion, fidelity=self._rungs[0])
            self._n_insufficient = visible
            if visible == number:
                raise StrategyError(
                    f"{self.strategy!r} returned None for trial {number} although every outcome is known. "
                    "suggest() may return None only while trials are pending; else it must return a Suggestion.",
                    strategy=self.strategy,
                )
        return None

    def _next_of_batch(self) -> Suggestion | None:
        """Return the next decision of the batch; if none is left, decide the next batch. None without batches.

        In the order of trials, batches begin at fixed numbers and see what the lookahead reveals to their first trial.
        So a resumed study takes the same decisions again, even in the middle of a batch.
        """
        if not self._batch:
            if self._batch_size == 1 or self._decides_too_long:
                return None
            clock, number = Deadline(None), len(self._trials)
            n_passed = 0 if not self._can_repeat else (number - len(self.warm_start)) % self._batch_size
            visible = self._n_shown_to(number - n_passed)
            pending = [trial for trial in self._pending(visible) if trial.number < number - n_passed]
            history = self._history_for_strategy(visible, pending)
            rng = np.random.default_rng(self._seeds(number - n_passed)[0])
            assert isinstance(self.strategy, BatchStrategy)
            with one_blas_thread():
                together = self.strategy.suggest_batch(history, rng, self._batch_size)
            if len(together) != self._batch_size:
                raise StrategyError(
                    f"{self.strategy!r} was asked for {self._batch_size} suggestions and returned {len(together)}. "
                    "suggest_batch() must return as many as it is asked for.",
                    strategy=self.strategy,
                )
            self._batch.extend(together[n_passed:])
            self._note_deciding(number, clock.elapsed)
        return replace(self._batch.popleft(), fidelity=self._rungs[0])

    def _note_deciding(self, number: int, seconds: float) -> None:
        self.suggest_seconds[number] = self.suggest_seconds.get(number, 0.0) + seconds
        self._pace.note(_DECIDING, seconds)

    @functools.cached_property
    def _batch_size(self) -> int:
        """Number of decisions that are taken together."""
        if self.lookahead < BATCHES_FROM or not isinstance(self.strategy, BatchStrategy):
            return 1
        return self.lookahead // BATCHES_IN_LOOKAHEAD if self.strategy.decides_in_batches else 1

    @property
    def _decides_too_long(self) -> bool:
        """Whether decisions have taken more than their share of a time budget in this call."""
        if self._planned_seconds is None:
            return False
        allowed = max(_DECIDING_SECONDS, _DECIDING_SHARE * self._spent_by_trials())
        return sum(self.suggest_seconds.values()) > allowed

    def _promotion(self) -> Suggestion | None:
        """Return the configuration to try on more rows, or None if none deserves it."""
        if len(self._rungs) == 1:
            return None
        n_known = len(self._committed)
        planned = None if self._plan is None else self._plan.worker_seconds
        is_late = planned is not None and self._spent_by_trials() > _EARLY_SHARE * planned
        history = self._history(n_known, self._pending(n_known))
        return promotion(
            history,
            self._rungs,
            is_late=is_late,
            seconds_left=self._seconds_left(),
            largest_share=self._largest_share,
        )

    def _next_warm_start(self) -> Suggestion | None:
        """Return the next configuration to evaluate before the strategy is asked, or None if none is left."""
        if (configuration := self._first_warm_start_left()) is None:
            return None
        return Suggestion(configuration=configuration, origin=Origin(OriginKind.WARM_START), fidelity=self._rungs[0])

    def _first_warm_start_left(self) -> Configuration | None:
        number = len(self._trials)
        if len(self._rungs) > 1:
            number = sum(trial.origin.kind is not OriginKind.PROMOTED for trial in self._trials)
        if number >= len(self.warm_start):
            return None
        if self._planned_seconds is None:
            return self.warm_start[number]
        decided = {trial.key for trial in self._trials}
        left = [c for c in self.warm_start if configuration_key(c) not in decided]
        if not left:
            return None
        n_known = self._n_shown_to(len(self._trials))
        time_left = self._time_left(n_known)
        return best_per_second(
            left,
            [self._gains[c] for c in left],
            observations=self._committed[:n_known],
            encoder=self._encoder,
            seconds=self._planned_seconds * time_left.share if time_left is not None else math.inf,
            share=self._rungs[0],
        )

    @property
    def _planned_seconds(self) -> float | None:
        """Planned worker seconds if only time limits the study; costs only matter then.

        A number of trials promises that the same seed gives the same run, a promise that seconds would break.
        """
        return None if self._plan is None or self._plan.trials is not None else self._plan.worker_seconds

    @property
    def _is_by_arrival(self) -> bool:
        """Whether outcomes are committed as they arrive."""
        return self.order is Order.ARRIVAL or self._planned_seconds is not None

    @property
    def _can_repeat(self) -> bool:
        """Whether a resumed study takes the same decisions again."""
        return not self._is_by_arrival and len(self._rungs) == 1

    @functools.cached_property
    def _encoder(self) -> SpaceEncoder:
        return encoder_of(self._searched)

    # ------------------------------------------------------------ the last seconds

    def fit_into(self, seconds: float, *, has_checkpoints: Callable[[Configuration], bool] | None = None) -> bool:
        """Make sure that the next trial is likely to end within some seconds, if necessary by another decision.

        Such a decision has the origin ``LAST_SECONDS``: it depends on the clock and cannot be derived from the history
        alone. A resumed study with such a plan therefore accepts trials that are stored ahead of their turn as they
        are.

        Parameters
        ----------
        seconds : float
            Wall seconds until the end.
        has_checkpoints : callable, optional
            Whether a trial of a configuration has a result before it ends; such trials are accepted.

        Returns
        -------
        bool
            Whether such a decision was found; also False if more outcomes are needed.
        """
        self._take_stored()
        return self._fit_into(seconds, has_checkpoints)

    def _fit_into(self, seconds: float, has_checkpoints: Callable[[Configuration], bool] | None) -> bool:
        """Do so for the next trial, whether it has an outcome or not."""
        if (decision := self._decide()) is None:
            return False
        n_known, number = len(self._committed), len(self._trials)
        if self._planned_seconds is None or not math.isfinite(seconds) or number in self._arrived:
            return True
        if seconds > _FIRST_RESULT_SECONDS and has_checkpoints is not None and has_checkpoints(decision.configuration):
            return True
        if self._nothing_fits[:2] == (n_known, number) and seconds <= self._nothing_fits[2]:
            return False
        with one_blas_thread():
            in_time = decide_in_time(
                decision,
                seconds,
                strategy=self.strategy,
                history=self._history(n_known, self._pending(n_known)),
                encoder=self._encoder,
                rng=np.random.default_rng(self._seeds(number)[0]),
                rungs=self._rungs,
            )
        if in_time is None:
            self._nothing_fits = (n_known, number, seconds)
            return False
        if in_time is not decision:
            origin = Origin(OriginKind.LAST_SECONDS, str(in_time.origin))
            in_time = replace(in_time, origin=origin)
        self._decision = in_time
        return True

    def _forget_decision(self) -> None:
        self._decision, self._n_insufficient = None, -1

    def tell(self, trial: Trial, outcome: Outcome) -> list[Observation]:
        """Store an outcome, commit all that is complete so far, and return the newly committed observations.

        Aborted outcomes are not stored: the same trial is decided again on resume. The trial counts as a failure if the
        outcome cannot be stored, such as one with an infinite loss, or if the predictions are for other rows or classes
        than those of earlier trials, since no ensemble could use both.

        Raises
        ------
        UsageError
            If the trial is not open: this study has not asked for it, or it already has an outcome.
        """
        return self.tell_all([(trial, outcome)])

    def tell_all(self, finished: Sequence[tuple[Trial, Outcome]]) -> list[Observation]:
        """Store outcomes as `tell` does, but in one transaction: hundreds of workers would wait for the disk."""
        kept: dict[int, tuple[Trial, Outcome]] = {}
        for trial, outcome in finished:
            self._check_open(trial, told=kept)
            if (problem := why_unusable(outcome)) is not None:
                outcome = Outcome(status=TrialStatus.ERROR, error=problem)
            if outcome.status is not TrialStatus.ABORTED:
                kept[trial.number] = (trial, self._checked(outcome, beside=[each for _, each in kept.values()]))
        elapsed = self.elapsed
        if kept and self._store is not None:
            observations = self._store.add(list(kept.values()), finished_at=elapsed)
            self._elapsed_stored = elapsed
        else:
            observations = [
                Observation(trial=trial, outcome=replace(outcome, model=None), finished_at=elapsed)
                for trial, outcome in kept.values()
            ]
        self._arrived |= {observation.trial.number: observation for observation in observations}
        return self._commit()

    def _check_open(self, trial: Trial, *, told: Container[int]) -> None:
        """Raise unless the trial was decided and has no outcome, neither here nor in `told`."""
        number = trial.number
        if number >= len(self._trials) or self._trials[number].key != trial.key:
            raise UsageError(
                f"tell() was called for trial {number}, but this study is not waiting for it. Call it only for trials "
                "that ask() of the same study has returned, and before the next call of optimize().",
                instance=self,
            )
        place = bisect.bisect_left(self._committed, number, key=_number)
        is_committed = place < len(self._committed) and _number(self._committed[place]) == number
        if is_committed or number in self._arrived or number in told:
            raise UsageError(
                f"tell() was called for trial {number}, which already has an outcome. Call it once for each trial.",
                instance=self,
            )

    def _checked(self, outcome: Outcome, *, beside: Sequence[Outcome]) -> Outcome:
        """Return the outcome, or a failure if its predictions do not fit those of earlier trials or of `beside`."""
        if outcome.predictions is None:
            return outcome
        before = (o.outcome for o in itertools.chain(self._committed, self._arrived.values()))
        found, known = outcome.predictions.shape, itertools.chain(before, beside)
        expected = next((o.predictions.shape for o in known if o.predictions is not None), None)
        if expected is None and self.targets is not None:
            expected = (len(self.targets), *found[1:])
        if expected in (None, found):
            return outcome
        text = f"no usable outcome: its predictions have the shape {found}, expected {expected}"
        return Outcome(
            status=TrialStatus.ERROR,
            error=Cause(kind=CauseKind.UNUSABLE, text=text),
            duration_seconds=outcome.duration_seconds,
            memory_mib=outcome.memory_mib,
        )

    # ------------------------------------------------------------ the loop

    def optimize(
        self,
        objective: Objective,
        budget: str | float | Budget | None,
        *,
        executor: Executor | None = None,
        stop: Callable[[], bool] = lambda: False,
        seconds_left: Callable[[], float] = lambda: math.inf,
        callback: Callback | None = None,
        on_tick: Callable[[], None] | None = None,
    ) -> History:
        """Ask, run and tell until the budget is spent, and return the history.

        Parameters
        ----------
        objective : callable
            Function from `Trial` to `Outcome`.
        budget : str, float, Budget or None
            A number of trials includes those of earlier calls; seconds count from this call. The first budget becomes
            the plan of a study that has none. With None, only `stop` ends the loop.
        executor : Executor, optional
            Where trials run; by default in this process.
        stop : callable
            Called about twenty times per second; if it returns true, the loop ends and leaves running trials
            unfinished.
        seconds_left : callable
            Returns the wall-clock seconds until trials will be stopped, if an outside clock decides. Near the end,
            trials that are unlikely to finish are not started, see `fit_into`; nothing is decided or stored that would
            take longer than the time left, judging by how long it took before; the loop ends when no trial is running
            or would fit.
        callback : callable, optional
            Called with every committed observation: in trial order, or as they arrive if `order` says so or the plan is
            a time alone.
        on_tick : callable, optional
            Called in every iteration of the loop, for progress displays.
        """
        budget = None if budget is None else Budget.parse(budget)
        deadline = Deadline(None if budget is None else budget.seconds)
        executor = executor or InProcessExecutor()
        if executor.n_workers > self.lookahead:
            raise LookaheadError(
                f"The executor has {executor.n_workers} workers, but the lookahead of the study is {self.lookahead}. "
                "Use no more workers than the lookahead, or make the study with a larger one. The lookahead is never "
                "raised silently, because the decisions of a run depend on it.",
                lookahead=self.lookahead,
                n_open=executor.n_workers,
                instance=self,
            )
        if self._plan is None and budget is not None:
            seconds = None if budget.seconds is None else self._spent_by_trials() + budget.seconds * executor.n_workers
            self._set_plan(WorkBudget(trials=budget.trials, worker_seconds=seconds))
        has_checkpoints: Callable[[Configuration], bool] | None = None
        if isinstance(objective, SupervisedObjective) and not isinstance(executor, InProcessExecutor):
            has_checkpoints = objective.has_checkpoints

        def left() -> float:
            return min(deadline.remaining, seconds_left())

        self._seconds_left = left
        running: dict[Future[Outcome], Trial] = {}
        finished: queue.SimpleQueue[Future[Outcome]] = queue.SimpleQueue()
        n_submitted = submitted_at_once(executor.n_workers)
        too_late: list[Trial] = []
        limit = math.inf if budget is None or budget.trials is None else budget.trials
        try:
            while len(self._committed) < limit and left() > 0 and not stop():
                self._keep_elapsed(_FORGOTTEN_SECONDS)
                while len(self._trials) < limit and len(running) < n_submitted and self._can_ask_within(left()):
                    seconds = left()
                    # Trials beyond the workers wait for a free one, by when half of the time may be gone.
                    seconds = seconds / 2 if len(running) >= executor.n_workers else seconds
                    if not self._fit_into(seconds, has_checkpoints):
                        break
                    trial = self._next_trial()
                    if trial.number not in self._arrived:
                        future = executor.submit(objective, trial)
                        running[future] = trial
                        future.add_done_callback(finished.put)
                    if left() <= 0 or stop() or not finished.empty():
                        break
                self._announce(self._commit(), callback)
                if not running and (
                    len(self._trials) >= limit
                    or self._nothing_fits[:2] == (len(self._committed), len(self._trials))
                    or not self._can_ask_within(left())
                ):
                    break  # nothing more can happen
                taken = [(running.pop(future), future) for future in _taken(finished, timeout=0.05 if running else 0.0)]
                too_late += self._tell_in_time(taken, left, callback)
                if on_tick is not None:
                    on_tick()
            self._unfinished = {trial.number: (trial, future) for future, trial in running.items()}
            self._unfinished |= {trial.number: (trial, None) for trial in too_late}
        finally:  # also after Ctrl+C or an error: a later call decides the open trials again
            self._seconds_left = _for_ever
            self._forget_open_trials()
        return self.history

    def _tell_in_time(
        self,
        taken: Sequence[tuple[Trial, Future[Outcome]]],
        left: Callable[[], float],
        callback: Callback | None,
    ) -> list[Trial]:
        """Tell outcomes that have arrived together; return the trials whose outcomes there is no time to store."""
        told, too_late, size = [], [], 0.0
        try:
            for trial, future in sorted(taken, key=lambda pair: pair[0].number):
                outcome = future.result()
                if left() < self._pace.bound(_STORING, size + _mib(outcome), expected=_SECONDS_PER_MIB):
                    too_late.append(trial)
                else:
                    told.append((trial, outcome))
                    size += _mib(outcome)
        finally:  # if the executor has failed, still keep what had finished before
            if told:
                clock = time.perf_counter()
                self._announce(self.tell_all(told), callback)
                self._pace.note(_STORING, time.perf_counter() - clock, size)
        return too_late

    def cancel_waiting(self) -> None:
        """Cancel the trials that `optimize` did not wait for and no worker has started: others may need the workers."""
        for _, future in self._unfinished.values():
            if future is not None:
                future.cancel()

    @property
    def n_running(self) -> int:
        """Number of trials that are still running because `optimize` did not wait for them."""
        return sum(future is not None and not future.done() for _, future in self._unfinished.values())

    def _keep_elapsed(self, pause: float = 0.0) -> None:
        """Store the elapsed time, in case of a kill, unless it was stored less than `pause` seconds ago."""
        if self._store is not None and self.elapsed - self._elapsed_stored >= pause:
            self._elapsed_stored = self.elapsed
            self._store.set_fact("elapsed_seconds", self._elapsed_stored)

    def _forget_open_trials(self) -> None:
        """Go back to the first trial without an outcome, which can be decided again; set later outcomes aside."""
        known = {o.trial.number for o in self._committed}
        end = next(number for number in range(len(self._trials) + 1) if number not in known)
        self._arrived |= {o.trial.number: o for o in self._committed if o.trial.number >= end}
        self._committed = [o for o in self._committed if o.trial.number < end]
        del self._trials[end:]
        self._forget_decision()
        self._batch.clear()
        self._keep_elapsed()

    def _can_ask_within(self, seconds: float) -> bool:
        return seconds > self._pace.bound(_DECIDING, expected=0.0) and self._can_decide()

    def keep_unfinished(self) -> None:
        """Keep the results so far of the trials that were running when `optimize` ended.

        Call this after the executor has stopped them. In the order of trials, and with a number of trials as the plan,
        they run again on resume, as if nothing had happened. Otherwise a trial without a result counts as failed if a
        later one has a result, which can only be committed after it.
        """
        unfinished = {n: (trial, _outcome_of(future)) for n, (trial, future) in self._unfinished.items()}
        self._unfinished = {}
        if not self._is_by_arrival:
            return
        told = []
        with_results = {number for number, (_, outcome) in unfinished.items() if outcome is not None}
        for number in range(len(self._trials), max(with_results | self._arrived.keys(), default=-1) + 1):
            if number in self._arrived:
                self._trials.append(self._arrived[number].trial)
                continue
            if number not in unfinished:
                break
            trial, outcome = unfinished[number]
            self._trials.append(trial)
            ended = Outcome(status=TrialStatus.TIMEOUT, error=Cause(kind=CauseKind.SEARCH_ENDED))
            told.append((trial, outcome or ended))
        self.tell_all(told)

    def _spent_by_trials(self) -> float:
        return sum(observation.duration_seconds for observation in self._committed)

    def _announce(self, observations: list[Observation], callback: Callback | None) -> None:
        if callback is not None:
            for observation in observations:
                callback(self, observation)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the history, without the open store and the callables that a run has passed."""
        committed = [_in_memory(o) for o in self._committed]
        return {
            **self.__dict__,
            "_store": None,
            "_committed": committed,
            "_arrived": {},
            "_unfinished": {},
            "_largest_share": None,
            "_seconds_left": _for_ever,
        }


def submitted_at_once(n_workers: int) -> int:
    """Return how many trials to submit to an executor at a time: one for each worker, and some that wait."""
    return n_workers + max(1, n_workers // _WORKERS_PER_WAITING_TRIAL)


def run_digest(history: Sequence[Observation], weights: Sequence[tuple[int, float]] = ()) -> str:
    """Return a fingerprint of a run, computed from its trials, losses and ensemble weights, bit for bit.

    Parameters
    ----------
    history : sequence of Observation
        The trials and their outcomes, in trial order.
    weights : sequence of (trial number, weight)
        The ensemble.

    Returns
    -------
    str
        16 hexadecimal digits; equal if and only if the runs are equal (up to hash collisions). Durations are ignored.
    """
    digest = hashlib.sha256()
    for o in history:
        values = json.dumps(plain_values(o.trial.configuration), sort_keys=True)
        losses = [float(loss).hex() for loss in o.fold_losses]
        digest.update(f"{o.trial.number}|{values}|{o.trial.seed}|{o.status}|{losses}\n".encode())
    for number, weight in sorted(weights):
        digest.update(f"{number}:{float(weight).hex()}\n".encode())
    return digest.hexdigest()[:16]


def _for_ever() -> float:
    return math.inf


def _taken(finished: queue.SimpleQueue[Future[Outcome]], *, timeout: float) -> list[Future[Outcome]]:
    """Return the futures that have finished; if none has, wait up to `timeout` seconds for the first."""
    taken = []
    try:
        taken.append(finished.get(timeout=timeout))
        while True:
            taken.append(finished.get_nowait())
    except queue.Empty:
        return taken


def _number(observation: Observation) -> int:
    return observation.trial.number


def _mib(outcome: Outcome) -> float:
    """Return the size of what is written for an outcome, plus a constant for the cost of small ones."""
    n_bytes = 0 if outcome.predictions is None else outcome.predictions.nbytes
    return 1.0 + (n_bytes + len(outcome.model or b"")) / 2**20


def _outcome_of(future: Future[Outcome] | None) -> Outcome | None:
    """Return the outcome of a trial that may have been stopped without one."""
    if future is None or not future.done() or future.cancelled() or future.exception() is not None:
        return None
    outcome = future.result()
    return None if outcome.status is TrialStatus.ABORTED else outcome


def _in_memory(observation: Observation) -> Observation:
    if observation.predictions is None:
        return observation
    return replace(observation, outcome=replace(observation.outcome, predictions=np.array(observation.predictions)))
