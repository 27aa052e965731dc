"""The command line.

``cashmere inspect | fit | resume | refine | predict | score | export | leaderboard | contest | report | explain |
watch | mlflow | requirements | inspect-model | sign | verify | key | trust-key | compare | strategies | cite |
pretrain | demo``. A command belongs to the application as soon as its module is imported; help lists them in the order
of these imports.
"""

from __future__ import annotations

import io
import os
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

_LAST_STANDARD_STREAM = 2  # descriptor of stderr


def main() -> None:
    """Entry point of the command ``cashmere``."""
    _open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # like stderr: the terminal may lack characters of a table
    try:
        with typed_errors():  # help, too, may be redirected to a full disk
            app()
    except typer.Exit as end:
        sys.exit(end.exit_code)


def _open_closed_streams() -> None:
    """Let standard streams that the caller has closed lead nowhere; files would get their descriptors otherwise."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _LAST_STANDARD_STREAM:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
