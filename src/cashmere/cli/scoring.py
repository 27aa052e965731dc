"""``cashmere score``: how good the ensemble of a run, and each of its members, is on new rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cashmere.base.text import counted
from cashmere.cli.app import app
from cashmere.cli.terminal import Quiet, RunPlace, plain, print_whole, say, tell_unseen, typed_errors

if TYPE_CHECKING:
    from cashmere.evaluation.table_scores import TableScores

_METRICS_OF_MEMBERS = 3
"""Number of metrics that fit beside the members on a terminal."""


@app.command()
def score(
    folder: RunPlace,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Rows with a known target, not used in the run.")],
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the target (default: as in the run).")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Metric to compute; repeatable (default: that of the run and the usual ones)."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write all scores of all models; .json holds intervals, too."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Score the ensemble of a run, and its members, on new rows."""
    with typed_errors():
        from cashmere.base.json_files import write_json
        from cashmere.cli.output_files import check_output, write_table
        from cashmere.data.reading import read_table, take_target
        from cashmere.data.target import rows_with_target
        from cashmere.evaluation.table_scores import score_table
        from cashmere.model.predictor import Predictor

        if output is not None:
            check_output(output, others=(".json",))
        predictor = Predictor.load(folder)
        name = str(predictor.information.get("target", "target")) if target is None else target
        frame = read_table(table, schema=predictor.schema, labels=(name, predictor.target.classes))
        y: Any = take_target(frame, name)
        frame, y, n_missing = rows_with_target(frame, y)
        if n_missing:
            say(quiet, f"Note: {counted(n_missing, 'row')} without a target left out.")
        scores = score_table(predictor, frame, y, metrics=metric)
        tell_unseen(predictor, quiet=quiet)
        if metric is None and predictor.information.get("custom_metric", False):
            own = predictor.information.get("metric")
            say(quiet, f"Note: the metric of the run, {own!r}, is a custom one: pass it to score_table in Python.")
        if not quiet:
            _print(scores)
        if output is not None and output.suffix.lower() == ".json":
            tables = {"models": scores.models, "intervals": scores.intervals}
            rows = {
                name: json.loads(table.to_json(orient="records", double_precision=15)) for name, table in tables.items()
            }
            write_json(output, {"n_rows": scores.n_rows, **rows})
        elif output is not None:
            write_table(scores.models, output)
        if output is not None:
            say(quiet, f"Scores of {counted(len(scores.models), 'model')} written to {output}")


def _print(scores: TableScores) -> None:
    from rich.table import Table

    grid = Table(
        title=plain(f"Ensemble on {counted(scores.n_rows, 'row')}"), title_justify="left", box=None, pad_edge=False
    )
    grid.add_column("metric", no_wrap=True)
    grid.add_column("score", justify="right", no_wrap=True)
    grid.add_column("95 % interval", no_wrap=True)
    grid.add_column("better", no_wrap=True)
    for metric, found, lower, upper, better in scores.intervals.itertuples(index=False):
        grid.add_row(*map(plain, (metric, found, f"{lower:.5g} to {upper:.5g}", better)))
    print_whole(grid)
    print()
    members = Table(title=plain("Its members, best first"), title_justify="left", box=None, pad_edge=False)
    shown = scores.models.iloc[1:, : 3 + _METRICS_OF_MEMBERS]
    for name in shown.columns:
        members.add_column(plain(name), justify="left" if name in ("model", "algorithm") else "right", no_wrap=True)
    for row in shown.itertuples(index=False):
        members.add_row(*map(plain, row))
    print_whole(members)
