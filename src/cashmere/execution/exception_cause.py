"""The kind of failure that an exception stands for, decided where it is caught."""

from __future__ import annotations

import errno
import re

from cashmere.exceptions import MissingDependencyError
from cashmere.records.cause import Cause, CauseKind

# Libraries raise a ValueError for this; only its message says so.
_NOT_FINITE = re.compile(r"no[nt][ -](a )?finite|\bNaN\b|infinity|overflow|diverge", re.IGNORECASE)


def cause_of_exception(error: BaseException, traceback: str = "") -> Cause:
    """Describe an exception that ended a trial.

    Parameters
    ----------
    error : BaseException
        The exception.
    traceback : str
        Lines to keep below its message.
    """
    summary = f"{type(error).__name__}: {error}"
    return Cause(kind=_kind(error), text=f"{summary}\n{traceback}" if traceback else summary)


def _kind(error: BaseException) -> CauseKind:
    if isinstance(error, ImportError | MissingDependencyError):
        return CauseKind.MISSING_PACKAGE
    if isinstance(error, PermissionError):
        return CauseKind.NOT_PERMITTED
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return CauseKind.DISK_FULL
    if isinstance(error, FloatingPointError | OverflowError) or _NOT_FINITE.search(str(error)[:2000]):
        return CauseKind.NOT_FINITE
    return CauseKind.EXCEPTION
