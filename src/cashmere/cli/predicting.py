"""``cashmere predict``: use the ensemble of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cashmere.base.arrays import Float64
from cashmere.base.text import counted
from cashmere.cli.app import app
from cashmere.cli.terminal import Quiet, RunPlace, say, tell_of_model, typed_errors

if TYPE_CHECKING:
    from cashmere.model.predictor import Predictor

_MANY_ROWS = 50
"""Among fewer, a class may be missing by chance."""


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
    by_class: Annotated[
        bool,
        typer.Option("--by-class", help="With --interval, sets contain the truth for this share of each class."),
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Copy this column of the table, such as an identifier; repeatable."),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="SAMPLE",
            help="Write the columns and rows of this file, such as the sample submission of a competition.",
        ),
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
        if like is not None and (proba or interval is not None or keep):
            raise IncompatibleParametersError(
                "The sample (--like) decides the columns: leave out --proba, --interval and --keep.",
                {"like": str(like), "proba": proba, "interval": interval, "keep": keep},
            )
        check_by_class(predictor, interval, by_class=by_class)
        frame = read_table(table, schema=predictor.schema)
        kept = written_columns(table, frame, keep or [])
        missed, probabilities = "", None
        if predictor.target.task_type.is_classification:
            probabilities = predictor.predict_proba(frame)
            columns = {"prediction": predictor.decide(probabilities)}
            if proba:
                columns |= {f"proba_{label}": probabilities[:, k] for k, label in enumerate(predictor.classes_)}
            missed = _never_predicted(predictor, probabilities)
        else:
            columns = {"prediction": predictor.predict(frame)}
        if interval is not None and predictor.target.task_type.is_classification:
            held = predictor.predict_set(frame, interval, by_class=by_class)
            columns |= {f"in_set_{label}": held[:, k] for k, label in enumerate(predictor.classes_)}
        elif interval is not None:
            columns |= dict(zip(("lower", "upper"), predictor.predict_interval(frame, interval).T, strict=True))
        if taken := sorted(columns.keys() & set(kept)):
            expected = f"columns with other names than those of predictions, {', '.join(columns)}"
            raise InvalidParameterError("keep", ", ".join(taken), expected, "Rename them in the table.")
        if like is None:
            written = kept.assign(**columns)
        else:
            from cashmere.cli.sample_files import like_sample

            keep_formulas = True  # identifiers have to stay as they are
            written = like_sample(like, table, frame, predictor, columns["prediction"], probabilities)
        n_formulas = write_table(written, output, keep_formulas=keep_formulas)
        tell_of_model(predictor, quiet=quiet)
        if n_formulas:
            say(
                quiet,
                f"Note: {counted(n_formulas, 'text')} that a spreadsheet would run begin with ' in the file; "
                "--keep-formulas writes them as they are.",
            )
        if missed:
            say(quiet, missed)
        say(quiet, f"{len(frame)} predictions written to {output}")


def check_by_class(predictor: Predictor, interval: float | None, *, by_class: bool) -> None:
    """Raise IncompatibleParametersError if sets by class are asked for where there are none."""
    from cashmere.exceptions import IncompatibleParametersError

    if by_class and (interval is None or not predictor.target.task_type.is_classification):
        raise IncompatibleParametersError(
            "Sets by class (--by-class) need --interval and a classification model.",
            {"by-class": by_class, "interval": interval},
        )


def _never_predicted(predictor: Predictor, probabilities: Float64) -> str:
    """Return a note if no row of many is predicted as the positive one of two classes; otherwise nothing."""
    if probabilities.shape[1] != 2 or len(probabilities) < _MANY_ROWS:
        return ""
    label, threshold = predictor.classes_[predictor.target.positive], float(predictor.decision_threshold_)
    highest = float(probabilities[:, predictor.target.positive].max())
    if highest >= threshold:
        return ""
    return (
        f"Note: no row is predicted as {str(label)!r}, whose probability is at most {highest:.2g}: the threshold is "
        f"{threshold:.3g}. To find the likeliest rows, sort by the probabilities (--proba), or fit with "
        "--decision-threshold."
    )
