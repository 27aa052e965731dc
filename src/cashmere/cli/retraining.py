"""``cashmere retrain``: fit the ensemble of a run again on newer rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cashmere.base.text import counted, first_of
from cashmere.cli.app import app
from cashmere.cli.searching import expect_trials, make_progress, seconds_since_start, tell
from cashmere.cli.terminal import (
    DropMissingTarget,
    MissingTarget,
    Quiet,
    RunFolder,
    Scheduler,
    TableName,
    Workers,
    say,
    typed_errors,
)

_NAMED = 5


@app.command()
def retrain(
    folder: RunFolder,
    table: TableName,
    out: Annotated[Path, typer.Option(metavar="DIR", help="New directory for the new run.")],
    budget: Annotated[
        str | None,
        typer.Option(metavar="BUDGET", help="Search on within this budget, such as 10m (default: the members alone)."),
    ] = None,
    drop_missing_target: DropMissingTarget = False,
    missing_target: MissingTarget = None,
    sample_weight: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of row weights (default: that of the earlier run, if it is there)."
        ),
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Fit the ensemble of a run again on newer rows.

    Makes a new run with the same settings, without a search: the members keep their hyper-parameters; weights,
    calibration and thresholds are learned again.
    """
    with typed_errors(out):
        if scheduler is None:
            expect_trials(workers)
        from pandas.api.types import is_numeric_dtype

        from cashmere.cli.targets import take_target
        from cashmere.data.reading import as_categories, read_table
        from cashmere.records.budget import Budget, Deadline
        from cashmere.run.preparation_time import reading_check
        from cashmere.run.retraining import EarlierRun, retrain_run

        given_budget = None if budget is None else Budget.parse(budget)
        seconds = None if given_budget is None else given_budget.seconds
        clock = Deadline(seconds, already_spent=seconds_since_start())
        earlier = EarlierRun.read(folder, searches=budget is not None)
        frame = read_table(table, check=reading_check(clock))
        as_categories(table, frame, [n for n in earlier.categorical if n in frame and is_numeric_dtype(frame[n])])
        frame, y = take_target(
            frame,
            earlier.settings.target_name,
            missing=missing_target,
            drop_missing=drop_missing_target,
            must_occur=False,
            quiet=quiet,
        )
        weights = earlier.weights_in(frame) if sample_weight is None else sample_weight
        numbers = frame.index.to_numpy(dtype="int64")  # of the rows that are left
        if unknown := earlier.unknown_in(frame, weights=weights):
            names = first_of(unknown, most=_NAMED)
            say(quiet, f"{counted(len(unknown), 'column')} that the run does not know left out: {names}.")
        given: list[Any] = [y, frame]
        del frame, y  # so that the run holds the only references, and can free their memory early
        finished = retrain_run(
            earlier,
            given.pop(),
            given.pop(),
            out=out,
            budget=given_budget,
            sample_weight=weights,
            numbers=numbers,
            n_workers=workers,
            executor=scheduler,
            load=False,
            already_spent=clock.elapsed,
            progress=make_progress(quiet),
        )
        tell(finished, quiet=quiet)
