"""``cashmere inspect``: look at a table before a search."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cashmere.base.text import counted
from cashmere.cli.app import app
from cashmere.cli.listed_columns import listed_columns
from cashmere.cli.terminal import (
    Categorical,
    Ignored,
    MissingTarget,
    TableName,
    TaskChoice,
    TaskKind,
    plain,
    say,
    typed_errors,
)


@app.command()
def inspect(
    table: TableName,
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Name of the column to predict; without it, columns are only read."),
    ] = None,
    task: TaskKind = TaskChoice.AUTO,
    missing_target: MissingTarget = None,
    ignore: Ignored = None,
    categorical: Categorical = None,
    new: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Rows to predict later; shows how well columns tell them from the others."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Columns to show, in their order.")] = 50,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write all columns to this file.")
    ] = None,
) -> None:
    """Look at a table before a search. Shows what would be dropped, converted and guessed, and what is suspicious."""
    with typed_errors():
        from rich.console import Console
        from rich.table import Table

        from cashmere.cli.output_files import check_output, write_table
        from cashmere.cli.targets import take_target
        from cashmere.data.column import ColumnKind
        from cashmere.data.frames import to_frame
        from cashmere.data.inference import infer_schema
        from cashmere.data.reading import as_categories, read_table, take_column, words_for_missing
        from cashmere.data.task import TaskType
        from cashmere.inspection import inspect_table

        if output is not None:
            check_output(output)
        frame = read_table(table)
        words = words_for_missing(table, frame)
        ignored = listed_columns(ignore, frame.columns)
        as_categories(table, frame, listed_columns(categorical, frame.columns))
        y = None
        if target is not None:
            frame, y = take_target(frame, target, missing=missing_target)
        for each in ignored:
            take_column(frame, each, "ignored column")
        later = None if new is None else read_table(new, schema=infer_schema(to_frame(frame)))
        if later is not None:
            later = later.drop(columns=[each for each in (target, *ignored) if each in later])
        found = inspect_table(frame, y, task=None if task is TaskChoice.AUTO else TaskType(task.value), new_rows=later)
        if output is not None:
            write_table(found.frame(), output)
            say(False, f"{len(found.columns)} columns written to {output}")
        else:
            grid = Table(box=None, pad_edge=False)
            grid.add_column("column", overflow="fold")
            for name in ("stored as", "read as"):
                grid.add_column(name, no_wrap=True)
            for name in (
                "missing",
                "distinct",
                *(["skill alone"] if target is not None else []),
                *(["drift"] if new is not None else []),
            ):
                grid.add_column(name, justify="right", no_wrap=True)
            for column in found.columns[:top]:
                row = [column.name, column.stored, column.kind if column.dropped is None else "not used"]
                row += [f"{column.missing:.1%}" if column.missing else "", f"{column.distinct:,}"]
                row += [] if target is None else ["" if column.skill is None else f"{max(column.skill, 0.0):.3f}"]
                row += [] if new is None else ["" if column.drift is None else f"{max(column.drift, 0.0):.3f}"]
                grid.add_row(*map(plain, row))
            Console().print(grid)
            if len(found.columns) > top:
                say(False, f"... and {len(found.columns) - top} more columns: show them with --top or -o")
        say(False, "")
        for line in found.summary().splitlines():
            say(False, line)
        names = {column.name for column in found.columns if column.kind in (ColumnKind.CATEGORICAL, ColumnKind.TEXT)}
        for name, counts in words.items():
            if name == target or name in names:
                shown = ", ".join(f"{word!r} ({counted(n, 'row')})" for word, n in counts.items())
                say(False, f"Note: Column {name!r} holds {shown}, read as missing. Rename what is a value there.")
