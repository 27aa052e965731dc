"""Explain why a run directory can no longer be written, and how to go on."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cashmere.exceptions import RunDirectoryError

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_OF_THE_DISK = {*_NO_SPACE, errno.EROFS, errno.EIO}
"""Errors of writing and syncing an open file, which do not name the file."""


@contextmanager
def write_failures_explained(folder: Path) -> Iterator[None]:
    """Turn failures to write a run directory into an error that says what to do; let all others pass.

    A custom metric or strategy may fail on its own files; such errors are not about the run directory.

    Raises
    ------
    RunDirectoryError
        If the directory was moved or deleted, its disk is full, or writing is not permitted.
    """
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        if not _is_about(error, folder):
            raise
        raise RunDirectoryError(folder, _explanation(error, folder)) from error


@contextmanager
def temporary_run_explained(folder: Path) -> Iterator[None]:
    """Say of a temporary run that cannot be written what is true of it: nothing is kept.

    Raises
    ------
    RunDirectoryError
        The one of the block, with other advice if writing has failed.
    """
    try:
        yield
    except RunDirectoryError as error:
        cause = error.__cause__
        if not isinstance(cause, OSError | sqlite3.OperationalError):
            raise
        again = "fit again; finished trials are only kept in a run_directory"
        raise RunDirectoryError(folder, _advice(cause, again)) from cause


def _is_about(error: OSError | sqlite3.OperationalError, folder: Path) -> bool:
    if isinstance(error, sqlite3.OperationalError) or error.errno in _OF_THE_DISK:
        return True
    names = [name for name in (error.filename, error.filename2) if isinstance(name, str | Path)]
    return any(Path(name).absolute().is_relative_to(folder.absolute()) for name in names)


def _explanation(error: OSError | sqlite3.OperationalError, folder: Path) -> str:
    if (folder / "run.json").exists():
        return _advice(error, f"continue with `cashmere resume {folder}`: trials that have finished are kept")
    if not folder.exists() and not _is_for_space(error):  # a run that has not begun is removed if the disk is full
        return moved(_reason(error))
    return _advice(error, "start the run again")


def _advice(error: OSError | sqlite3.OperationalError, again: str) -> str:
    number = getattr(error, "errno", None)
    if _is_for_space(error):
        if number == errno.EFBIG:
            why, what = (
                "its disk is full, or a limit on file sizes (ulimit -f) is reached",
                "Free some space or raise it",
            )
        else:
            why, what = "its disk is full", "Free some space"
        return f"cannot be written, because {why}. {what}, then {again}."
    if number in (errno.EACCES, errno.EPERM, errno.EROFS) or "readonly" in str(error):
        return f"cannot be written ({_reason(error)}). Permit writing, then {again}."
    return f"cannot be written ({_reason(error)}). Check its disk, then {again}."


def _is_for_space(error: OSError | sqlite3.OperationalError) -> bool:
    return getattr(error, "errno", None) in _NO_SPACE or "is full" in str(error)


def moved(reason: str) -> str:
    """Return the message for a run directory that disappeared while a process works in it."""
    return (
        f"is no longer there: it was moved or deleted while a process worked in it, or could not be made ({reason}). "
        "If it was moved, continue with `cashmere resume` and its new path."
    )


def _reason(error: OSError | sqlite3.OperationalError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
