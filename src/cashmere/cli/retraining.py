"""``cashmere retrain``: fit the ensemble of a run again on newer rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cashmere.base.text import counted
from cashmere.cli.app import app
from cashmere.cli.searching import make_progress, tell
from cashmere.cli.terminal import Quiet, RunFolder, TableName, say, typed_errors

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
    drop_missing_target: Annotated[
        bool, typer.Option("--drop-missing-target", help="Leave out rows that have no target.")
    ] = False,
    sample_weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of row weights, at least 0; not used as a feature.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Number of parallel trials (default: number of cores, at most 4)."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Fit the ensemble of a run again on newer rows.

    Makes a new run with the same settings, without a search: the members keep their hyper-parameters; weights,
    calibration and thresholds are learned again.
    """
    with typed_errors(out):
        from pandas.api.types import is_numeric_dtype

        from cashmere.data.reading import as_categories, read_table, take_column
        from cashmere.data.target import rows_with_target
        from cashmere.run.retraining import EarlierRun, retrain_run

        earlier = EarlierRun.read(folder)
        frame = read_table(table)
        as_categories(table, frame, [n for n in earlier.categorical if n in frame and is_numeric_dtype(frame[n])])
        y: Any = take_column(frame, earlier.settings.target_name, "target")
        if drop_missing_target:
            frame, y, n_missing = rows_with_target(frame, y)
            say(quiet, f"{counted(n_missing, 'row')} without a target left out.")
        weight = None if sample_weight is None else take_column(frame, sample_weight, "weights")
        _, unknown = earlier.features_of(frame)
        if unknown:
            names = ", ".join(unknown[:_NAMED]) + (", ..." if len(unknown) > _NAMED else "")
            say(quiet, f"{counted(len(unknown), 'column')} that the run does not know left out: {names}.")
        finished = retrain_run(
            earlier,
            frame,
            y,
            out=out,
            budget=budget,
            sample_weight=weight,
            numbers=frame.index.to_numpy(dtype="int64"),
            n_workers=workers,
            load=False,
            progress=make_progress(quiet),
        )
        tell(finished, quiet=quiet)
