"""``cashmere fit | resume``: search, and keep everything in a run directory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import time as now
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cashmere.base.text import is_dotted_path
from cashmere.cli.app import app
from cashmere.cli.listed_columns import listed_columns
from cashmere.cli.terminal import (
    INTERRUPTED,
    TRY_AGAIN,
    Categorical,
    DropMissingTarget,
    Excluded,
    Gap,
    Ignored,
    Included,
    Memory,
    MissingTarget,
    Quiet,
    RunFolder,
    SampleWeight,
    Scheduler,
    SpaceName,
    TableName,
    TaskChoice,
    TaskKind,
    TrialTimeout,
    Workers,
    number_or_name,
    say,
    say_error,
    typed_errors,
)

if TYPE_CHECKING:
    from cashmere.run import FinishedRun
    from cashmere.run.progress import Progress


@app.command()
def fit(
    table: TableName,
    target: Annotated[str, typer.Option(metavar="COLUMN", help="Name of the column to predict.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="New directory for the run.")],
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="If the directory holds this run already, continue it: same table and settings, rest of the budget.",
        ),
    ] = False,
    drop_missing_target: DropMissingTarget = False,
    missing_target: MissingTarget = None,
    ignore: Ignored = None,
    categorical: Categorical = None,
    task: TaskKind = TaskChoice.AUTO,
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Metric, such as accuracy, roc_auc or rmse (default: log_loss or rmse)."),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Defaults of settings not given: balanced (10m), fast (1m), best (1h) or small (20ms per row).",
        ),
    ] = "balanced",
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="BUDGET",
            help="Time (10m), number of trials (250trials), or both (10m,250trials) (default: 10m).",
        ),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Search strategy, with options after a colon (divbo:tau=0.1); 'cashmere strategies' lists them. "
            "Your own: my_module.MyStrategy.",
        ),
    ] = "optdivbo",
    space: SpaceName = "default",
    include: Included = None,
    exclude: Excluded = None,
    deployable: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Search only what 'cashmere export' can write: onnx.")
    ] = None,
    opening: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE|RUN",
            help="What the search begins with: defaults, learned, a file made by pretrain, or an earlier run.",
        ),
    ] = "defaults",
    resampling: Annotated[
        str, typer.Option(metavar="NAME", help="Validation: auto, holdout, or a number of folds such as 5fold.")
    ] = "auto",
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of groups: rows of one group are never split between training and validation.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of times: later rows are predicted from earlier ones."),
    ] = None,
    gap: Gap = None,
    sample_weight: SampleWeight = None,
    ensemble: Annotated[
        str, typer.Option(metavar="NAME", help="Ensemble method: selection, bagging, stacking or best.")
    ] = "selection",
    max_latency: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Longest time the model may take to predict one row, such as 5ms."),
    ] = None,
    repeats: Annotated[
        str | None,
        typer.Option(
            metavar="auto|N", help="Number of further splits on which members are fitted again (default: auto)."
        ),
    ] = None,
    refit: Annotated[
        str,
        typer.Option(
            metavar="auto|yes|no",
            help="Whether members are fitted on all rows as well at the end (docs/running.md#ensembles).",
        ),
    ] = "auto",
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="balanced|WEIGHTS", help="Weights of the classes: balanced, or values such as bad=5,good=1."
        ),
    ] = None,
    monotone: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS", help="Columns in which predictions only increase or decrease, such as age+,price-."
        ),
    ] = None,
    decision_threshold: Annotated[
        str,
        typer.Option(
            metavar="NAME|NUMBER",
            help="How to decide between classes: auto, tune, none; of two, also a threshold for the positive one, or a "
            "rate to reach, such as 'recall>=0.95'.",
        ),
    ] = "auto",
    pos_label: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="The positive of two classes, that of f1 and average_precision (default: the second)."
        ),
    ] = None,
    fold_racing: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Stop trials early: none, or forgiving (when worse than the worst fold of the best trial).",
        ),
    ] = "none",
    workers: Workers = None,
    lookahead: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of trials that may be decided ahead of known results "
            "(default: 8, or twice the number of workers if more than 4).",
        ),
    ] = None,
    order: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to use outcomes: trials (in their order: same seed, same run) or arrival (no trial waits for a "
            "slow one; another run each time).",
        ),
    ] = "trials",
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed for all randomness: same seed, same run.")] = 0,
    memory: Memory = None,
    trial_timeout: TrialTimeout = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Search for the best set of models. Everything is kept in a run directory."""
    allow_local_modules(strategy)
    with typed_errors(out):
        if scheduler is None:
            expect_trials(workers, lookahead)
        from cashmere.cli.targets import take_target
        from cashmere.data.frames import to_frame
        from cashmere.data.reading import as_categories, read_table, take_column
        from cashmere.data.row_structure import take_structure
        from cashmere.records.budget import Deadline
        from cashmere.run import RunSettings, fit_run
        from cashmere.run.preparation_time import reading_check
        from cashmere.run.setting_names import check_names

        settings = RunSettings.from_options(
            target=target,
            task=task.value,
            metric=metric,
            preset=preset,
            budget=budget,
            strategy=strategy,
            space=space,
            include=include,
            exclude=exclude,
            deployable=deployable,
            opening=opening,
            resampling=resampling,
            groups=groups,
            time=time,
            gap=gap,
            sample_weight=sample_weight,
            ensemble=ensemble,
            max_latency=max_latency,
            repeats=int(repeats) if repeats is not None and repeats.isdecimal() else repeats,
            refit=refit,
            class_weight=class_weight,
            monotone=monotone,
            decision_threshold=number_or_name(decision_threshold),
            pos_label=pos_label,
            fold_racing=fold_racing,
            workers=workers,
            lookahead=lookahead,
            order=order,
            seed=seed,
            memory=memory,
            trial_timeout=trial_timeout,
        )
        check_names(settings)
        clock = Deadline(settings.budget.seconds, already_spent=seconds_since_start())
        frame = read_table(table, check=reading_check(clock))
        ignored = listed_columns(ignore, frame.columns)
        as_categories(table, frame, listed_columns(categorical, frame.columns))
        frame, y = take_target(frame, target, missing=missing_target, drop_missing=drop_missing_target, quiet=quiet)
        for name in ignored:
            take_column(frame, name, "ignored column")
        numbers = frame.index.to_numpy(dtype="int64")  # of the rows that are left
        weight = None if sample_weight is None else take_column(frame, sample_weight, "weights")
        frame, structure = take_structure(to_frame(frame), groups=groups, time=time, gap=settings.gap)
        given: list[Any] = [y, frame]
        del frame, y  # so that the run holds the only references, and can free their memory early
        finished = fit_run(
            out,
            given.pop(),
            given.pop(),
            settings,
            weight=weight,
            structure=structure,
            numbers=numbers,
            executor=scheduler,
            resume=resume,
            in_all=True,
            load=False,
            already_spent=clock.elapsed,
            progress=make_progress(quiet),
        )
        tell(finished, quiet=quiet)
        if resume:
            _tell_if_nothing_is_new(finished, "give a larger --budget", quiet=quiet)


@app.command()
def resume(
    folder: RunFolder,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="BUDGET", help="Additional budget, such as 5m or 100trials (default: the rest of the budget)."
        ),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Your own strategy that the run was started with: my_module.MyStrategy."),
    ] = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Continue an interrupted run, or extend a finished one."""
    allow_local_modules(strategy)
    with typed_errors(folder):
        from cashmere.records.budget import Budget
        from cashmere.run import continue_run

        more = None if budget is None else Budget.parse(budget)
        finished = continue_run(
            folder,
            more,
            strategy=strategy,
            executor=scheduler,
            load=False,
            already_spent=seconds_since_start(),
            progress=make_progress(quiet),
        )
        tell(finished, quiet=quiet)
        _tell_if_nothing_is_new(finished, "add more with --budget", quiet=quiet)


def expect_trials(workers: int | None, lookahead: int | None = None) -> None:
    """Let the imports of workers run beside those of the command, the reading of the table and the preparation."""
    from cashmere.base.cores import default_workers
    from cashmere.execution.fork_server import expect_workers

    expect_workers(workers or default_workers(lookahead))


def allow_local_modules(strategy: str | None) -> None:
    """Let a strategy given by its path be imported from the working directory, behind all installed packages."""
    if is_dotted_path(strategy) and "" not in sys.path:
        sys.path.append("")


def tell(finished: FinishedRun, *, quiet: bool) -> None:
    """Print the result and where it is; exit with `INTERRUPTED` after Ctrl+C, `TRY_AGAIN` if the cluster was lost."""
    from cashmere.run import StopReason

    folder = finished.folder
    for line in finished.summary().splitlines():
        say(quiet, line)
    say(quiet, f"Model: {folder / 'model'}   Report: {folder / 'report.html'}")
    if finished.study.history.incumbent is None:
        say_error(f"Warning: No trial has succeeded, so the model predicts a constant. Go on: cashmere resume {folder}")
    if finished.interrupted:
        say_error(f"Interrupted; the model is usable. Continue with: cashmere resume {folder}")
        raise typer.Exit(INTERRUPTED)
    if finished.stop_reason is StopReason.CLUSTER:
        say_error(f"ClusterError: The search ended early; the model is usable. Continue with: cashmere resume {folder}")
        raise typer.Exit(TRY_AGAIN)


def _tell_if_nothing_is_new(finished: FinishedRun, advice: str, *, quiet: bool) -> None:
    """Say if a call that continues a run has added no trial, and what to do."""
    from cashmere.run import StopReason

    if finished.stop_reason is StopReason.SPENT:
        say(quiet, f"The budget was already spent; {advice}. Model and report were made again.")
    elif finished.n_new == 0:
        say(quiet, f"No further trial finished in this time; {advice}.")


def make_progress(quiet: bool) -> Callable[[], Progress]:
    """Choose how to show progress: a bar on a terminal, lines in a log, or nothing."""
    from cashmere.run.progress import Bar, PlainLines, Silence

    if quiet:
        return Silence
    return Bar if sys.stdout.isatty() else PlainLines


def seconds_since_start() -> float:
    """Return the age of this process; starting it counts towards the budget, too."""
    import psutil

    return max(0.0, now() - psutil.Process().create_time())
