"""The work of one call on a run: search until the budget is spent, then choose and save the final ensemble."""

from __future__ import annotations

import functools
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

from cashmere.analysis import contest_fact, latent_map_fact
from cashmere.base.caller import level_of_caller
from cashmere.base.interrupts import stop_on_interrupt
from cashmere.data.row_structure import is_in_time
from cashmere.ensembles.stopping import never
from cashmere.evaluation.objective import CrossValidationObjective, forget_folds
from cashmere.exceptions import ClusterError, ClusterWarning, LatencyWarning, NoSuccessfulTrialError
from cashmere.execution.in_process import InProcessExecutor
from cashmere.model.predictor import Predictor
from cashmere.protocols import Executor
from cashmere.records.budget import Budget, Deadline
from cashmere.records.trial import History
from cashmere.run.finished import FinishedRun, StopReason
from cashmere.run.measured_report import MeasuredReport
from cashmere.run.preparation import prepare
from cashmere.run.progress import Progress, Silence, Status, searching
from cashmere.run.repeats import Choice
from cashmere.run.reserved_time import ReservedTime
from cashmere.run.run_directory import RunDirectory
from cashmere.storage.trial_tables import failures_table

_REFRESH_PAUSE_SECONDS = 1.0
"""Minimum time between two choices of the ensemble, however fast trials are."""

_REFRESH_SPACING = 20
"""How many times its latest duration the choice of the ensemble waits, so that it takes a twentieth of the search."""

_STATUS_PAUSE_SECONDS = 0.1
"""Minimum time between two displays of the state."""

_LOADING_SHARE = 0.1
"""Share of the elapsed time that loading members may take during the search."""

_LOADED_MIB = 512.0
"""Largest model on disk whose members are loaded during the search, as trials need the memory."""

_CORRECTIONS = 3
"""How often to choose again if the ensemble as a whole is slower than the sum of its parts."""

_LATENCY_SECONDS = (0.02, 1.0)
"""Minimum and maximum time for measuring latency; in between, a quarter of the time left, but at most the share below
of the time so far."""

_LATENCY_SHARE = 0.02
"""Largest share of the time so far, unless latency is limited: then the choice of the ensemble depends on it."""


class Session:
    """A call that works on a run: its study, and the model that grows with it.

    It is prepared when it is made; `search` and `finish` follow. `ReservedTime` tells how long each may take.

    Parameters
    ----------
    run : RunDirectory
        The open run directory.
    budget : Budget or None
        Budget of this call; `trials` counts all trials of the run. With None, nothing is left and no trial is run.
    deadline : Deadline
        The clock of the whole call.
    executor : Executor, optional
        Runs the trials, by default in this process; `search` shuts it down.
    progress : Progress, optional
        Told about every change.
    write_report : callable, optional
        Writes the report of the run as it is.
    load : bool
        Whether the caller wants the ensemble in memory; otherwise it is loaded only if time is left.

    Attributes
    ----------
    run : RunDirectory
        As given.
    study : Study
        Decides and stores the trials.
    model : GrowingModel
        Built from the trials.

    Raises
    ------
    BudgetTooShortError
        If the time ends before the folds of a large table are encoded.
    """

    def __init__(
        self,
        run: RunDirectory,
        budget: Budget | None,
        deadline: Deadline,
        *,
        executor: Executor | None = None,
        progress: Progress | None = None,
        write_report: Callable[[], object] | None = None,
        load: bool = True,
    ) -> None:
        self.run, self._budget, self._deadline, self._load = run, budget, deadline, load
        self._executor, self._progress = executor or InProcessExecutor(), progress or Silence()
        self._progress.update(Status(metric=run.metric.name, phase="preparing"))
        self.study, self.model = prepare(run, budget, deadline)
        self._report = MeasuredReport(write_report)
        self._time = ReservedTime(deadline, self.study, self.model, self._report, load=load)
        self._n_before = self.study.n_counting
        self._suggested_before = float(run.store.facts().suggest_seconds or 0.0)
        self._refreshed_at = -1
        self._next_refresh = self._next_status = self._seconds_of_loading = 0.0

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
                optimize(seconds_left=self._time.left_for_search, others_wait=self._time.repeats_wait)
                self._repeat(interrupted.is_set)
                if self.model.repeats.most > 0 and self._time.left_for_trials() > 0 and not self.study.n_running:
                    # No other repeat fits, so use the rest for trials.
                    self.study.keep_unfinished()
                    optimize(seconds_left=self._time.left_for_trials)
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
        """Fit the members of the ensemble on other splits, or on all rows, as long as time is left.

        Trials that end meanwhile change the ensemble, and with it the members to fit.
        """
        self.study.count_stored()  # those behind a trial that is still running
        if self.model.repeats.most == 0 or not self.study.history.successes or stop():
            return
        self.study.cancel_waiting()
        left = self._time.left_for_trials

        def late() -> Choice | None:
            has_time = left() >= self.model.choosing_seconds() + self.model.cross_fitting_seconds()
            return self._choose_members() if has_time and self.study.take_late(left) else None

        self.model.repeats.fit(
            self._choose_members(),
            self._executor,
            late=late,
            n_busy=lambda: self.study.n_running,
            seconds_left=left,
            stop=stop,
            on_tick=lambda: self._progress.update(self._status()),
        )

    def _choose_members(self) -> Choice:
        """Choose the members to fit from all trials that have ended."""
        history = self.study.history
        self.model.choose(history, stop=self._time.is_over if self.model.builder.loss is not None else never)
        self.model.cross_fit(history, stop=self._time.is_over)
        return history, self.model.builder.weights

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
        if self._refreshed_at > 0 and self._time.left_for_search() < self.model.choosing_seconds():
            return  # `finish` will do the same
        clock = time.perf_counter()
        self.model.refresh(history, at_seconds=self.study.elapsed, stop=lambda: self._time.left_for_search() < 0)
        self._keep_contest(history)
        spent = time.perf_counter() - clock
        if self._deadline.seconds is not None:
            self._load_ahead()
            self._report.write_ahead(self._deadline, self._time.left_for_search)
        self._refreshed_at = len(history)
        self._next_refresh = self._deadline.elapsed + max(_REFRESH_PAUSE_SECONDS, _REFRESH_SPACING * spent)

    def _load_ahead(self) -> None:
        """Load members as far as it takes little time and memory, so that few are left for the end.

        If none will be kept, load one of each algorithm, to learn its seconds.
        """
        most = min(_LOADING_SHARE * self._deadline.elapsed - self._seconds_of_loading, self._time.left_for_search())
        clock = Deadline(most)
        if self._load and self.model.size_bytes <= _LOADED_MIB * 2**20:
            self.model.load_members(lambda seconds: seconds <= clock.remaining)
        else:
            self.model.learn_loading(lambda seconds: seconds <= clock.remaining)
        self._seconds_of_loading += clock.elapsed

    def _status(self) -> Status:
        history, score, loss = self.study.history, self.run.metric.score, self.model.builder.loss
        best = history.incumbent
        best_loss = None if best is None else best.loss
        if loss is not None and best_loss is not None and loss > best_loss and self._refreshed_at < len(history):
            loss = None  # the ensemble has not seen the best trial yet
        return searching(
            self._budget,
            self._deadline,
            trials=len(history),
            n_before=self._n_before,
            failures=len(history.failures),
            best_score=None if best_loss is None else score(best_loss),
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
        self.study.count_stored()
        self._progress.update(self._status().finishing())
        history, model = self.study.history, self.model
        predictor, cross_fitted_loss = self._final_ensemble(history)
        self._refreshed_at = len(history)
        latency = {} if predictor is None else self._measure_latency(predictor, history)
        for _ in range(_CORRECTIONS):
            if not self._is_too_slow(latency) or self._time.is_over():
                break
            predictor, cross_fitted_loss = self._final_ensemble(history)
            latency = {} if predictor is None else self._measure_latency(predictor, history)
        self._warn_of_latency(latency)
        information = {**model.information(history, cross_fitted_loss, finished=True), "latency": latency}
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
            positive=target.positive,
            study=self.study,
            predictor=predictor,
            weights=model.builder.weights,
            rows=rows,
            facts=self.run.store.facts(),
            stop_reason=stop_reason,
            n_new=len(history) - self._n_before,
            n_newest=len(self.run.rows.y) - len(self.run.splits[-1].train)
            if is_in_time(self.run.rows.structure)
            else 0,
            weighs_classes=self.run.settings.class_weight is not None,
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
        model.choose_finally(history, stop=self._time.is_over if model.builder.loss is not None else never)
        cross_fitted_loss, loading = None, model.loading_seconds() if self._load else 0.0
        if self._time.fits(model.cross_fitting_seconds() + loading):
            cross_fitted_loss = model.cross_fit(history, stop=lambda: not self._time.fits(loading))
        if not self._load:
            return model.predictor(history) if self._time.fits(model.loading_seconds()) else None, cross_fitted_loss
        if not model.load_members(self._time.fits, at_least=1):
            model.choose_finally(history, among=model.loaded)
            cross_fitted_loss = None
        if cross_fitted_loss is None and self._time.fits(model.cross_fitting_seconds()):
            # Loading took less than its bound, or there is no time for more of it.
            cross_fitted_loss = model.cross_fit(history, among=tuple(model.loaded), stop=self._time.is_over)
        return model.predictor(history), cross_fitted_loss

    def _measure_latency(self, predictor: Predictor, history: History) -> dict[str, float]:
        sample = self.run.read_sample()
        if sample is None:
            return {}
        # In a trial, one of its models predicts each validation row; here, all of them predict the sample.
        members, n_rows = set(predictor.ensemble.members), max(1, len(self.run.rows.y))
        seconds = sum(o.predict_seconds for o in history.successes if o.trial.number in members)
        if not self._time.fits(2 * seconds * len(sample) * len(self.run.splits) / n_rows + _LATENCY_SECONDS[0]):
            return {}
        least, most = _LATENCY_SECONDS
        if self.model.latency_limit is None:
            most = min(most, _LATENCY_SHARE * self.study.elapsed)
        return predictor.measure_latency(sample, seconds=max(least, min(most, self._time.left_at_the_end() / 4)))

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
                "models. Select again with `cashmere refine RUN --max-latency`."
            )
            warnings.warn(LatencyWarning(text), stacklevel=level_of_caller())
        elif seconds > limit.seconds:
            text = (
                f"A prediction of one row takes {1000 * seconds:.3g} ms, and max_latency is {1000 * limit.seconds:.3g} "
                "ms. Give more time, name faster algorithms with include, or allow more."
            )
            warnings.warn(LatencyWarning(text), stacklevel=level_of_caller())

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
            "joined_losses": self.model.joined_losses(history),
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
        if self._time.fits(max(self.study.suggest_seconds.values(), default=0.0)):
            facts["latent_map"] = latent_map_fact(self.study.strategy, history)
        self.run.store.set_facts(facts)
        self._keep_contest(history)

    def _keep_contest(self, history: History) -> None:
        """Store the rounds so far if the strategy is a contest."""
        fact = contest_fact(self.study.strategy, history)
        if fact is not None:
            self.run.store.set_fact("contest", fact)


def _nothing_succeeded(rows: list[dict[str, Any]]) -> NoSuccessfulTrialError:
    table = failures_table(rows)
    failures = list(table[["trial", "algorithm", "status", "cause"]].itertuples(index=False, name=None))
    advice = "\n".join(f"  {text}" for text in dict.fromkeys(table["what_to_try"]))
    return NoSuccessfulTrialError(failures, f"What to try:\n{advice}")
