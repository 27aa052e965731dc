"""The work of one call on a run: search until the budget is spent, then choose and save the final ensemble."""

from __future__ import annotations

import functools
import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from cashmere.analysis import contest_fact, latent_map_fact
from cashmere.base.interrupts import stop_on_interrupt
from cashmere.base.pace import Pace
from cashmere.data.prepared import prepare_folds
from cashmere.data.row_structure import is_in_time
from cashmere.ensembles.stopping import never
from cashmere.evaluation.baseline import fit_baseline
from cashmere.evaluation.objective import CrossValidationObjective, forget_folds
from cashmere.exceptions import (
    ClusterError,
    ClusterWarning,
    IncompatibleParametersError,
    LatencyWarning,
    NoSuccessfulTrialError,
)
from cashmere.execution.in_process import InProcessExecutor
from cashmere.model.files import Encoders
from cashmere.model.fold_model import FoldModel
from cashmere.model.predictor import Predictor
from cashmere.protocols import Executor
from cashmere.records.budget import Budget, Deadline
from cashmere.records.trial import History
from cashmere.records.work_budget import WorkBudget
from cashmere.run.ensemble_builder import EnsembleBuilder
from cashmere.run.executor import largest_matrix_mib
from cashmere.run.finished import FinishedRun, StopReason
from cashmere.run.growing_model import GrowingModel
from cashmere.run.joined_losses import joined_losses
from cashmere.run.latency_limit import LatencyLimit
from cashmere.run.members import Members
from cashmere.run.preparation_time import preparation_check
from cashmere.run.progress import Progress, Silence, Status, searching
from cashmere.run.repeats import Repeats
from cashmere.run.run_directory import RunDirectory
from cashmere.storage.trial_tables import failures_table
from cashmere.study import Study

_REFRESH_PAUSE_SECONDS = 1.0
"""Minimum time between two choices of the ensemble, however fast trials are."""

_REFRESH_SPACING = 20
"""How many times its latest duration the choice of the ensemble waits, so that it takes a twentieth of the search."""

_REPORT_SPACING = 50
"""The same for the report, which is written to measure its duration."""

_STATUS_PAUSE_SECONDS = 0.1
"""Minimum time between two displays of the state."""

_LOADING_SHARE = 0.1
"""Share of the elapsed time that loading members may take during the search."""

_LOADED_MIB = 512.0
"""Largest model on disk whose members are loaded during the search, as trials need the memory."""

_LOADING_SHARE_OF_END = 0.25
"""Largest share of the budget that is reserved for loading at the end."""

_OPTIONAL_LOADING_SHARE_OF_END = 0.05
"""The same if the ensemble is loaded only to measure its latency. If that takes longer, it is measured only if other
steps have left enough time."""

_REPORT = "report"

_SPARE_SECONDS = 0.3
"""Reserved for what is not measured: ending the workers, removing temporary files, ending the process. As these take
longer on a busy machine, the time of saving or of the report, whichever is longer, is added."""

_STOPPING_SECONDS, _STOPPING_SHARE_OF_END = 0.5, 0.02
"""Reserved for stopping the workers and storing what their trials had achieved, and its largest share of the budget."""

_CROSS_FIT_CHOICES = 5
"""The cross-fitted loss needs at least this many choices of the ensemble, one for each part of the rows."""

_CROSS_FIT_SHARE_OF_END = 0.05
"""Largest share of the budget that is reserved for it. Cross-fitting also averages and calibrates the ensemble: with
1,000,000 rows and 60 s, where fits end early and their probabilities are underconfident, this reduced the log loss by
3 %."""

_MEASURING_SHARE_OF_END = 0.2
"""Largest share of the budget that is reserved for measuring the latency of trials. The best are measured first."""

_CORRECTIONS = 3
"""How often to choose again if the ensemble as a whole is slower than the sum of its parts."""

_LATENCY_SECONDS = (0.1, 1.0)
"""Minimum and maximum time for measuring latency; in between, a quarter of the time left."""


class Session:
    """A call that works on a run: its study, its members, and the model that grows with them.

    `begin` prepares everything; `search` and `finish` follow.

    Parameters
    ----------
    run : RunDirectory
        The open run directory.
    study : Study
        Decides and stores the trials.
    model : GrowingModel
        Built from the trials.
    repeats : Repeats
        Fits the members on further splits, if requested.
    budget : Budget or None
        Budget of this call; `trials` counts all trials of the run. With None, nothing is left and no trial is run.
    deadline : Deadline
        The clock of the whole call.
    executor : Executor
        Runs the trials; `search` shuts it down.
    progress : Progress
        Told about every change.
    baseline : sequence of FoldModel
        The constant predictor of each fold.
    pace : Pace
        Durations of the steps.
    write_report : callable or None
        Writes the report of the run as it is.
    load : bool
        Whether the caller wants the ensemble in memory; otherwise it is loaded only if time is left.

    Attributes
    ----------
    run, study, model
        As given.

    Notes
    -----
    A call ends within its time because the duration of each step after the search is bounded by how long it took during
    the search, on the same machine under the same load: choosing, loading and saving the ensemble, and writing the
    report, which is written from time to time for this purpose. The search ends when only the time for these steps is
    left. After it, an optional step is skipped if its bound exceeds the time left, and is stopped halfway if it takes
    longer; the choice of a few trials ago then stands.
    """

    def __init__(
        self,
        run: RunDirectory,
        *,
        study: Study,
        model: GrowingModel,
        repeats: Repeats,
        budget: Budget | None,
        deadline: Deadline,
        executor: Executor,
        progress: Progress,
        baseline: Sequence[FoldModel],
        pace: Pace,
        write_report: Callable[[], object] | None,
        load: bool,
    ) -> None:
        self.run, self.study, self.model, self._repeats = run, study, model, repeats
        self._budget, self._deadline, self._executor, self._progress = budget, deadline, executor, progress
        self._baseline, self._pace, self._write_report, self._load = baseline, pace, write_report, load
        self._n_before = len(study.history)
        self._suggested_before = float(run.store.facts().suggest_seconds or 0.0)
        self._refreshed_at = -1
        self._next_refresh = self._next_report = self._next_status = self._seconds_of_loading = 0.0

    @classmethod
    def begin(
        cls,
        run: RunDirectory,
        budget: Budget | None,
        deadline: Deadline,
        *,
        executor: Executor | None = None,
        progress: Progress | None = None,
        write_report: Callable[[], object] | None = None,
        load: bool = True,
    ) -> Self:
        """Encode the folds, evaluate the constant predictor and restore the study.

        Parameters
        ----------
        run, budget, deadline, progress, write_report, load
            See `Session`.
        executor : Executor, optional
            Runs the trials, by default in this process; `search` shuts it down.

        Raises
        ------
        BudgetTooShortError
            If the time ends before the folds of a large table are encoded.
        """
        progress, pace = progress or Silence(), Pace()
        progress.update(Status(metric=run.metric.name, phase="preparing"))
        settings, rows = run.settings, run.rows
        plan = _plan(run, budget)
        folds, encoders = prepare_folds(
            run.folder / "prepared",
            run.coded_table,
            rows.y,
            run.splits,
            sorted(run.space.encodings),
            task_type=run.target.task_type,
            seed=settings.seed,
            weight=rows.weight,
            structure=rows.structure,
            rungs=run.rungs,
            table=run.folder / "table.npz" if rows.are_compact else None,
            largest_matrix_mib=largest_matrix_mib(settings),
            check=preparation_check(deadline, rows.values.size),
        )
        baseline, baseline_loss = fit_baseline(folds, sorted(run.space.encodings)[0], run.metric)
        members = Members(run.store, baseline, pace=pace, trusted=run.space.trusted_types)
        run.store.set_fact("baseline_loss", baseline_loss)
        study = Study(
            run.space.configuration_space,
            run.strategy_for_table(),
            seed=settings.seed,
            lookahead=settings.lookahead_of_study,
            order=settings.order,
            warm_start=run.first_configurations(in_time=plan is None or plan.trials is None),
            store=run.store,
            fold_racing=settings.fold_racing,
            plan=plan,
            worst_loss=run.metric.worst_loss,
            baseline_loss=baseline_loss,
            metric=run.metric,
            targets=np.asarray(rows.y[folds.validation_rows], dtype=np.float64),
            row_weights=None if rows.weight is None else rows.weight[folds.validation_rows],
            # A number of trials is a promise: that many configurations, each on all rows.
            rungs=folds.rungs if plan is None or plan.trials is None else folds.rungs[-1:],
            largest_share=lambda configuration: folds.largest_share[run.space.encoding_of(configuration)],
            already_spent=deadline.elapsed,
        )
        builder = EnsembleBuilder(
            method=settings.ensemble,
            size=settings.ensemble_size,
            metric=run.metric,
            pool=run.validation_pool(),
            seed=settings.seed,
            has_model=members.exists,
            decision_threshold=settings.decision_threshold,
            n_fold_models=len(run.splits),
        )
        repeats = Repeats(run, budget, members, encoders)
        model = GrowingModel(
            run,
            members=members,
            builder=builder,
            repeats=repeats,
            pace=pace,
            latency_limit=_latency_limit(run, members, repeats.encoders),
        )
        return cls(
            run,
            study=study,
            model=model,
            repeats=repeats,
            budget=budget,
            deadline=deadline,
            executor=executor or InProcessExecutor(),
            progress=progress,
            baseline=baseline,
            pace=pace,
            write_report=write_report,
            load=load,
        )

    # ------------------------------------------------------------ search

    def search(self) -> StopReason:
        """Search until the budget is spent or the user stops it; reserve time for `finish`.

        Raises
        ------
        ClusterError
            If the cluster is lost before a trial has succeeded. Otherwise the search ends, with a `ClusterWarning`.

        Notes
        -----
        Ctrl+C (in the main thread) ends the search cleanly; a second one raises KeyboardInterrupt.
        """
        run, budget, executor = self.run, self._budget, self._executor
        if budget is None:
            return StopReason.SPENT
        objective = CrossValidationObjective(
            folder=(run.folder / "prepared").absolute(),
            space=run.space,
            metric=run.metric,
            n_threads=getattr(executor, "n_threads", 1),
        )
        with stop_on_interrupt() as interrupted:
            optimize = functools.partial(
                self.study.optimize,
                objective,
                None if budget.trials is None else Budget(trials=budget.trials),
                executor=executor,
                stop=interrupted.is_set,
                on_tick=self._tick,
            )
            try:
                optimize(seconds_left=self._left_for_search)
                self._repeat(interrupted.is_set)
                if self._repeats.most > 0 and self._left_for_trials() > 0 and not self.study.n_running:
                    # No other repeat fits, so use the rest for trials.
                    self.study.keep_unfinished()
                    optimize(seconds_left=self._left_for_trials)
            except ClusterError as error:
                if not self.study.history.successes:
                    raise
                warnings.warn(ClusterWarning(f"{error} The model is made of what has finished."), stacklevel=2)
                return StopReason.CLUSTER
            finally:
                executor.shutdown()
                forget_folds()
        self.study.keep_unfinished()
        if interrupted.is_set():
            return StopReason.INTERRUPT
        if budget.trials is not None and len(self.study.history) >= budget.trials:
            return StopReason.TRIALS
        return StopReason.TIME

    def _repeat(self, stop: Callable[[], bool]) -> None:
        """Fit the members of the ensemble on other splits, if requested, as long as time is left."""
        history = self.study.history
        if self._repeats.most == 0 or not history.successes or stop():
            return
        self.model.choose(history, stop=self._is_over if self.model.builder.loss is not None else never)
        self.model.cross_fit(history, stop=self._is_over)
        self.study.cancel_waiting()
        self._repeats.fit(
            history,
            self.model.builder.weights,
            self._executor,
            n_busy=lambda: self.study.n_running,
            seconds_left=self._left_for_trials,
            stop=stop,
            on_tick=lambda: self._progress.update(self._status()),
        )

    def _tick(self) -> None:
        self._refresh()
        if (now := self._deadline.elapsed) >= self._next_status:  # not each time, as it looks at all trials
            self._progress.update(self._status())
            self._next_status = now + _STATUS_PAUSE_SECONDS

    def _refresh(self) -> None:
        """Update the model to the history, but spend only a small share of the time on it."""
        if self._refreshed_at > 0 and self._deadline.elapsed < self._next_refresh:
            return
        history = self.study.history
        if len(history) == self._refreshed_at:
            return
        if self._refreshed_at > 0 and self._left_for_search() < self.model.choosing_seconds():
            return  # `finish` will do the same
        clock = time.perf_counter()
        self.model.refresh(history, at_seconds=self.study.elapsed, stop=lambda: self._left_for_search() < 0)
        self._keep_contest(history)
        spent = time.perf_counter() - clock
        if self._deadline.seconds is not None:
            self._load_ahead()
            self._report_ahead()
        self._refreshed_at = len(history)
        self._next_refresh = self._deadline.elapsed + max(_REFRESH_PAUSE_SECONDS, _REFRESH_SPACING * spent)

    def _load_ahead(self) -> None:
        """Load members as far as it takes little time and memory, so that few are left for the end.

        If none will be kept, load one of each algorithm, to learn its seconds.
        """
        most = min(_LOADING_SHARE * self._deadline.elapsed - self._seconds_of_loading, self._left_for_search())
        clock = Deadline(most)
        if self._load and self.model.size_bytes <= _LOADED_MIB * 2**20:
            self.model.load_members(lambda seconds: seconds <= clock.remaining)
        else:
            self.model.learn_loading(lambda seconds: seconds <= clock.remaining)
        self._seconds_of_loading += clock.elapsed

    def _report_ahead(self) -> None:
        """Write the report from time to time, to know how long it takes."""
        if self._write_report is None or self._deadline.elapsed < self._next_report:
            return
        if self._left_for_search() > self._reporting_seconds():
            clock = time.perf_counter()
            self._write_report()
            seconds = time.perf_counter() - clock
            self._pace.note(_REPORT, seconds)
            self._next_report = self._deadline.elapsed + _REPORT_SPACING * seconds

    def _reporting_seconds(self) -> float:
        return 0.0 if self._write_report is None else self._pace.bound(_REPORT, expected=0.5)

    def _left_for_search(self) -> float:
        """Return the seconds until the search must end, before repeats."""
        left = self._left_for_trials()
        if self._repeats.most == 0:
            return left
        return left - self._repeats.reserved_seconds(self.study.history, self.model.builder.weights)

    def _left_for_trials(self) -> float:
        """Return the seconds until the workers must end."""
        if self._deadline.seconds is None:
            return float("inf")
        cross_fitting = min(
            _CROSS_FIT_CHOICES * self.model.choosing_seconds(), _CROSS_FIT_SHARE_OF_END * self._deadline.seconds
        )
        stopping = min(_STOPPING_SECONDS, _STOPPING_SHARE_OF_END * self._deadline.seconds)
        reserved = self.model.choosing_seconds() + cross_fitting + self._reserved_for_loading() + stopping
        if (limit := self.model.latency_limit) is not None:
            most = _MEASURING_SHARE_OF_END * self._deadline.seconds
            reserved += min(limit.seconds_to_measure(self.study.history), most)
        return self._left_at_the_end() - reserved

    def _reserved_for_loading(self) -> float:
        assert self._deadline.seconds is not None
        loading = self.model.loading_seconds()
        if self._load:
            return min(loading, _LOADING_SHARE_OF_END * self._deadline.seconds)
        return loading if loading <= _OPTIONAL_LOADING_SHARE_OF_END * self._deadline.seconds else 0.0

    def _left_at_the_end(self) -> float:
        """Return the seconds left for optional steps after the search."""
        saving, reporting = self.model.saving_seconds(), self._reporting_seconds()
        return self._deadline.remaining - saving - reporting - max(saving, reporting) - _SPARE_SECONDS

    def _status(self) -> Status:
        history, score, loss = self.study.history, self.run.metric.score, self.model.builder.loss
        best = history.incumbent
        return searching(
            self._budget,
            self._deadline,
            trials=len(history),
            n_before=self._n_before,
            failures=len(history.failures),
            best_score=None if best is None or best.loss is None else score(best.loss),
            ensemble_score=None if loss is None else score(loss),
            metric=self.run.metric.name,
        )

    # ------------------------------------------------------------ finish

    def finish(self, stop_reason: StopReason) -> FinishedRun:
        """Choose the final ensemble, save the model and the facts about the run.

        Parameters
        ----------
        stop_reason : StopReason
            Why the search ended.

        Raises
        ------
        NoSuccessfulTrialError
            If trials were run and every one failed. The model folder then holds the constant predictor.
        """
        self._progress.update(self._status().finishing())
        history, model = self.study.history, self.model
        predictor, cross_fitted_loss = self._final_ensemble(history)
        latency = {} if predictor is None else self._measure_latency(predictor, history)
        for _ in range(_CORRECTIONS):
            if not self._is_too_slow(latency) or self._is_over():
                break
            predictor, cross_fitted_loss = self._final_ensemble(history)
            latency = {} if predictor is None else self._measure_latency(predictor, history)
        self._warn_of_latency(latency)
        information = {**model.information(history, cross_fitted_loss), "latency": latency}
        if predictor is not None:
            predictor.information = information
        model.save(information, history)
        self._keep_facts(history, stop_reason, cross_fitted_loss=cross_fitted_loss, latency=latency)
        rows = self.run.store.rows()
        if history.failures and not history.successes:
            raise _nothing_succeeded(rows)
        self._progress.update(self._status().finishing())  # with the score of the final ensemble
        target = self.run.target
        return FinishedRun(
            folder=self.run.folder,
            metric=self.run.metric,
            labels=tuple(target.labels()) if target.task_type.is_classification else (),
            study=self.study,
            predictor=predictor,
            weights=model.builder.weights,
            rows=rows,
            facts=self.run.store.facts(),
            stop_reason=stop_reason,
            n_new=len(history) - self._n_before,
            n_newest=len(self.run.splits[-1].validation) if is_in_time(self.run.rows.structure) else 0,
        )

    def _final_ensemble(self, history: History) -> tuple[Predictor | None, float | None]:
        """Choose the last ensemble and load it; return it with its cross-fitted loss.

        Without time to load it, choose among the members loaded so far; without time to cross-fit, skip that.
        """
        model = self.model
        if len(history) == self._n_before:  # nothing new: restore the model of the last call, however long it takes
            model.choose_finally(history)
            cross_fitted_loss = model.cross_fit(history)
            return model.predictor(history), cross_fitted_loss
        model.choose_finally(history, stop=self._is_over if model.builder.loss is not None else never)
        cross_fitted_loss, loading = None, model.loading_seconds() if self._load else 0.0
        if self._fits(_CROSS_FIT_CHOICES * model.choosing_seconds() + loading):
            cross_fitted_loss = model.cross_fit(history, stop=lambda: not self._fits(loading))
        if not self._load:
            return model.predictor(history) if self._fits(model.loading_seconds()) else None, cross_fitted_loss
        if not model.load_members(self._fits, at_least=1):
            model.choose_finally(history, among=model.loaded)
            cross_fitted_loss = None
        if cross_fitted_loss is None and self._fits(_CROSS_FIT_CHOICES * model.choosing_seconds()):
            # Loading took less than its bound, or there is no time for more of it.
            cross_fitted_loss = model.cross_fit(history, among=tuple(model.loaded), stop=self._is_over)
        return model.predictor(history), cross_fitted_loss

    def _fits(self, seconds: float) -> bool:
        """Return whether there is time for an optional step."""
        return self._left_at_the_end() >= seconds

    def _is_over(self) -> bool:
        return not self._fits(0)

    def _measure_latency(self, predictor: Predictor, history: History) -> dict[str, float]:
        sample = self.run.read_sample()
        if sample is None:
            return {}
        # In a trial, one of its models predicts each validation row; here, all of them predict the sample.
        members, n_rows = set(predictor.ensemble.members), max(1, len(self.run.rows.y))
        seconds = sum(o.predict_seconds for o in history.successes if o.trial.number in members)
        if not self._fits(2 * seconds * len(sample) * len(self.run.splits) / n_rows + _LATENCY_SECONDS[0]):
            return {}
        least, most = _LATENCY_SECONDS
        return predictor.measure_latency(sample, seconds=min(most, max(least, self._left_at_the_end() / 4)))

    def _is_too_slow(self, latency: dict[str, float]) -> bool:
        """Return whether the model breaks its latency limit, and another choice may keep it."""
        limit, members = self.model.latency_limit, self.model.builder.ensemble.members
        return limit is not None and bool(latency) and limit.correct(members, latency["single_row_ms"] / 1000)

    def _warn_of_latency(self, latency: dict[str, float]) -> None:
        """Warn if the model breaks its latency limit after all."""
        limit = self.model.latency_limit
        if limit is None or not self.study.history.successes:
            return
        seconds = latency["single_row_ms"] / 1000 if latency else limit.least_seconds
        if not math.isfinite(seconds):
            text = (
                "max_latency was not applied: no time was left to measure predictions, or other machines trained the "
                "models. Select again with `cashmere refine --max-latency`."
            )
            warnings.warn(LatencyWarning(text), stacklevel=5)
        elif seconds > limit.seconds:
            text = (
                f"A prediction of one row takes {1000 * seconds:.3g} ms, and max_latency is {1000 * limit.seconds:.3g} "
                "ms. Give more time, name faster algorithms with include, or allow more."
            )
            warnings.warn(LatencyWarning(text), stacklevel=5)

    def _keep_facts(
        self, history: History, stop_reason: StopReason, *, cross_fitted_loss: float | None, latency: dict[str, float]
    ) -> None:
        """Store the facts that the report shows besides the trials."""
        busy, elapsed = sum(o.duration_seconds for o in history), self.study.elapsed
        builder = self.model.builder
        facts: dict[str, Any] = {
            "stop_reason": stop_reason,
            "ensemble": builder.ensemble.to_json(),
            "ensemble_loss": builder.loss,
            "cross_fitted_loss": cross_fitted_loss,
            "joined_losses": joined_losses(history.incumbent, self._baseline, builder),
            "calibration": None if builder.calibration is None else builder.calibration.to_json(),
            "decision": self.model.decision(),
            "latency": latency,
            "digest": self.model.digest(history),
            "elapsed_seconds": elapsed,
            "busy_seconds": busy,
            "utilisation": busy / max(1e-9, self.run.settings.workers * elapsed),  # elapsed may be 0
            "suggest_seconds": self._suggested_before + sum(self.study.suggest_seconds.values()),
            "ensemble_seconds": self.model.seconds,
            "model_bytes": self.model.size_bytes,
        }
        # This fits a surrogate, as a decision does.
        if self._fits(max(self.study.suggest_seconds.values(), default=0.0)):
            facts["latent_map"] = latent_map_fact(self.study.strategy, history)
        self.run.store.set_facts(facts)
        self._keep_contest(history)

    def _keep_contest(self, history: History) -> None:
        """Store the rounds so far if the strategy is a contest."""
        fact = contest_fact(self.study.strategy, history)
        if fact is not None:
            self.run.store.set_fact("contest", fact)


def _latency_limit(run: RunDirectory, members: Members, encoders: Callable[[int], Encoders]) -> LatencyLimit | None:
    most, sample = run.settings.max_latency, run.read_sample()
    if most is None:
        return None
    if sample is None:
        raise IncompatibleParametersError(
            "max_latency cannot be used with this table: no sample of its rows could be kept to measure on. Leave it "
            "out.",
            {"max_latency": most},
        )
    return LatencyLimit(run, members, encoders, sample, most)


def _plan(run: RunDirectory, budget: Budget | None) -> WorkBudget | None:
    """Return the budget that strategies can plan with: that of the first call, its time multiplied by the workers.

    Later calls keep it, whatever their budgets are, so that costs and rungs count in all calls of a run or in none. It
    is None if nothing is left of the budget and no call has come this far.
    """
    if (stored := run.store.facts().plan) is not None:
        return WorkBudget.from_text(stored)
    if budget is None:
        return None
    seconds = None if budget.seconds is None else run.spent.seconds + budget.seconds
    worker_seconds = None if seconds is None else seconds * run.settings.workers
    return WorkBudget(trials=budget.trials, worker_seconds=worker_seconds)


def _nothing_succeeded(rows: list[dict[str, Any]]) -> NoSuccessfulTrialError:
    table = failures_table(rows)
    failures = list(table[["trial", "algorithm", "status", "cause"]].itertuples(index=False, name=None))
    advice = "\n".join(f"  {text}" for text in dict.fromkeys(table["what_to_try"]))
    return NoSuccessfulTrialError(failures, f"What to try:\n{advice}")
