"""What a call on a run needs before its first trial: folds, constant predictor, study, and the model that grows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from cashmere.base.pace import Pace
from cashmere.data.prepared import PreparedFolds, prepare_folds
from cashmere.evaluation.baseline import fit_baseline
from cashmere.exceptions import CorruptStoreError, IncompatibleParametersError, RunDirectoryError
from cashmere.model.files import Encoders
from cashmere.records.budget import Budget, Deadline
from cashmere.records.work_budget import WorkBudget
from cashmere.run.ensemble_builder import EnsembleBuilder
from cashmere.run.executor import largest_matrix_mib
from cashmere.run.growing_model import GrowingModel
from cashmere.run.latency_limit import LatencyLimit
from cashmere.run.members import Members
from cashmere.run.preparation_time import preparation_check
from cashmere.run.repeats import Repeats
from cashmere.run.run_directory import RunDirectory
from cashmere.study import Study


def prepare(run: RunDirectory, budget: Budget | None, deadline: Deadline) -> tuple[Study, GrowingModel]:
    """Encode the folds, evaluate the constant predictor, and restore the study and what its model is made of.

    Parameters
    ----------
    run : RunDirectory
        The open run directory.
    budget : Budget or None
        Budget of the call; None if nothing is left.
    deadline : Deadline
        The clock of the call.

    Raises
    ------
    BudgetTooShortError
        If the time ends before the folds of a large table are encoded.
    RunDirectoryError
        If the run has models of another version of cashmere that made other columns.
    """
    _keep_columns(run)
    began = deadline.elapsed
    folds, encoders = prepare_folds(
        run.folder / "prepared",
        run.coded_table,
        run.rows.y,
        run.splits,
        sorted(run.space.encodings),
        task_type=run.target.task_type,
        seed=run.settings.seed,
        n_classes=run.target.n_classes,
        weight=run.rows.weight,
        structure=run.rows.structure,
        rungs=run.rungs,
        table=run.folder / "table.npz" if run.rows.are_compact else None,
        largest_matrix_mib=largest_matrix_mib(run.settings),
        check=preparation_check(deadline, run.rows.values.size),
    )
    preparing_seconds = deadline.elapsed - began
    _check_columns(run, folds)
    baseline, baseline_loss = fit_baseline(folds, sorted(run.space.encodings)[0], run.metric)
    pace = Pace()
    members = Members(run.store, baseline, pace=pace, trusted=run.space.trusted_types)
    run.store.set_fact("baseline_loss", baseline_loss if np.isfinite(baseline_loss) else None)
    study = _study(run, _plan(run, budget), folds, baseline_loss=baseline_loss, already_spent=deadline.elapsed)
    repeats = Repeats(run, budget, members, encoders, preparing_seconds=preparing_seconds)
    return study, _growing_model(run, members, repeats, pace)


def _keep_columns(run: RunDirectory) -> None:
    """Note how many columns an earlier version has made for the models of a run, before they are made again."""
    if run.store.facts().columns is None and run.store.member_sizes():
        with contextlib.suppress(RunDirectoryError, CorruptStoreError):
            run.store.set_fact("columns", PreparedFolds(run.folder / "prepared").n_columns)


def _check_columns(run: RunDirectory, folds: PreparedFolds) -> None:
    """Raise if the models of a run read other columns than are made now."""
    stored = run.store.facts().columns
    if stored is None or not run.store.member_sizes():
        run.store.set_fact("columns", folds.n_columns)
    elif any(stored.get(form, n) != n for form, n in folds.n_columns.items()):
        raise RunDirectoryError(
            run.folder,
            "was begun by another version of cashmere, whose models read other columns made of texts or categories. "
            "Continue it with that version, or start a new run.",
        )


def _study(
    run: RunDirectory, plan: WorkBudget | None, folds: PreparedFolds, *, baseline_loss: float, already_spent: float
) -> Study:
    settings, rows = run.settings, run.rows
    return Study(
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
        already_spent=already_spent,
    )


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


def _growing_model(run: RunDirectory, members: Members, repeats: Repeats, pace: Pace) -> GrowingModel:
    settings = run.settings
    builder = EnsembleBuilder(
        method=settings.ensemble,
        size=settings.ensemble_size,
        metric=run.metric,
        pool=run.validation_pool(),
        seed=settings.seed,
        has_model=members.exists,
        decision_threshold=settings.decision_threshold,
        positive=run.target.positive,
        n_fold_models=len(run.splits),
        log_scores=run.profile.learns_logarithms,
    )
    return GrowingModel(
        run,
        members=members,
        builder=builder,
        repeats=repeats,
        pace=pace,
        latency_limit=_latency_limit(run, members, repeats.encoders),
    )


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
