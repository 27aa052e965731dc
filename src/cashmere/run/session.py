"""One call's work on a run: search until the budget is spent, then choose the final ensemble and save it."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np

from cashmere.analysis import contest_fact, latent_map_fact
from cashmere.base.interrupts import stop_on_interrupt
from cashmere.data.prepared import prepare_folds
from cashmere.data.rungs import rungs
from cashmere.ensembles.pool import ValidationPool
from cashmere.evaluation.baseline import fit_baseline
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.exceptions import NoSuccessfulTrialError
from cashmere.model.predictor import Predictor
from cashmere.records.budget import Budget, Deadline
from cashmere.records.trial import History
from cashmere.records.work_budget import WorkBudget
from cashmere.run.ensemble_builder import EnsembleBuilder
from cashmere.run.executor import largest_matrix_mib, make_executor
from cashmere.run.finished import FinishedRun, StopReason
from cashmere.run.growing_model import GrowingModel
from cashmere.run.members import Members
from cashmere.run.progress import Progress, Silence, Status, searching
from cashmere.run.run_directory import RunDirectory
from cashmere.storage.trial_tables import failures_table
from cashmere.study import Study

_REFRESH_PAUSE_SECONDS = 1.0
"""Shortest time between two choices of the ensemble, however fast trials are."""

_REFRESH_SPACING = 20
"""Multiple of its latest duration that the next choice of the ensemble waits: it takes a twentieth of the search."""

_END_SECONDS = 1.5
"""Time reserved for the end of any call: saving the model, facts, report."""

_END_CHOICES = 8
"""Also reserved, in choices of the ensemble: the final one, five for the cross-fitted loss, and two to spare."""

_CROSS_FIT_CHOICES = 6
"""Cost of the cross-fitted loss, in choices of the ensemble: one for each of its five parts, and one to spare."""

_CROSS_FIT_MARGIN_SECONDS = 0.3
"""Time to leave for saving after the cross-fitted loss."""

_LATENCY_LEAST_LEFT_SECONDS = 0.5
"""With less time left, latency is not measured."""

_LATENCY_SECONDS = (0.1, 1.0)
"""Least and most time for measuring latency; in between, a quarter of the time left."""


class Session:
    """A run at work: its study, its members, and the model that grows with them.

    `begin` prepares everything; `search` and `finish` follow.

    Parameters
    ----------
    run : RunDirectory
        Open.
    study : Study
        Decides and keeps the trials.
    model : GrowingModel
        Built from the trials.
    budget : Budget
        Of this call; `trials` counts all trials of the run.
    deadline : Deadline
        The clock of the whole call.
    progress : Progress
        Told about every change.
    """

    def __init__(
        self,
        run: RunDirectory,
        *,
        study: Study,
        model: GrowingModel,
        budget: Budget,
        deadline: Deadline,
        progress: Progress,
    ) -> None:
        self.run, self.study, self.model = run, study, model
        self._budget, self._deadline, self._progress = budget, deadline, progress
        self._n_before = len(study.history)
        self._suggested_before = float(run.store.facts().suggest_seconds or 0.0)
        self._refreshed_at = -1
        self._next_refresh = 0.0

    @classmethod
    def begin(cls, run: RunDirectory, budget: Budget, deadline: Deadline, *, progress: Progress | None = None) -> Self:
        """Encode the folds, evaluate the constant predictor and restore the study.

        Parameters
        ----------
        run : RunDirectory
            Open.
        budget : Budget
            Of this call; `trials` counts all trials of the run.
        deadline : Deadline
            The clock of the whole call.
        progress : Progress, optional
            Told about every change.
        """
        progress = progress or Silence()
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
            rungs=rungs(min(len(fold.train) for fold in run.splits)),
            table=run.folder / "table.npz" if rows.are_compact else None,
            largest_matrix_mib=largest_matrix_mib(settings),
        )
        baseline, baseline_loss = fit_baseline(folds, sorted(run.space.encodings)[0], run.metric)
        trusted = [name for algorithm in run.space.algorithms for name in algorithm.trusted_types]
        members = Members(run.store, baseline, trusted=trusted)
        run.store.set_fact("baseline_loss", baseline_loss)
        study = Study(
            run.space.configuration_space,
            run.strategy_for_table(),
            seed=settings.seed,
            lookahead=settings.lookahead_of_study,
            warm_start=run.space.default_configurations(),
            store=run.store,
            fold_racing=settings.fold_racing,
            plan=plan,
            worst_loss=run.metric.worst_loss,
            baseline_loss=baseline_loss,
            metric=run.metric,
            targets=np.asarray(rows.y[folds.validation_rows], dtype=np.float64),
            row_weights=None if rows.weight is None else rows.weight[folds.validation_rows],
            # A number of trials is a promise: that many configurations, each on all rows.
            rungs=folds.rungs if budget.trials is None else folds.rungs[-1:],
            largest_share=lambda configuration: folds.largest_share[run.space.encoding_of(configuration)],
        )
        builder = EnsembleBuilder(
            method=settings.ensemble,
            size=settings.ensemble_size,
            metric=run.metric,
            pool=ValidationPool.draw(folds.validation_rows, rows.y, rows.weight, seed=settings.seed),
            seed=settings.seed,
            has_model=members.exists,
            decision_threshold=settings.decision_threshold,
        )
        model = GrowingModel(run, encoders=encoders, members=members, builder=builder)
        return cls(run, study=study, model=model, budget=budget, deadline=deadline, progress=progress)

    # ------------------------------------------------------------ search

    def search(self) -> StopReason:
        """Search until the budget is spent or the user stops it; reserve time for `finish`.

        Notes
        -----
        Ctrl+C (in the main thread) ends the search cleanly; a second one raises KeyboardInterrupt.
        """
        run, budget = self.run, self._budget
        executor = make_executor(run.settings, budget, log_folder=(run.folder / "logs").absolute())
        objective = CrossValidationObjective(
            folder=(run.folder / "prepared").absolute(),
            space=run.space,
            metric=run.metric,
            n_threads=getattr(executor, "n_threads", 1),
        )
        with stop_on_interrupt() as interrupted:
            try:
                self._refresh()
                self.study.optimize(
                    objective,
                    None if budget.trials is None else Budget(trials=budget.trials),
                    executor=executor,
                    stop=lambda: interrupted.is_set() or self._seconds_left() <= 0,
                    seconds_left=self._seconds_left,
                    on_tick=self._tick,
                )
            finally:
                executor.shutdown()
        self.study.keep_unfinished()
        if interrupted.is_set():
            return StopReason.INTERRUPT
        if budget.trials is not None and len(self.study.history) >= budget.trials:
            return StopReason.TRIALS
        return StopReason.TIME

    def _tick(self) -> None:
        self._refresh()
        self._progress.update(self._status())

    def _refresh(self) -> None:
        """Bring the model up to date with the history, but spend at most a small share of the time on it."""
        history, now = self.study.history, self._deadline.elapsed
        if len(history) == self._refreshed_at or (self._refreshed_at > 0 and now < self._next_refresh):
            return
        clock = time.perf_counter()
        self.model.refresh(history, at_seconds=self.study.elapsed)
        self._keep_contest(history)
        self._refreshed_at = len(history)
        spent = time.perf_counter() - clock
        self._next_refresh = self._deadline.elapsed + max(_REFRESH_PAUSE_SECONDS, _REFRESH_SPACING * spent)

    def _seconds_left(self) -> float:
        """Seconds that are left for trials."""
        return self._deadline.remaining - self._seconds_of_the_end()

    def _seconds_of_the_end(self) -> float:
        """Seconds that `finish` and the report will need."""
        choices = _END_CHOICES * self.model.builder.seconds
        return _END_SECONDS + choices + self.model.loading_seconds(self.study.history)

    def _status(self) -> Status:
        history, score, loss = self.study.history, self.run.metric.score, self.model.builder.loss
        best = history.incumbent
        return searching(
            self._budget,
            self._deadline,
            trials=len(history),
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
        model.choose(history)
        cross_fitted_loss = self._cross_fitted_loss(history)
        predictor = model.predictor(history)
        latency = self._measure_latency(predictor)
        predictor.information.update(model.information(history, cross_fitted_loss), latency=latency)
        model.save(predictor.information)
        self._keep_facts(history, stop_reason, cross_fitted_loss=cross_fitted_loss, latency=latency)
        rows = self.run.store.rows()
        if history.failures and not history.successes:
            raise _nothing_succeeded(rows)
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
        )

    def _cross_fitted_loss(self, history: History) -> float | None:
        """Return the cross-fitted loss of the ensemble, if it is known already or there is time to compute it."""
        known = self.run.store.facts()
        if known.cross_fitted_loss is not None and known.digest == self.model.digest(history):
            return known.cross_fitted_loss
        needed = _CROSS_FIT_CHOICES * self.model.builder.seconds + self.model.loading_seconds(history)
        if self._deadline.remaining <= needed + _CROSS_FIT_MARGIN_SECONDS:
            return None
        return self.model.builder.cross_fitted_loss(history)

    def _measure_latency(self, predictor: Predictor) -> dict[str, float]:
        sample, left = self.run.read_sample(), self._deadline.remaining
        if sample is None or left <= _LATENCY_LEAST_LEFT_SECONDS:
            return {}
        least, most = _LATENCY_SECONDS
        return predictor.measure_latency(sample, seconds=min(most, max(least, left / 4)))

    def _keep_facts(
        self, history: History, stop_reason: StopReason, *, cross_fitted_loss: float | None, latency: dict[str, float]
    ) -> None:
        """Store the facts that the report shows beside the trials."""
        busy, elapsed = sum(o.duration_seconds for o in history), self.study.elapsed
        facts: dict[str, Any] = {
            "stop_reason": stop_reason,
            "ensemble": self.model.builder.ensemble.to_json(),
            "ensemble_loss": self.model.builder.loss,
            "cross_fitted_loss": cross_fitted_loss,
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
        for name, value in facts.items():
            self.run.store.set_fact(name, value)
        self._keep_contest(history)
        self.run.store.set_fact("latent_map", latent_map_fact(self.study.strategy, history))

    def _keep_contest(self, history: History) -> None:
        """Store the rounds so far, if the strategy is a contest."""
        fact = contest_fact(self.study.strategy, history)
        if fact is not None:
            self.run.store.set_fact("contest", fact)


def _plan(run: RunDirectory, budget: Budget) -> WorkBudget:
    """Return the budget that strategies can plan with: the time of all calls, once for each worker."""
    seconds = None if budget.seconds is None else run.spent.seconds + budget.seconds
    worker_seconds = None if seconds is None else seconds * run.settings.workers
    return WorkBudget(trials=budget.trials, worker_seconds=worker_seconds)


def _nothing_succeeded(rows: list[dict[str, Any]]) -> NoSuccessfulTrialError:
    table = failures_table(rows)
    failures = list(table[["trial", "algorithm", "status", "cause"]].itertuples(index=False, name=None))
    advice = "\n".join(f"  {text}" for text in dict.fromkeys(table["what_to_try"]))
    return NoSuccessfulTrialError(failures, f"What to try:\n{advice}")
