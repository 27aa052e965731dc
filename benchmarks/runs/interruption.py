"""Ctrl+C stops the runs of a benchmark; the command then shows the finished ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def until_interrupted(console: Console) -> Iterator[None]:
    """End the block on Ctrl+C and say so; the code after it still runs."""
    try:
        yield
    except KeyboardInterrupt:
        console.print("\nStopped. What is finished is kept. Run the same command to continue.")
