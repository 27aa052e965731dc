"""``cashmere predict``: use the ensemble of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cashmere.base.text import counted
from cashmere.cli.app import app
from cashmere.cli.terminal import Quiet, RunPlace, say, tell_unseen, typed_errors


@app.command()
def predict(
    folder: RunPlace,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Rows to predict.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="A .csv, .csv.gz or .parquet file.")],
    proba: Annotated[bool, typer.Option("--proba", help="Add a column proba_<class> for each class.")] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="COVERAGE",
            help="Add intervals (lower, upper) or sets of classes (in_set_<class>) that contain the truth for this "
            "share of rows, such as 0.9.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Copy this column of the table, such as an identifier; repeatable."),
    ] = None,
    keep_formulas: Annotated[
        bool,
        typer.Option(
            "--keep-formulas",
            help="Write text to CSV unchanged; by default text that a spreadsheet would run gets a leading '.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Predict the rows of a table with the ensemble of a run."""
    with typed_errors():
        from cashmere.cli.output_files import check_output, write_table
        from cashmere.data.reading import read_table, written_columns
        from cashmere.exceptions import IncompatibleParametersError, InvalidParameterError
        from cashmere.model.predictor import Predictor

        check_output(output)
        predictor = Predictor.load(folder)
        if proba and not predictor.target.task_type.is_classification:
            raise IncompatibleParametersError(
                "--proba cannot be used with a regression model, which predicts no probabilities. Leave it out.",
                {"proba": proba, "task": predictor.target.task_type},
            )
        frame = read_table(table, schema=predictor.schema)
        kept = written_columns(table, frame, keep or [])
        if proba:
            probabilities = predictor.predict_proba(frame)
            columns = {"prediction": predictor.decide(probabilities)}
            columns |= {f"proba_{label}": probabilities[:, k] for k, label in enumerate(predictor.classes_)}
        else:
            columns = {"prediction": predictor.predict(frame)}
        if interval is not None and predictor.target.task_type.is_classification:
            held = predictor.predict_set(frame, interval)
            columns |= {f"in_set_{label}": held[:, k] for k, label in enumerate(predictor.classes_)}
        elif interval is not None:
            columns |= dict(zip(("lower", "upper"), predictor.predict_interval(frame, interval).T, strict=True))
        if taken := sorted(columns.keys() & set(kept)):
            expected = f"columns with other names than those of predictions, {', '.join(columns)}"
            raise InvalidParameterError("keep", ", ".join(taken), expected, "Rename them in the table.")
        n_formulas = write_table(kept.assign(**columns), output, keep_formulas=keep_formulas)
        tell_unseen(predictor, quiet=quiet)
        if n_formulas:
            say(
                quiet,
                f"Note: {counted(n_formulas, 'text')} that a spreadsheet would run begin with ' in the file; "
                "--keep-formulas writes them as they are.",
            )
        say(quiet, f"{len(frame)} predictions written to {output}")
