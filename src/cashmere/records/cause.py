"""Why a trial ended without a loss or early, as a record; the sentence is written where it is shown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

_LONGEST_TEXT = 20_000
"""Characters of the text of a cause; some exceptions list all values of a column."""


class CauseKind(StrEnum):
    """What ended a trial."""

    TIME_LIMIT = "time limit"
    CPU_LIMIT = "cpu limit"
    MEMORY_LIMIT = "memory limit"
    KILLED_BY_SYSTEM = "killed by system"
    """The operating system, most likely because memory ran out."""
    WORKER_DIED = "worker died"
    WORKER_NOT_READY = "worker not ready"
    """The worker process could not start, took too long to start, or ended before it got the trial."""
    WORKER_LOST = "worker lost"
    """The trial lost as many workers of a cluster as it may, each while running it."""
    WORKER_SLOT = "worker slot"
    """A bug in the executor itself."""
    MISSING_PACKAGE = "missing package"
    SEARCH_ENDED = "search ended"
    """The budget was spent, or the user stopped the search."""
    NOT_FINITE = "not finite"
    """A loss, a prediction or a number on the way to them is NaN or infinite."""
    UNUSABLE = "unusable"
    """The trial returned or handed over no valid outcome: one of a wrong type or shape, too large, or cut off."""
    DISK_FULL = "disk full"
    NOT_PERMITTED = "not permitted"
    EXCEPTION = "exception"
    """Any other exception of a learner or a metric."""
    OTHER = "other"
    """Reported as text by a custom objective, or stored by an earlier version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The cause that ended a trial, with its numbers.

    Attributes
    ----------
    kind : CauseKind
        Kind of cause.
    text : str
        Type and message of an exception, possibly with a traceback; for other causes any further details. Of a long
        text, only beginning and end are kept.
    limit, used : float or None
        The broken limit and the amount used: seconds for a time limit, MiB for a memory limit.

    Examples
    --------
    >>> str(Cause(kind=CauseKind.TIME_LIMIT, limit=10.0))
    'over the time limit of 10 s'
    """

    kind: CauseKind
    text: str = ""
    limit: float | None = None
    used: float | None = None

    def __post_init__(self) -> None:
        if len(self.text) > _LONGEST_TEXT:
            half = _LONGEST_TEXT // 2
            object.__setattr__(self, "text", f"{self.text[:half]} ... {self.text[-half:]}")

    def __str__(self) -> str:
        match self.kind:
            case CauseKind.TIME_LIMIT:
                return f"over the time limit of {self.limit or 0:g} s"
            case CauseKind.CPU_LIMIT:
                return f"over the limit of {self.limit or 0:g} s of CPU time"
            case CauseKind.MEMORY_LIMIT if self.limit is not None:
                return f"over the memory limit of {self.limit:.0f} MiB ({self.used or 0:.0f} MiB resident)"
            case CauseKind.KILLED_BY_SYSTEM:
                return f"the system killed the worker, most likely out of memory ({self.used or 0:.0f} MiB resident)"
            case CauseKind.WORKER_DIED:
                return "the worker process died (crash in native code, exit, or kill)"
            case CauseKind.WORKER_NOT_READY:
                return f"no worker was ready for the trial: {self.text}"
            case CauseKind.WORKER_LOST:
                return f"lost every worker of the cluster that ran it: {self.text}"
            case CauseKind.SEARCH_ENDED:
                return "stopped by the end of the budget or by the user"
            case CauseKind.WORKER_SLOT:
                return f"worker slot: {self.text}"
        return self.text

    @classmethod
    def other(cls, text: str) -> Self:
        """Return a cause known only as text."""
        return cls(kind=CauseKind.OTHER, text=text)

    def to_json(self) -> str:
        """Return a text for `parse`."""
        data = {"kind": self.kind.value, "text": self.text, "limit": self.limit, "used": self.used}
        return json.dumps({name: value for name, value in data.items() if value not in (None, "")})

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return a stored cause; a sentence stored by an earlier version is kept as text."""
        try:
            data = json.loads(text)
            limit, used = (None if data.get(name) is None else float(data[name]) for name in ("limit", "used"))
            return cls(kind=CauseKind(data["kind"]), text=str(data.get("text", "")), limit=limit, used=used)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):  # whatever a forged text leads to
            return cls.other(text)
