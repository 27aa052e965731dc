"""``cashmere explain``: which columns the ensemble of a run relies on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cashmere.cli.app import app
from cashmere.cli.terminal import Quiet, RunFolder, plain, say, typed_errors


@app.command()
def explain(
    folder: RunFolder,
    rows: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Validation rows to predict (default: as many as take half a minute)."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, metavar="N", help="Number of permutations of each column.")] = 5,
    effects: Annotated[int, typer.Option(min=0, metavar="N", help="Number of columns whose effects are computed.")] = 6,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed for permutations and rows.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Also write the importances of all columns to this file."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Measure the importance of columns. Shows a table, and adds importances and effects to the report."""
    with typed_errors():
        from rich.console import Console
        from rich.table import Table

        from cashmere.cli.output_files import check_output, write_table
        from cashmere.explanations import explain as explain_run
        from cashmere.report import write_report

        if output is not None:
            check_output(output)
        found = explain_run(folder, rows=rows, repeats=repeats, effects=effects, seed=seed)
        found.save(folder)
        path = write_report(folder)
        table = found.importance
        if output is not None:
            write_table(table, output)
            say(quiet, f"{len(table)} importances written to {output}")
        if quiet:
            return
        direction = "fall" if found.greater_is_better else "rise"
        measured = sum(len(each.columns) for each in found.importances)
        caption = f"{found.n_rows} of {found.n_validation_rows} validation rows, {repeats} permutations each"
        if measured < found.n_columns:
            caption += f"; the {measured} of {found.n_columns} columns that go most with the predictions"
        grid = Table(title=plain(f"{direction} of {found.metric} without a column"), caption=plain(caption), box=None)
        grid.add_column("column, or columns that go together", overflow="fold")
        for name in (direction, "90 % from", "to"):
            grid.add_column(name, justify="right", no_wrap=True)
        for row in table.itertuples(index=False):
            grid.add_row(*map(plain, row))
        Console().print(grid)
        say(quiet, str(path))
