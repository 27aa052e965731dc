"""Why a trial ended without a loss, as a record; its sentence is made where it is shown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class CauseKind(StrEnum):
    """What ended a trial."""

    TIME_LIMIT = "time limit"
    CPU_LIMIT = "cpu limit"
    MEMORY_LIMIT = "memory limit"
    KILLED_BY_SYSTEM = "killed by system"
    """The operating system, most likely because memory ran out."""
    WORKER_DIED = "worker died"
    WORKER_SLOT = "worker slot"
    """A fault of the executor itself."""
    MISSING_PACKAGE = "missing package"
    NOT_FINITE = "not finite"
    """A loss, a prediction or a number on the way to them is NaN or infinite."""
    DISK_FULL = "disk full"
    NOT_PERMITTED = "not permitted"
    EXCEPTION = "exception"
    """Any other exception of a learner or a metric."""
    OTHER = "other"
    """What an objective of the user says, or an earlier version has stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What ended a trial, with the numbers that belong to it.

    Attributes
    ----------
    kind : CauseKind
        What it was.
    text : str
        Of an exception its type and message, a traceback may follow; of other causes what else is known.
    limit, used : float or None
        The limit that was broken and what was used: seconds of a time limit, MiB of a memory limit.

    Examples
    --------
    >>> str(Cause(kind=CauseKind.TIME_LIMIT, limit=10.0))
    'over the time limit of 10 s'
    """

    kind: CauseKind
    text: str = ""
    limit: float | None = None
    used: float | None = None

    def __str__(self) -> str:
        match self.kind:
            case CauseKind.TIME_LIMIT:
                return f"over the time limit of {self.limit or 0:g} s"
            case CauseKind.CPU_LIMIT:
                return f"over the limit of {self.limit or 0:g} s of CPU time"
            case CauseKind.MEMORY_LIMIT if self.limit is not None:
                return f"over the memory limit of {self.limit:.0f} MiB ({self.used or 0:.0f} MiB resident)"
            case CauseKind.KILLED_BY_SYSTEM:
                return (
                    f"the system killed the worker, most likely for want of memory ({self.used or 0:.0f} MiB resident)"
                )
            case CauseKind.WORKER_DIED:
                return "the worker process died (crash in native code, exit, or kill)"
            case CauseKind.WORKER_SLOT:
                return f"worker slot: {self.text}"
        return self.text

    @classmethod
    def other(cls, text: str) -> Self:
        """Return a cause that is known by a text only."""
        return cls(kind=CauseKind.OTHER, text=text)

    def to_json(self) -> str:
        """Return a text for `parse`."""
        data = {"kind": self.kind.value, "text": self.text, "limit": self.limit, "used": self.used}
        return json.dumps({name: value for name, value in data.items() if value not in (None, "")})

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the cause that a store keeps; the sentence that an earlier version stored is not taken apart."""
        try:
            data = json.loads(text)
            limit, used = (None if data.get(name) is None else float(data[name]) for name in ("limit", "used"))
            return cls(kind=CauseKind(data["kind"]), text=str(data.get("text", "")), limit=limit, used=used)
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls.other(text)
