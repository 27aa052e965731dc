"""How long the steps of a call take on this machine under its present load."""

from __future__ import annotations

from collections import deque

_LATEST = 5
"""How many of the latest executions of a step count: the load of a machine changes."""

_MARGIN = 1.5
"""A bound is this multiple of the slowest of these."""


class Pace:
    """Bounds the time of the next execution of a step by how long the latest ones took.

    Examples
    --------
    >>> pace = Pace()
    >>> pace.bound("save", expected=0.1)
    0.15000000000000002
    >>> pace.note("save", seconds=2.0)
    >>> pace.bound("save", expected=0.1)
    3.0
    """

    def __init__(self) -> None:
        self._rates: dict[str, deque[float]] = {}

    def note(self, step: str, seconds: float, size: float = 1.0) -> None:
        """Record an execution.

        Parameters
        ----------
        step : str
            What was done.
        seconds : float
            How long it took.
        size : float
            Positive; seconds are proportional to it.
        """
        self._rates.setdefault(step, deque(maxlen=_LATEST)).append(seconds / size)

    def knows(self, step: str) -> bool:
        """Return whether a step has been executed."""
        return step in self._rates

    def bound(self, step: str, size: float = 1.0, *, expected: float) -> float:
        """Return the seconds that the next execution should not exceed.

        Parameters
        ----------
        step, size
            See `note`.
        expected : float
            Seconds of size 1, for a step that has not been executed.
        """
        return _MARGIN * size * max(self._rates.get(step, ()), default=expected)
