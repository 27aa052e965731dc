"""``cashmere compare``: run strategies on a table with several seeds, and compare them on unseen rows."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cashmere.cli.app import app
from cashmere.cli.searching import allow_local_modules
from cashmere.cli.terminal import (
    INTERRUPTED,
    DropMissingTarget,
    Excluded,
    Gap,
    Included,
    Memory,
    MissingTarget,
    Quiet,
    SpaceName,
    TableName,
    TaskChoice,
    TaskKind,
    TrialTimeout,
    plain,
    print_whole,
    say,
    say_error,
    typed_errors,
)

if TYPE_CHECKING:
    from cashmere.comparison import StrategyComparison

_INTERRUPTED_TEXT = "Interrupted; finished runs are kept. Run the same command to continue."


@app.command()
def compare(
    table: TableName,
    target: Annotated[str, typer.Option(metavar="COLUMN", help="Column to predict.")],
    strategy: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Strategy, with options such as bo:n_initial=20; give at least two."),
    ],
    budget: Annotated[str, typer.Option(metavar="BUDGET", help="Budget of each run, such as 100trials or 2m.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder, or that of a comparison to continue.")],
    seeds: Annotated[int, typer.Option(min=2, metavar="N", help="Number of seeds; each has its own test set.")] = 5,
    first_seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="First seed; choose seeds that nothing was tuned on.")
    ] = 0,
    reference: Annotated[
        str | None, typer.Option(metavar="NAME", help="Strategy to compare with (default: the first).")
    ] = None,
    metric: Annotated[str | None, typer.Option(metavar="NAME", help="Metric (default: log_loss or rmse).")] = None,
    task: TaskKind = TaskChoice.AUTO,
    drop_missing_target: DropMissingTarget = False,
    missing_target: MissingTarget = None,
    space: SpaceName = "default",
    include: Included = None,
    exclude: Excluded = None,
    resampling: Annotated[
        str, typer.Option(metavar="NAME", help="auto, holdout, or a number of folds such as 5fold.")
    ] = "auto",
    groups: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of groups, which are never split.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of times: the newest rows are the test set.")
    ] = None,
    gap: Gap = None,
    workers: Annotated[int | None, typer.Option(min=1, metavar="N", help="Number of parallel trials.")] = None,
    lookahead: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Trials decided ahead of known results; 1 with --workers 1: none."),
    ] = None,
    memory: Memory = None,
    trial_timeout: TrialTimeout = None,
    quiet: Quiet = False,
) -> None:
    """Compare strategies on a table, with several seeds."""
    for name in strategy:
        allow_local_modules(name)
    with typed_errors():
        from cashmere.cli.targets import take_target
        from cashmere.comparison import compare_strategies
        from cashmere.data.reading import read_table
        from cashmere.data.target import check_target, infer_task_type
        from cashmere.data.task import TaskType
        from cashmere.estimators import AutoClassifier, AutoRegressor

        frame = read_table(table)
        frame, y = take_target(frame, target, missing=missing_target, drop_missing=drop_missing_target, quiet=quiet)
        kind = infer_task_type(check_target(y)) if task is TaskChoice.AUTO else TaskType(task.value)
        estimator = (AutoClassifier if kind.is_classification else AutoRegressor)(
            budget=budget,
            metric=metric,
            space=space,
            include=include,
            exclude=exclude,
            resampling=resampling,
            gap=gap,
            n_workers=workers,
            lookahead=lookahead,
            memory=memory,
            trial_timeout=trial_timeout,
        )
        try:
            found = compare_strategies(
                estimator,
                frame,
                y,
                strategies=strategy,
                folder=out,
                seeds=range(first_seed, first_seed + seeds),
                reference=reference,
                groups=groups,
                time=time,
                tell=lambda line: say(quiet, line),
            )
        except KeyboardInterrupt:  # outside a search
            say_error(_INTERRUPTED_TEXT)
            raise typer.Exit(INTERRUPTED) from None
        if not quiet and len(found.runs):
            _print(found, reference or strategy[0])
        if found.interrupted:
            say_error(_INTERRUPTED_TEXT)
            raise typer.Exit(INTERRUPTED)
        for note in found.notes:
            say(quiet, f"Note: {note}")
        say(quiet, f"All runs: {out / 'runs.csv'}")


def _print(found: StrategyComparison, reference: str) -> None:
    from rich.table import Table

    grid = Table(box=None, pad_edge=False)
    grid.add_column("strategy", no_wrap=True)
    for name in ("runs", "rank", found.metric, f"loss against {reference}", "better", "worse"):
        grid.add_column(plain(name), justify="right", no_wrap=True)
    for name, runs, rank, score, change, lower, upper, better, worse in found.summary.itertuples(index=False):
        against = "" if name == reference else _change(change, lower, upper)
        grid.add_row(*map(plain, (name, runs, "" if isnan(rank) else f"{rank:.2f}", score, against, better, worse)))
    print_whole(grid)


def _change(mean: float, lower: float, upper: float) -> str:
    """Return a change with its interval, as far as they are known: an interrupted comparison may lack seeds."""
    if isnan(mean):
        return ""
    return f"{mean:+.1f} %" + ("" if isnan(lower) else f" [{lower:+.1f}, {upper:+.1f}]")
