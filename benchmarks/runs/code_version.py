"""The commit whose code runs, which rows name."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

CLONE = Path(__file__).parents[2]


@functools.cache
def commit(folder: Path = CLONE) -> str:
    """Return the version of the code, with a plus if it has been changed since; empty outside a clone."""
    version = _git(folder, "rev-parse", "--short", "HEAD").stdout.decode().strip()
    return f"{version}+" if _difference(folder, "HEAD") == 1 else version


@functools.cache
def is_here(version: str, folder: Path = CLONE) -> bool:
    """Return whether the code is that of a version, see `commit`; later commits may have changed other files."""
    return version == commit(folder) or _difference(folder, version) == 0


def _difference(folder: Path, version: str) -> int:
    """Return 0 if the code is that of a commit, 1 if it differs, another number if there is no such commit."""
    return _git(folder, "diff", "--quiet", version, "--", "src", ":(glob)benchmarks/**/*.py").returncode


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True)
