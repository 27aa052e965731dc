"""``cashmere refine``: choose again from the trials of a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cashmere.base.text import counted
from cashmere.cli.app import app
from cashmere.cli.terminal import Quiet, RunFolder, decisions_line, number_or_name, plain, say, typed_errors


@app.command()
def refine(
    folder: RunFolder,
    max_latency: Annotated[
        str | None, typer.Option(metavar="TIME", help="Longest time to predict one row, such as 5ms.")
    ] = None,
    max_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Largest size of the model folder, such as 10MB.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="Choose by this metric (default: that of the run).")
    ] = None,
    ensemble: Annotated[
        str | None, typer.Option(metavar="NAME", help="Ensemble method: selection, bagging, stacking or best.")
    ] = None,
    decision_threshold: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|NUMBER",
            help="How to decide classes: auto, tune, none, a probability, or a rate such as 'recall>=0.95' (default: "
            "as in the run).",
        ),
    ] = None,
    deployable: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Choose among what 'cashmere export' can write: onnx.")
    ] = None,
    refit: Annotated[
        bool, typer.Option("--refit", help="Fit each member once on all rows, instead of using its models of folds.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="New folder for the model (default: model-refined in the run directory)."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Choose again from a finished run. Shows what score costs in latency and bytes.

    With any of the options, the best ensemble within the limits is written as a separate model. Nothing is fitted
    except by --refit.
    """
    with typed_errors():
        from rich.console import Console
        from rich.table import Table

        from cashmere.run import refine_run

        refined = refine_run(
            folder,
            max_latency=max_latency,
            max_size=max_size,
            metric=metric,
            ensemble=ensemble,
            decision_threshold=None if decision_threshold is None else number_or_name(decision_threshold),
            deployable=deployable,
            refit=refit,
            out=out,
        )
        if quiet:
            return
        grid = Table(
            title=plain(f"Best trade-offs of score, latency and size ({refined.metric.name})"), box=None, pad_edge=False
        )
        for name in ("", "members", "score", "cross-fitted", "one row (ms)", "rows/s", "size (MB)"):
            grid.add_column(name, justify="right", no_wrap=True)
        for row in refined.front.to_dict("records"):
            grid.add_row(*map(plain, ("*" if row["chosen"] else "", *_cells(row))))
        Console().print(grid)
        if refined.n_unmeasured:
            text = "left out: measuring latency takes longer. The same command continues with them."
            say(False, f"{counted(refined.n_unmeasured, 'trial')} {text}")
        say(False, f"Model of the run: {_line(refined.before)}")
        if refined.after is not None:
            say(False, f"Written (*):      {_line(refined.after)}")
            if decision_threshold is not None and refined.after["decisions"] is not None:
                say(False, f"Validation rows: {decisions_line(refined.after['decisions'])}")
        if (compared := refined.refit) is not None:
            single, folds = (
                _number(refined.metric.score(x), ".5g") for x in (compared.single_loss, compared.folds_loss)
            )
            text = f"{single} with one model for each member, {folds} with one for each fold"
            say(False, f"On {compared.n_rows} rows set aside, with members fitted without them: score {text}")
        if refined.model_folder is not None:
            say(False, f"Model: {refined.model_folder}")


def _cells(row: Mapping[Any, Any]) -> list[str]:
    """Format the members, scores and costs of an ensemble for a table."""
    return [
        str(row["n_members"]),
        *(_number(row[name], ".5g") for name in ("score", "cross_fitted_score")),
        _number(row["single_row_ms"], ".3g"),
        _number(row["batch_rows_per_second"], ",.0f"),
        f"{row['bytes'] / 1e6:.2f}",
    ]


def _line(row: Mapping[str, Any]) -> str:
    """Format them as one line."""
    members, score, cross_fitted, row_ms, rate, size = _cells(row)
    who = f"{members} {'member' if members == '1' else 'members'}"
    # Under another metric, the scores of the run's model are unknown.
    scores = "" if score == cross_fitted == "-" else f"score {score} (cross-fitted {cross_fitted}), "
    return f"{who}, {scores}{row_ms} ms for a row, {rate} rows/s, {size} MB"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None or value != value else format(value, form)
