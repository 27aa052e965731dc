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
def commit(folder: Path = Path(__file__).parents[2]) -> str:
    """Return the version of the code, with a plus if it has been changed since; empty outside a clone."""

    def git(*words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True)

    version = git("rev-parse", "--short", "HEAD").stdout.decode().strip()
    changed = git("diff", "--quiet", "HEAD", "--", "src", ":(glob)benchmarks/**/*.py").returncode == 1
    return f"{version}+" if changed else version
