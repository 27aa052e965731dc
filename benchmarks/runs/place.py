"""The folder in which a case runs."""

from __future__ import annotations

import contextlib
import shutil
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
