"""``cashmere export``: the ensemble of a run as a file for other places."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cashmere.cli.app import app
from cashmere.cli.terminal import Quiet, plain, say, typed_errors

if TYPE_CHECKING:
    from cashmere.export import Certificate


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run directory, or a model folder in it.")],
    onnx: Annotated[Path, typer.Option("--onnx", metavar="FILE", help="The ONNX file to write, such as model.onnx.")],
    rows: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Rows on which to compare predictions (default: those of the run)."),
    ] = None,
    bound: Annotated[
        float, typer.Option(metavar="NUMBER", help="Largest accepted difference between predictions.")
    ] = 1e-4,
    quiet: Quiet = False,
) -> None:
    """Export the ensemble as one ONNX file. A comparison of the predictions is written beside it.

    Nothing is written if a prediction differs by more than the bound.
    """
    with typed_errors():
        from cashmere.data.reading import read_table
        from cashmere.exceptions import MissingParameterError
        from cashmere.export import export_onnx
        from cashmere.model.description import read_schema
        from cashmere.model.files import find_model
        from cashmere.model.predictor import Predictor
        from cashmere.run.run_directory import read_sample

        path = find_model(folder)
        predictor = Predictor.load(path)
        frame = read_sample(path.parent) if rows is None else read_table(rows, schema=read_schema(path))
        if frame is None:
            text = f"{path.parent} keeps no rows to compare predictions on. Name a table of some rows with --rows."
            raise MissingParameterError("rows", text)
        certificate = export_onnx(predictor, onnx, frame, bound=bound)
        if not quiet:
            _show(certificate)
        say(quiet, f"Written: {onnx} ({certificate.n_bytes / 1e6:.2g} MB), {onnx.with_suffix('.certificate.json')}")


def _show(certificate: Certificate) -> None:
    from rich.console import Console
    from rich.table import Table

    unit = "of probabilities" if certificate.unit == "probability" else "in standard deviations of the predictions"
    altered = f"{certificate.n_altered} of them with missing values and unseen levels"
    facts = {
        "rows compared": f"{certificate.n_rows}, {altered}",
        "largest difference": f"{certificate.largest:.2g} ({unit}; accepted: {certificate.bound:g})",
        "median difference": f"{certificate.median:.2g}",
    }
    if certificate.n_equal is not None:
        facts["labels equal"] = f"{certificate.n_equal} of {certificate.n_rows}"
    facts |= {f"{each.member} alone": f"{each.largest:.2g}" for each in certificate.members}
    for who in ("cashmere", "onnx"):
        row_ms, rate = (certificate.latencies[f"{who}_{what}"] for what in ("row_ms", "rows_per_second"))
        facts[f"latency, {who}"] = f"{row_ms:.3g} ms for a row, {rate:,.0f} rows/s"
    grid = Table(title=plain("Certificate"), box=None, show_header=False, pad_edge=False)
    for name, value in facts.items():
        grid.add_row(plain(name), plain(value))
    Console().print(grid)
