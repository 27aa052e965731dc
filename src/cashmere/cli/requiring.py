"""``cashmere requirements``: what to install where a model predicts."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated

import typer

from cashmere.cli.app import app
from cashmere.cli.terminal import RunPlace, say, typed_errors


@app.command()
def requirements(
    folder: RunPlace,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the list to this file, such as requirements.txt."),
    ] = None,
) -> None:
    """List the packages that a model needs to predict.

    In the format of pip, with exact versions, and without those that only a search needs.
    """
    with typed_errors():
        from cashmere.cli.output_files import write_output
        from cashmere.model.requirements import model_requirements

        about = f"# Python {platform.python_version()}; pip install --no-deps -r requirements.txt"
        lines = [about, *model_requirements(folder)]
        if output is None:
            for line in lines:
                say(False, line)
            return
        write_output(output, "".join(f"{line}\n" for line in lines).encode())
        say(False, f"{len(lines) - 1} distributions written to {output}")
