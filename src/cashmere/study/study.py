"""One search: ask, tell, and the loop around both."""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace

from cashmere.base.arrays import Float64
from cashmere.base.caller import level_of_caller
from cashmere.base.pace import Pace
from cashmere.costs.latest import mean_seconds_of_latest
from cashmere.exceptions import InconsistentResumeError, InvalidParameterError, LookaheadError, UsageError
from cashmere.execution.in_process import InProcessExecutor
from cashmere.execution.outcome_check import outcome_of, why_unusable
from cashmere.protocols import Executor, MetricCheck, Objective, Strategy, SupervisedObjective
from cashmere.records.budget import Budget, Deadline
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.loss import Loss
from cashmere.records.order import Order
from cashmere.records.trial import FOLD_RACING, History, Observation, Outcome, Trial, TrialStatus
from cashmere.records.work_budget import WorkBudget
from cashmere.space.encoding import SpaceEncoder
from cashmere.storage.store import RunStore
from cashmere.strategies import make_strategy
from cashmere.strategies.shared.search_space import SearchSpace
from cashmere.study.decisions import Decisions, seeds_of
from cashmere.study.running_trials import RunningTrials, submitted_at_once
from cashmere.study.state import StudyState

_TELLING_FAILURES = 3
"""Number of failed trials, without a success, that is no accident."""

_FORGOTTEN_SECONDS = 5.0
"""How much of its elapsed time a study may lose if it is killed."""

_SECONDS_PER_MIB = 0.02
"""Expected time to store outcomes until one has been stored, as on a slow disk."""

_STORING = "storing"

Callback = Callable[["Study", Observation], None]


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
    seed, lookahead, order, fold_racing
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
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InvalidParameterError("seed", seed, "a whole number of at least 0")
        if isinstance(metric, str):
            raise InvalidParameterError(
                "metric", metric, "a Metric", "cashmere.evaluation.get_metric(name, task_type) returns it."
            )
        self.space = space.space if isinstance(space, SpaceEncoder) else space
        if not isinstance(self.space, ConfigurationSpace):
            raise InvalidParameterError("space", space, "a ConfigSpace.ConfigurationSpace")
        for configuration in warm_start:
            if not isinstance(configuration, Configuration):
                raise InvalidParameterError(
                    "warm_start",
                    configuration,
                    "configurations of the space",
                    "ConfigSpace.Configuration(space, values=...) makes one from a dict.",
                )
        self.strategy = make_strategy(strategy, space)
        if metric is not None and isinstance(self.strategy, MetricCheck):
            self.strategy.check_metric(metric)
        self.seed, self.lookahead, self.order, self.fold_racing = seed, lookahead, Order.parse(order), fold_racing
        arrived = {} if store is None else store.load(self.space)
        empty = History(
            worst_loss=worst_loss,
            baseline_loss=baseline_loss,
            metric=metric,
            targets=targets,
            row_weights=row_weights,
        )
        self._state = StudyState(lookahead, self.order, arrived, empty)
        self._decisions = Decisions(
            self._state,
            self.strategy,
            space,
            seed=seed,
            warm_start=warm_start,
            rungs=rungs,
            largest_share=largest_share,
        )
        self._running = RunningTrials()
        self._pace = Pace()
        self._store = store
        self._elapsed_before = 0.0 if store is None else store.facts().elapsed_seconds or 0.0
        self._elapsed_before = max([self._elapsed_before, *(o.finished_at for o in arrived.values())])
        self._elapsed_stored = self._elapsed_before
        self._clock = Deadline(None, already_spent=already_spent)
        if plan is not None or (store is not None and store.facts().plan is not None):
            self._set_plan(plan)

    @property
    def history(self) -> History:
        """All committed observations, without pending trials."""
        return self._state.history(len(self._state.committed), ())

    @property
    def suggest_seconds(self) -> dict[int, float]:
        """How long decisions took, by trial number; those of a batch count for its first trial."""
        return self._decisions.seconds

    @property
    def elapsed(self) -> float:
        """Seconds spent in this study, summed over resumes."""
        return self._elapsed_before + self._clock.elapsed

    def _keep_elapsed(self, pause: float = 0.0) -> None:
        """Store the elapsed time, in case of a kill, unless it was stored less than `pause` seconds ago."""
        if self._store is not None and self.elapsed - self._elapsed_stored >= pause:
            self._elapsed_stored = self.elapsed
            self._store.set_fact("elapsed_seconds", self._elapsed_stored)

    def _set_plan(self, plan: WorkBudget | None) -> None:
        """Set the plan, unless the store has an earlier one."""
        text = (self._store.facts().plan if self._store is not None else None) or str(plan)
        self._state.plan = WorkBudget.from_text(text)  # parsed from the text, as a resumed study will read it
        if self._store is not None:
            self._store.set_fact("plan", text)

    # ------------------------------------------------------------ ask

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
            If the strategy has seen all outcomes and still returns None, if it returns a batch of the wrong size, or
            anything else than suggestions in the space.
        InconsistentResumeError
            If the store has the outcome of another configuration.
        """
        self._state.undo_commit_stored()
        self._take_stored()
        return self._next_trial()

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
        return self._decisions.fit_into(seconds, has_checkpoints=has_checkpoints)

    def _take_stored(self) -> None:
        """Decide the next trials as long as they have outcomes, which an earlier call has stored."""
        while len(self._state.decided) in self._state.arrived and self._can_decide():
            self._next_trial()
            self._state.commit()

    def _can_decide(self, *, seconds_left: float = math.inf) -> bool:
        return self._state.n_open < self.lookahead and self._decisions.next(seconds_left=seconds_left) is not None

    def _next_trial(self) -> Trial:
        """Decide the next trial, whether it has an outcome or not; see `ask`."""
        state = self._state
        if state.n_open >= self.lookahead:
            raise LookaheadError(
                f"ask() cannot decide another trial: trial {len(state.committed)} has no outcome yet, and the "
                f"lookahead is {self.lookahead}. Call tell() with its outcome first, or make the study with a larger "
                "lookahead.",
                lookahead=self.lookahead,
                n_open=state.n_open,
                instance=self,
            )
        if (suggestion := self._decisions.next()) is None:
            raise UsageError(
                f"ask() cannot decide another trial yet: the strategy needs more outcomes than those of the first "
                f"{len(state.committed)} trials. Call tell() with the outcomes of open trials until can_ask() is true.",
                instance=self,
            )
        number = len(state.decided)
        _, learner_seed = seeds_of(self.seed, number)
        trial = Trial(
            number=number,
            configuration=suggestion.configuration,
            seed=int(learner_seed.generate_state(1)[0] % 2**31),
            origin=suggestion.origin,
            fidelity=suggestion.fidelity,
            stop_above=self._stop_above(suggestion.fidelity),
        )
        stored = state.arrived.get(number)
        if stored is not None and not self._decisions.can_repeat:
            trial = stored.trial  # its decision depended on seconds, perhaps on the clock of an earlier call
        if stored is not None and stored.trial.key != trial.key:
            raise InconsistentResumeError(
                self._store.folder if self._store else "study",
                f"trial {number} was stored with another configuration than the strategy decides now. The settings, "
                "the package or a library have changed since. Continue with those in run.json, or start a new run.",
            )
        state.decided.append(trial)
        self._decisions.forget()
        return trial

    def _stop_above(self, fidelity: float) -> float:
        """Return the worst fold of the best trial on this share of rows that the lookahead reveals."""
        if self.fold_racing == "none":
            return math.inf
        known = self._state.committed[: self._state.n_shown_to(len(self._state.decided))]
        best = History(observations=tuple(o for o in known if o.trial.fidelity == fidelity)).incumbent
        return max(best.fold_losses, default=math.inf) if best is not None else math.inf

    # ------------------------------------------------------------ tell

    def tell(self, trial: Trial, outcome: Outcome | float) -> list[Observation]:
        """Store an outcome, or the loss of a successful trial, and commit what is complete so far.

        Returns the newly committed observations.

        Aborted outcomes are not stored: the same trial is decided again on resume. The trial counts as a failure if the
        outcome cannot be stored, such as one with an infinite loss, or if the predictions are for other rows or classes
        than those of earlier trials, since no ensemble could use both.

        Raises
        ------
        UsageError
            If the trial is not open: this study has not asked for it, or it already has an outcome.
        """
        return self.tell_all([(trial, outcome)])

    def tell_all(self, finished: Sequence[tuple[Trial, Outcome | float]]) -> list[Observation]:
        """Store outcomes as `tell` does, but in one transaction: hundreds of workers would wait for the disk."""
        kept: dict[int, tuple[Trial, Outcome]] = {}
        for trial, result in finished:
            self._check_open(trial, told=kept)
            outcome = outcome_of(result)
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
        self._state.arrived |= {observation.trial.number: observation for observation in observations}
        return self._state.commit()

    def _check_open(self, trial: Trial, *, told: Container[int]) -> None:
        """Raise unless the trial was decided and has no outcome, neither here nor in `told`."""
        if not isinstance(trial, Trial):
            raise InvalidParameterError("trial", trial, "a Trial that ask() has returned")
        number, decided = trial.number, self._state.decided
        if number >= len(decided) or decided[number].key != trial.key:
            raise UsageError(
                f"tell() was called for trial {number}, but this study is not waiting for it. Call it only for trials "
                "that ask() of the same study has returned, and before the next call of optimize().",
                instance=self,
            )
        if self._state.has_outcome(number) or number in told:
            raise UsageError(
                f"tell() was called for trial {number}, which already has an outcome. Call it once for each trial.",
                instance=self,
            )

    def _checked(self, outcome: Outcome, *, beside: Sequence[Outcome]) -> Outcome:
        """Return the outcome, or a failure if its predictions do not fit those of earlier trials or of `beside`."""
        if outcome.predictions is None:
            return outcome
        before = (o.outcome for o in itertools.chain(self._state.committed, self._state.arrived.values()))
        found, known = outcome.predictions.shape, itertools.chain(before, beside)
        expected = next((o.predictions.shape for o in known if o.predictions is not None), None)
        if expected is None and self._state.empty.targets is not None:
            expected = (len(self._state.empty.targets), *found[1:])
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
        others_wait: Callable[[], bool] = lambda: False,
        callback: Callback | None = None,
        on_tick: Callable[[], None] | None = None,
    ) -> History:
        """Ask, run and tell until the budget is spent, and return the history.

        Parameters
        ----------
        objective : callable
            Function from `Trial` to `Outcome`, or to the loss of a successful trial.
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
        others_wait : callable
            Returns whether something else waits for the workers. If so, and another trial of the latest trials' mean
            duration would not end in time, decisions are not replaced by shorter ones, and trials that leave results on
            their way must end in time, too; the loop ends when a worker is free and the next trial would not.
        callback : callable, optional
            Called with every committed observation: in trial order, or as they arrive if `order` says so or the plan is
            a time alone.
        on_tick : callable, optional
            Called in every iteration of the loop, for progress displays.

        Warns
        -----
        UserWarning
            If at least three trials were run in this process and every one failed.

        Raises
        ------
        InvalidParameterError
            If `objective` is no function, or the budget cannot be read.
        LookaheadError
            If the executor has more workers than the lookahead allows.
        StrategyError, InconsistentResumeError
            As from `ask`.
        """
        if not callable(objective):
            raise InvalidParameterError("objective", objective, "a function from a Trial to its loss or an Outcome")
        budget = None if budget is None else Budget.parse(budget)
        deadline = Deadline(None if budget is None else budget.seconds)
        warns, executor = executor is None, executor or InProcessExecutor()
        if executor.n_workers > self.lookahead:
            raise LookaheadError(
                f"The executor has {executor.n_workers} workers, but the lookahead of the study is {self.lookahead}. "
                "Use no more workers than the lookahead, or make the study with a larger one. The lookahead is never "
                "raised silently, because the decisions of a run depend on it.",
                lookahead=self.lookahead,
                n_open=executor.n_workers,
                instance=self,
            )
        state, running = self._state, RunningTrials()
        state.undo_commit_stored()
        if state.plan is None and budget is not None:
            seconds = None if budget.seconds is None else state.spent_seconds + budget.seconds * executor.n_workers
            self._set_plan(WorkBudget(trials=budget.trials, worker_seconds=seconds))
        has_checkpoints: Callable[[Configuration], bool] | None = None
        if isinstance(objective, SupervisedObjective) and not isinstance(executor, InProcessExecutor):
            has_checkpoints = objective.has_checkpoints

        def left() -> float:
            return min(deadline.remaining, seconds_left())

        n_submitted = submitted_at_once(executor.n_workers)
        limit = math.inf if budget is None or budget.trials is None else budget.trials
        try:
            while len(state.committed) < limit and left() > 0 and not stop():
                self._keep_elapsed(_FORGOTTEN_SECONDS)
                while len(state.decided) < limit and len(running) < n_submitted and self._can_decide_within(left()):
                    seconds = left()
                    # Trials beyond the workers wait for a free one, by when half of the time may be gone.
                    seconds = seconds / 2 if len(running) >= executor.n_workers else seconds
                    leaves = seconds < mean_seconds_of_latest(state.committed) and others_wait()
                    if not self._decisions.fit_into(
                        seconds, has_checkpoints=None if leaves else has_checkpoints, or_shorter=not leaves
                    ):
                        break
                    trial = self._next_trial()
                    if trial.number not in state.arrived:
                        running.add(trial, executor.submit(objective, trial))
                    if left() <= 0 or stop() or running.any_finished:
                        break
                self._announce(state.commit(), callback)
                if not running and (
                    len(state.decided) >= limit or self._decisions.nothing_fits or not self._can_decide_within(left())
                ):
                    break  # nothing more can happen
                if (
                    len(running) < executor.n_workers
                    and (self._decisions.nothing_fits or left() <= self._decisions.longest_seconds)
                    and others_wait()
                ):
                    break
                for trial in self._tell_in_time(running.take(timeout=0.05 if running else 0.0), left, callback):
                    running.count_as_unfinished(trial)
                if on_tick is not None:
                    on_tick()
            self._running = running
        finally:  # also after Ctrl+C or an error: a later call decides the open trials again
            state.forget_open_trials()
            self._decisions.forget_all()
            self._keep_elapsed()
        history = self.history
        if warns and len(history.failures) >= _TELLING_FAILURES and not history.successes:
            text = f"All {len(history.failures)} trials have failed. The last: {history.failures[-1].error}"
            warnings.warn(text.partition("\n")[0], stacklevel=level_of_caller())
        return history

    def _can_decide_within(self, seconds: float) -> bool:
        return seconds > self._decisions.longest_seconds and self._can_decide(seconds_left=seconds)

    def _tell_in_time(
        self,
        taken: Sequence[tuple[Trial, Future[Outcome]]],
        left: Callable[[], float],
        callback: Callback | None,
    ) -> list[Trial]:
        """Tell outcomes that have arrived together; return the trials whose outcomes there is no time to store."""
        told, too_late, size = [], [], 0.0
        try:
            for trial, future in taken:
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

    def _announce(self, observations: list[Observation], callback: Callback | None) -> None:
        if callback is not None:
            for observation in observations:
                callback(self, observation)

    # ------------------------------------------------------------ what the loop has not waited for

    def cancel_waiting(self) -> None:
        """Cancel the trials that `optimize` did not wait for and no worker has started: others may need the workers."""
        self._running.cancel_waiting()

    @property
    def n_running(self) -> int:
        """Number of trials that are still running because `optimize` did not wait for them."""
        return self._running.n_running

    def take_late(self, seconds_left: Callable[[], float]) -> bool:
        """Tell the outcomes of trials that have ended since `optimize` did, which does not wait for them.

        Like the results behind a trial that is still running, they count at once, see `count_stored`. In the order of
        trials, and with a number of trials as the plan, nothing is told: these trials run again on resume.

        Parameters
        ----------
        seconds_left : callable
            Returns the wall-clock seconds until trials will be stopped; see `optimize`.

        Returns
        -------
        bool
            Whether there were any, and time to store them.
        """
        if not self._state.is_by_arrival:
            return False
        trials = self._running.trials
        taken = [(trial, future) for trial, future in self._running.take(timeout=0.0) if not future.cancelled()]
        if not taken:
            return False
        self._state.undo_commit_stored()
        self._decide_again(trials)
        try:
            too_late = self._tell_in_time(taken, seconds_left, None)
        finally:
            self._state.forget_open_trials()
            self.count_stored()
        for trial in too_late:
            self._running.count_as_unfinished(trial)
        return len(too_late) < len(taken)

    def keep_unfinished(self) -> None:
        """Keep the results so far of the trials that were running when `optimize` ended.

        Call this after the executor has stopped them. In the order of trials, and with a number of trials as the plan,
        they run again on resume, as if nothing had happened. Otherwise a trial without a result counts as failed if a
        later one has a result, which can only be committed after it.
        """
        unfinished, self._running = self._running.unfinished(), RunningTrials()
        state = self._state
        if not state.is_by_arrival:
            return
        state.undo_commit_stored()
        with_results = [number for number, (_, outcome) in unfinished.items() if outcome is not None]
        end = max([*with_results, *state.arrived], default=-1)
        before = len(state.decided)
        self._decide_again({number: trial for number, (trial, _) in unfinished.items() if number <= end})
        ended = Outcome(status=TrialStatus.TIMEOUT, error=Cause(kind=CauseKind.SEARCH_ENDED))
        open_trials = [trial for trial in state.decided[before:] if trial.number not in state.arrived]
        self.tell_all([(trial, unfinished[trial.number][1] or ended) for trial in open_trials])

    def _decide_again(self, trials: Mapping[int, Trial]) -> None:
        """Decide these trials by number, and those with stored outcomes, up to the first that is neither."""
        state = self._state
        known = {number: observation.trial for number, observation in state.arrived.items()}
        while (trial := known.get(len(state.decided)) or trials.get(len(state.decided))) is not None:
            state.decided.append(trial)

    def count_stored(self) -> None:
        """Let all stored results count, also those behind a trial that was running when an earlier call was killed.

        Call this at the end, when there is no time to decide that trial again. If the plan has a number of trials, only
        the trials before it count. A later call of `optimize` or `ask` begins with it.
        """
        self._state.commit_stored()

    @property
    def n_counting(self) -> int:
        """Number of trials that count at the end if nothing is added, see `count_stored`."""
        state = self._state
        return len(state.committed) + (len(state.arrived) if state.is_by_arrival else 0)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the study without its open store."""
        return {**self.__dict__, "_store": None}


def _mib(outcome: Outcome) -> float:
    """Return the size of what is written for an outcome, plus a constant for the cost of small ones."""
    n_bytes = 0 if outcome.predictions is None else outcome.predictions.nbytes
    return 1.0 + (n_bytes + len(outcome.model or b"")) / 2**20
