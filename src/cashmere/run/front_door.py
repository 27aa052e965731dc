"""Start and continue runs. Command line and estimators both call these functions, and every call ends the same way."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from cashmere.base.arrays import IntArray
from cashmere.base.sklearn_settings import default_sklearn, with_default_sklearn
from cashmere.data.parquet import return_freed_memory
from cashmere.data.row_structure import RowStructure
from cashmere.data.schema import TableSchema
from cashmere.exceptions import CashmereError
from cashmere.execution.cluster import Cluster
from cashmere.execution.engines import open_cluster
from cashmere.execution.fork_server import expect_workers
from cashmere.execution.in_process import InProcessExecutor
from cashmere.protocols import Executor
from cashmere.records.budget import Budget, Deadline
from cashmere.run.executor import make_executor, settings_on
from cashmere.run.finished import FinishedRun
from cashmere.run.preparation_time import preparation_check
from cashmere.run.progress import Progress, Silence, Status
from cashmere.run.run_directory import RunDirectory
from cashmere.run.session import Session
from cashmere.run.settings import RunSettings
from cashmere.storage.remote_run import refuse_url
from cashmere.storage.write_failures import write_failures_explained


def fit_run(
    folder: str | Path,
    frame: pd.DataFrame,
    y: Any,
    settings: RunSettings,
    *,
    weight: Any = None,
    structure: RowStructure | None = None,
    numbers: IntArray | None = None,
    executor: Any = None,
    named: bool = True,
    earlier: TableSchema | None = None,
    resume: bool = False,
    in_all: bool = False,
    any_seed: bool = False,
    report: bool = True,
    load: bool = True,
    already_spent: float = 0.0,
    progress: Callable[[], Progress] = Silence,
) -> FinishedRun:
    """Search for the ensemble that predicts a table best, and keep everything in a run directory.

    Parameters
    ----------
    folder : path
        A new or empty folder, or with `resume` the run directory.
    frame : DataFrame
        Features, from `cashmere.data.frames.to_frame`.
    y : (n_rows,) array-like
        Target.
    settings : RunSettings
        Settings of the run. A budget of trials includes those of earlier calls; a budget of seconds is for this call,
        and so are isolation and, unless they are None, `n_workers`, `memory_mib` and `trial_seconds`.
    weight : (n_rows,) array-like, optional
        Row weights, at least 0; only their ratios count.
    structure : RowStructure, optional
        Groups or times of the rows, if the settings name a column of them.
    numbers : (n_rows,) array of int, optional
        The number of each row in the table of the user, by default from 0 on: for out-of-fold predictions.
    executor : distributed.Client or str, optional
        A cluster for the trials, see `cashmere.execution.engines.open_cluster`; by default they run on this machine.
    named : bool
        Whether the columns have names of their own.
    earlier : TableSchema, optional
        The columns of an earlier run that is fitted again: warnings name those that this one has to leave out.
    resume : bool
        Continue the run in the folder if there is one; the table and all other settings must be the same as at its
        start.
    in_all : bool
        Whether a budget of seconds includes those of earlier calls, so that the same call can be repeated.
    any_seed : bool
        Whether the seed of the settings was drawn, not given: a run that is continued keeps its own.
    report : bool
        Whether to write the report, also after an error.
    load : bool
        Whether to return the ensemble in memory; otherwise it is loaded only if time is left.
    already_spent : float
        Seconds of the budget that were spent before this call.
    progress : callable
        Creates the progress display, once there is something to show.

    Raises
    ------
    RunDirectoryError
        If the folder contains something else, or a run of another table or with other settings; or if it is moved, its
        disk becomes full or permission to write is lost during the run.
    DataError, MetricError, UnknownNameError, InvalidParameterError, IncompatibleParametersError
        If the table, the target or a setting cannot be used.
    BudgetTooShortError
        If the time ends before a large table is prepared.
    NoSuccessfulTrialError
        If trials were run and every one failed.
    ClusterError, MissingDependencyError
        If the cluster cannot be used, or is lost.

    Notes
    -----
    A new run that ends before its search begins, by an error or by Ctrl+C, leaves nothing behind.
    """
    refuse_url(folder)
    deadline = Deadline(settings.budget.seconds, already_spent=already_spent)
    check = preparation_check(deadline, frame.size)
    check()  # reading the table may have taken all the time
    if executor is None and settings.isolation != "none":
        expect_workers(settings.workers)
    with (
        default_sklearn(),  # a decorator would keep the table in memory
        _open_cluster(executor, settings.workers, deadline, progress) as cluster,
        write_failures_explained(Path(folder)),
    ):
        given, settings = settings, settings_on(cluster, settings)
        if resume and (Path(folder) / "run.json").exists():
            run = RunDirectory.open(folder, {name: getattr(settings, name) for name in settings.own_objects})
            with run:
                if cluster is None and given.n_workers is None:
                    run.check_workers()
                if any_seed:
                    settings = replace(settings, seed=run.settings.seed)
                run.check_same(frame, y, settings, weight=weight, structure=structure)
                run.take_limits(given)
                budget: Budget | None = settings.budget
                if in_all:
                    budget = run.rest_of(settings.budget)
                    deadline = Deadline(None if budget is None else budget.seconds, already_spent=deadline.elapsed)
                else:
                    run.set_goal(settings.budget)
                return _work(run, budget, deadline, progress, cluster=cluster, report=report, load=load)
        with RunDirectory.create(
            folder,
            frame,
            y,
            settings,
            weight=weight,
            structure=structure,
            numbers=numbers,
            named=named,
            earlier=earlier,
            check=check,
        ) as run:
            del frame, y  # the run directory holds what is needed of them, and trials need the memory
            return_freed_memory()
            return _work(
                run, settings.budget, deadline, progress, cluster=cluster, report=report, load=load, is_new=True
            )


@with_default_sklearn
def continue_run(
    folder: str | Path,
    more: Budget | None = None,
    *,
    strategy: str | None = None,
    executor: Any = None,
    load: bool = True,
    already_spent: float = 0.0,
    progress: Callable[[], Progress] = Silence,
) -> FinishedRun:
    """Continue an interrupted run, or extend a finished one; the table is read from the run directory.

    Parameters
    ----------
    folder : path
        The run directory.
    more : Budget, optional
        Additional budget; by default the rest of the earlier one. If nothing is left of it, no trial is run; only the
        model and report are made again.
    strategy : str, optional
        The strategy of the run, with its options; required if it must be imported (``"my_module.MyStrategy"``).
    executor, load, already_spent, progress
        See `fit_run`.

    Raises
    ------
    RunDirectoryError
        If the folder is not a run directory or cannot be written, or the run was started with custom objects or
        another strategy.
    CorruptStoreError
        If a file is damaged.
    BudgetTooShortError
        If the time ends before a large table is prepared.
    NoSuccessfulTrialError
        If trials were run and every one failed.
    ClusterError, MissingDependencyError
        If the cluster cannot be used, or is lost.
    """
    refuse_url(folder)
    clock = Deadline(None if more is None else more.seconds, already_spent=already_spent)
    with (
        write_failures_explained(Path(folder)),
        RunDirectory.open(folder, {} if strategy is None else {"strategy": strategy}) as run,
        _open_cluster(executor, run.settings.workers, clock, progress) as cluster,
    ):
        if cluster is None:
            run.check_workers()
        budget = run.extend(more)
        deadline = Deadline(None if budget is None else budget.seconds, already_spent=clock.elapsed)
        return _work(run, budget, deadline, progress, cluster=cluster, report=True, load=load)


def _open_cluster(
    executor: object, n_threads: int, deadline: Deadline, make_progress: Callable[[], Progress]
) -> AbstractContextManager[Cluster | None]:
    """Open the cluster of a call, if there is one; the progress display tells if a worker must be waited for."""

    @contextmanager
    def waiting(address: str) -> Iterator[None]:
        phase = f"waiting for a worker of the cluster at {address}"
        progress = make_progress()
        try:
            progress.update(Status(phase=phase))
            yield
        finally:
            progress.close()

    return open_cluster(executor, n_threads=n_threads, seconds_left=deadline.remaining, waiting=waiting)


def _work(
    run: RunDirectory,
    budget: Budget | None,
    deadline: Deadline,
    make_progress: Callable[[], Progress],
    *,
    cluster: Cluster | None,
    report: bool,
    load: bool,
    is_new: bool = False,
) -> FinishedRun:
    progress: Progress = Silence()
    executor: Executor = InProcessExecutor()
    write: Callable[[], object] | None = None
    has_begun = False
    try:
        from cashmere.report import write_report  # imported late, as its templates are not needed before

        progress = make_progress()
        write = functools.partial(write_report, run.folder) if report else None
        if budget is not None:  # start workers now, so that they are ready when the folds are
            executor = make_executor(
                replace(settings_on(cluster, run.settings), n_workers=run.settings.workers),
                budget,
                rungs=run.rungs,
                log_folder=(run.folder / "logs").absolute(),
                cluster=cluster,
            )
        session = Session(run, budget, deadline, executor=executor, progress=progress, write_report=write, load=load)
        has_begun = True
        finished = session.finish(session.search())
    except BaseException:
        executor.shutdown()
        progress.close()
        if is_new and not has_begun:  # the corrected call may then use the same directory
            run.discard()
        elif write is not None:
            with contextlib.suppress(CashmereError, OSError):  # the first error says what has happened, and what to do
                write()
        raise
    executor.shutdown()
    progress.close()
    if write is not None:
        write()
    return finished
