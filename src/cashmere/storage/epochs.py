"""Epochs of a run directory: a new one begins when a process takes over from one that may still write.

Each epoch has its own database, lock, lease, and names for the files of trials, so nothing that an earlier epoch still
writes can interfere with the present one. Almost all runs only have the first.
"""

from __future__ import annotations

import re
from pathlib import Path

FIRST = 1

_NAMES = re.compile(
    r"(?P<kind>run|lock|lease)(?:-(?P<epoch>[1-9]\d{0,5}))?(?P<ending>\.sqlite(?:-wal|-shm|-journal)?)?"
)


def epoch_of_file(name: str) -> int | None:
    """Return the epoch whose database, lock or lease has this name; None for any other file."""
    match = _NAMES.fullmatch(name)
    if match is None or (match["kind"] == "run") != (match["ending"] is not None):
        return None
    return int(match["epoch"] or FIRST)


def database_path(folder: Path, epoch: int) -> Path:
    """Return the path of the database of an epoch."""
    return folder / ("run.sqlite" if epoch == FIRST else f"run-{epoch}.sqlite")


def lock_path(folder: Path, epoch: int) -> Path:
    """Return the path of the lock of an epoch."""
    return folder / ("lock" if epoch == FIRST else f"lock-{epoch}")


def lease_path(folder: Path, epoch: int) -> Path:
    """Return the path of the lease of an epoch."""
    return folder / ("lease" if epoch == FIRST else f"lease-{epoch}")


def trial_stem(number: int, n_splits: int, epoch: int) -> str:
    """Return the name, without ending, of the files that an epoch writes for a trial fitted on `n_splits` splits."""
    splits = "" if n_splits == 1 else f"-{n_splits}"
    return f"{number:06d}{splits}" + ("" if epoch == FIRST else f"e{epoch}")


def databases(folder: Path) -> dict[int, Path]:
    """Return the databases in a folder by epoch, in ascending order."""
    found = sorted(epoch for epoch, path in _files(folder) if path.suffix == ".sqlite")
    return {epoch: database_path(folder, epoch) for epoch in found}


def present_database(folder: Path) -> Path:
    """Return the path of the database to read: the one of the highest epoch; the first if there is none."""
    return database_path(folder, max(databases(folder), default=FIRST))


def present_epoch(folder: Path) -> int:
    """Return the highest epoch that has a database or a lease; the first if there is none, or no folder."""
    files = _files(folder)
    return max((n for n, path in files if path.suffix == ".sqlite" or path.name.startswith("lease")), default=FIRST)


def files_before(folder: Path, epoch: int) -> list[Path]:
    """Return the databases, locks and leases of earlier epochs."""
    return [path for n, path in _files(folder) if n < epoch]


def _files(folder: Path) -> list[tuple[int, Path]]:
    try:
        paths = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [(epoch, path) for path in paths if (epoch := epoch_of_file(path.name)) is not None]
