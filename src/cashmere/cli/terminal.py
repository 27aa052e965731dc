"""What commands share: arguments, output, and errors as messages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cashmere.exceptions import CashmereError

if TYPE_CHECKING:
    import pandas as pd

INTERRUPTED = 130
"""Exit status after Ctrl+C."""

RunFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The run directory.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]


def say(quiet: bool, text: str) -> None:
    """Print a line unless told to be quiet."""
    if not quiet:
        print(text, flush=True)


def table_writer(path: Path) -> Callable[[pd.DataFrame], Any]:
    """Return what writes a frame to a file, by the ending of its name.

    Raises
    ------
    InvalidParameterError
        If the ending is of neither CSV nor Parquet.
    """
    from cashmere.exceptions import InvalidParameterError

    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return lambda frame: frame.to_csv(path, index=False)
    if name.endswith((".parquet", ".pq")):
        return lambda frame: frame.to_parquet(path, index=False)
    raise InvalidParameterError("--output", str(path), "a file name that ends in .csv, .csv.gz or .parquet")


@contextmanager
def typed_errors() -> Iterator[None]:
    """Show our own errors as one clear message instead of a traceback."""
    try:
        yield
    except CashmereError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        print("Interrupted; there was nothing to keep yet.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
