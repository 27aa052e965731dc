"""The report of a run, written from time to time to know how long it will take at the end."""

from __future__ import annotations

import time
from collections.abc import Callable

from cashmere.base.pace import Pace
from cashmere.records.budget import Deadline

_SPACING = 50
"""How many times its latest duration the report waits before it is written again."""

_REPORT, _EXPECTED_SECONDS = "report", 0.5


class MeasuredReport:
    """The report of a run and how long it takes.

    Parameters
    ----------
    write : callable or None
        Writes the report of the run as it is; None if none is requested.
    """

    def __init__(self, write: Callable[[], object] | None) -> None:
        self._write = write
        self._pace, self._next, self._n_written = Pace(), 0.0, 0

    @property
    def seconds(self) -> float:
        """A bound on the time to write it."""
        return 0.0 if self._write is None else self._pace.bound(_REPORT, expected=_EXPECTED_SECONDS)

    def write_ahead(self, deadline: Deadline, seconds_left: Callable[[], float]) -> None:
        """Write it if it was not written lately and there is time.

        Parameters
        ----------
        deadline : Deadline
            The clock of the call.
        seconds_left : callable
            Returns how long it may take.
        """
        if self._write is None or deadline.elapsed < self._next or seconds_left() <= self.seconds:
            return
        clock = time.perf_counter()
        self._write()
        seconds = time.perf_counter() - clock
        if self._n_written == 1:
            self._pace = Pace()  # the first time took longer, as libraries were imported and templates compiled
        self._pace.note(_REPORT, seconds)
        if self._n_written > 0:  # otherwise write it again soon: the next time tells how long it really takes
            self._next = deadline.elapsed + _SPACING * seconds
        self._n_written += 1
