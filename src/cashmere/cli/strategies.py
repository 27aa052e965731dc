"""``cashmere strategies | cite``: what can be searched with, and what to cite."""

from __future__ import annotations

from typing import Annotated

import typer

from cashmere.cli.app import app
from cashmere.cli.searching import allow_local_modules
from cashmere.cli.terminal import typed_errors


@app.command()
def strategies() -> None:
    """List the strategies, with their kinds and references."""
    with typed_errors():
        from rich.console import Console
        from rich.padding import Padding
        from rich.text import Text

        from cashmere.strategies import cite, describe, status, strategy_names

        console = Console(highlight=False)
        for name in strategy_names():  # not a table: its columns would be narrow in most terminals
            console.print(Text.assemble((name, "bold"), f" ({status(name)})"))
            for text in (describe(name).replace("`", ""), " ".join(cite(name).split())):
                console.print(Padding(Text(text), (0, 0, 0, 4), expand=False))
        print("\nEach is the method of a paper, a variant of one (ablation), a baseline, or ours.")
        print("Add options after the name (--strategy divbo:tau=0.1); docs/strategies.md lists them.")
        print("To print the reference of one strategy: cashmere cite NAME.")


@app.command(name="cite")
def print_reference(
    strategy: Annotated[
        str, typer.Argument(metavar="NAME", help="A strategy that 'cashmere strategies' lists, or the path of a class.")
    ],
) -> None:
    """Print the reference to cite when you use a strategy."""
    allow_local_modules(strategy)
    with typed_errors():
        from cashmere.strategies import cite

        print(cite(strategy) or f"{strategy} has no reference in its documentation.")
