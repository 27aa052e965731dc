"""``cashmere explain``: which columns the ensemble of a run relies on."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cashmere.base.files import reason
from cashmere.cli.app import app
from cashmere.cli.terminal import Quiet, plain, say, typed_errors

if TYPE_CHECKING:
    from cashmere.explanations import Explanation
    from cashmere.explanations.words import WordEffects

_NOT_PERMITTED = (errno.EROFS, errno.EACCES, errno.EPERM)
"""Errors of writing into a run that may only be read."""

_ROWS = 5
"""Predictions to explain by default."""

_SHOWN, _WORDS_SHOWN = 10, 8
"""Columns shown of each prediction, and words of a text."""

_LETTERS_SHOWN = 200
"""Of a text."""


@app.command()
def explain(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run directory; with --predictions, also a model folder.")
    ],
    rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Validation rows to predict (default: as many as take half a minute); with --predictions, rows of the "
            f"table (default: {_ROWS}).",
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, metavar="N", help="Number of permutations of each column.")] = 5,
    effects: Annotated[int, typer.Option(min=0, metavar="N", help="Number of columns whose effects are computed.")] = 6,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed for permutations and rows.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Also write the values of all columns to this file."),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE", help="Instead, show what each column contributes to the predictions for these rows."
        ),
    ] = None,
    background: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE", help="With --predictions: rows to compare with (default: training rows of the run)."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Measure the importance of columns. Shows a table, and adds importances and effects to the report."""
    with typed_errors():
        from cashmere.cli.output_files import check_output, write_table
        from cashmere.exceptions import MissingParameterError, RunDirectoryError
        from cashmere.explanations import explain as explain_run
        from cashmere.report import write_report

        if output is not None:
            check_output(output)
        if predictions is not None:
            _explain_predictions(
                folder, predictions, background, rows=rows or _ROWS, seed=seed, output=output, quiet=quiet
            )
            return
        if background is not None:
            raise MissingParameterError(
                "predictions", "--background gives rows to compare predictions with. Name the predictions to explain."
            )
        found = explain_run(folder, rows=rows, repeats=repeats, effects=effects, seed=seed)
        table = found.importance
        if output is not None:
            write_table(table, output)
            say(quiet, f"{len(table)} importances written to {output}")
        if not quiet:
            _show(found, repeats=repeats)
        try:
            found.save(folder)
            say(quiet, str(write_report(folder)))
        except RunDirectoryError as error:
            cause = error.__cause__
            if not isinstance(cause, OSError) or cause.errno not in _NOT_PERMITTED or (quiet and output is None):
                raise
            say(quiet, f"Note: the run can only be read, so its report stays as it is ({reason(cause)}).")


def _show(found: Explanation, *, repeats: int) -> None:
    """Print the importance of columns as a table."""
    from rich.console import Console
    from rich.table import Table

    direction = "fall" if found.greater_is_better else "rise"
    measured = sum(len(each.columns) for each in found.importances)
    caption = f"{found.n_rows} of {found.n_validation_rows} validation rows, {repeats} permutations each"
    if measured < found.n_columns:
        caption += f"; the {measured} of {found.n_columns} columns that go most with the predictions"
    grid = Table(
        title=plain(f"{direction} of {found.metric} when a column is shuffled"), caption=plain(caption), box=None
    )
    grid.add_column("column, or columns that go together", overflow="fold")
    for name in (direction, "low (90 %)", "high"):
        grid.add_column(name, justify="right", no_wrap=True)
    for row in found.importance.itertuples(index=False):
        grid.add_row(*map(plain, row))
    Console().print(grid)
    for each in found.words:
        _show_words(each)


def _show_words(found: WordEffects) -> None:
    """Print what the words of a column add to the predictions as a table; of several classes, only two for each."""
    from rich.console import Console
    from rich.table import Table

    grid = Table(title=plain(f"what words of {found.column!r} add to predictions"), box=None)
    grid.caption = "change of the prediction for texts with the word, compared with the same texts without it"
    grid.add_column("word", overflow="fold")
    several = len(found.outputs) > 1
    for name in ("rows", *(("raises most", "by", "lowers most", "by") if several else found.outputs)):
        grid.add_column(plain(name), justify="right", overflow="fold")
    for word, share, change in zip(found.words, found.share, found.change, strict=True):
        chosen = (int(change.argmax()), int(change.argmin())) if several else (0,)
        cells = [cell for k in chosen for cell in ([found.outputs[k]] if several else []) + [f"{change[k]:+.3g}"]]
        grid.add_row(plain(word), f"{share:.1%}", *map(plain, cells))
    Console().print(grid)


def _explain_predictions(
    folder: Path, path: Path, background: Path | None, *, rows: int, seed: int, output: Path | None, quiet: bool
) -> None:
    """Show what contributes most to the predictions for the first rows of a table."""
    from rich.console import Console
    from rich.table import Table

    from cashmere.cli.output_files import write_table
    from cashmere.data.reading import read_table
    from cashmere.explanations import explain_predictions
    from cashmere.model.description import read_schema

    schema = read_schema(folder)
    compared = None if background is None else read_table(background, schema=schema)
    found = explain_predictions(folder, read_table(path, schema=schema).head(rows), background=compared, seed=seed)
    if output is not None:
        write_table(found.contributions.merge(found.predictions, on="row"), output)
        say(quiet, f"{len(found.contributions)} contributions written to {output}")
    if quiet:
        return
    for one in found.predictions.itertuples(index=False):
        of_row = found.contributions[found.contributions["row"] == one.row]
        of_row = of_row.assign(value=of_row["value"].astype(object).where(of_row["value"].notna(), "missing"))
        predicted = f"{found.target} {one.prediction:.4g}"
        if found.is_probability:
            predicted = f"{found.target} = {one.output} with probability {one.prediction:.4g}"
        title = f"Row {one.row}: {predicted}, {one.base:.4g} on average"
        grid = Table(title=plain(title), box=None, title_justify="left")
        grid.add_column("column", overflow="fold")
        grid.add_column("value", overflow="fold")
        for name in ("contribution", "+/-"):
            grid.add_column(name, justify="right", no_wrap=True)
        for each in of_row.head(_SHOWN).itertuples(index=False):
            cells = (each.column, _shortened(each.value), f"{each.contribution:+.4g}", f"{each.standard_error:.2g}")
            grid.add_row(*map(plain, cells))
        rest = of_row["contribution"].iloc[_SHOWN:]
        if len(rest):
            grid.add_row(f"{len(rest)} more", "", f"{rest.sum():+.4g}", "")
        Console().print(grid)
        for column, words in found.words[found.words["row"] == one.row].groupby("column", sort=False):
            first = words.head(_WORDS_SHOWN)
            shown = ", ".join(
                f"{word} {added:+.3g}" for word, added in zip(first["word"], first["change"], strict=True)
            )
            Console().print(plain(f" what words of {column!r} add: {shown}"), highlight=False)


def _shortened(value: object) -> object:
    is_long = isinstance(value, str) and len(value) > _LETTERS_SHOWN
    return f"{str(value)[:_LETTERS_SHOWN]} \u2026" if is_long else value
