"""The folder in which a case runs, and the version of the code."""

from __future__ import annotations

import contextlib
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def temporary_place() -> Iterator[Path]:
    """Make a folder for a case, and remove it."""
    place = Path(tempfile.mkdtemp(prefix="cashmere-case-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@functools.cache
def commit() -> str:
    """Return the version of the code, empty outside a clone."""
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True)
    return asked.stdout.decode().strip()
