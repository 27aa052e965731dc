"""Outcomes of faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum


class FaultOutcome(StrEnum):
    """The outcome of a fault, from good to bad; `OK` and `TYPED` keep our promises, all others are failures."""

    OK = "ok"
    """The command ended as it should, nothing was lost, and the run was continued to the same end as without faults."""
    TYPED = "typed error"
    """The same, but the command that was hit ended with one of our errors, without a traceback."""
    LOST = "lost trial"
    """A trial that was stored before is gone, or was run again with another result."""
    CORRUPT = "corrupt"
    """The store or the model cannot be read, or the run cannot be continued, or not to the same end."""
    TRACEBACK = "traceback"
    """The command ended with a traceback or in an undocumented way."""
    HANG = "hang"
    """The command did not end in time."""
    ORPHAN = "orphan"
    """A process outlived the command that had started it."""
    LEFT = "files left"
    """Temporary files stayed behind after the run was continued to its end."""

    @property
    def is_failure(self) -> bool:
        """Whether a promise was not kept."""
        return self not in (FaultOutcome.OK, FaultOutcome.TYPED)


def end_with_failures(rows: Sequence[Mapping[str, str]]) -> None:
    """End the program with status 1 if the outcome of any row is a failure."""
    failed = sum(FaultOutcome(row["outcome"]).is_failure for row in rows)
    if failed:
        raise SystemExit(f"{failed} of {len(rows)} have failed. The column detail says how.")
