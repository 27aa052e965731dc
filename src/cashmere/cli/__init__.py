"""The command line.

``cashmere inspect | fit | resume | refine | predict | score | export | leaderboard | contest | report | explain |
watch | mlflow | requirements | inspect-model | sign | verify | key | trust-key | compare | strategies | cite |
pretrain | demo``. A command belongs to the application as soon as its module is imported; help lists them in the order
of these imports.
"""

from __future__ import annotations

import io
import sys

import typer

# isort: off
from cashmere.cli.app import app
from cashmere.cli import inspecting, searching, refining, retraining, predicting, scoring  # noqa: F401
from cashmere.cli import exporting, showing  # noqa: F401
from cashmere.cli import explaining, watching, tracking, requiring, trusting, comparing  # noqa: F401
from cashmere.cli import strategies, pretraining, demonstration  # noqa: F401

# isort: on

from cashmere.cli.terminal import typed_errors

__all__ = ["app", "main"]


def main() -> None:
    """Entry point of the command ``cashmere``."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # like stderr: the terminal may lack characters of a table
    try:
        with typed_errors():  # help, too, may be redirected to a full disk
            app()
    except typer.Exit as end:
        sys.exit(end.exit_code)
