"""The application that all commands belong to."""

from __future__ import annotations

from typing import Annotated

import typer

from cashmere.cli.other_names import Commands

app = typer.Typer(
    name="cashmere",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: markup swallows brackets, and panels leave it 20 columns of a terminal's 80
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from cashmere import __version__

        print(f"cashmere {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the set of models that predict best together, for a table and a budget."""
