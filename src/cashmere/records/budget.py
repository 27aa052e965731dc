"""The budget of a call, and the one clock that measures it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import timedelta
from numbers import Real

import numpy as np

from cashmere.exceptions import InvalidParameterError

_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(sec|min|ms|s|m|h|d|w)")
_TRIALS = re.compile(r"(\d+)\s*trials?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*((?:[kmgt]i?)?b|[kmgt]i?)")
_EXPECTED = (
    "a positive time such as '90s', '10m' or '1h30m' (in Python, also seconds or a timedelta), a number of trials such "
    "as '250trials', or one of each ('10m,250trials')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limit for one call: wall-clock time, trials, or both.

    Attributes
    ----------
    seconds : float or None
        Wall-clock seconds for the whole call, including reading, ensembling, saving and the report.
    trials : int or None
        Number of trials. With both, whichever limit is reached first.

    Examples
    --------
    >>> Budget.parse("1h30m")
    Budget(seconds=5400.0, trials=None)
    >>> Budget.parse("250trials").trials
    250
    """

    seconds: float | None = None
    trials: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is None and self.trials is None:
            raise InvalidParameterError("budget", None, _EXPECTED)
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise InvalidParameterError("budget", f"{self.seconds}s", _EXPECTED)
        if self.trials is not None and self.trials < 1:
            raise InvalidParameterError("budget", f"{self.trials}trials", _EXPECTED)

    @classmethod
    def parse(cls, text: str | float | timedelta | np.timedelta64 | Budget) -> Budget:
        """Read a budget; a bare number means seconds.

        Raises
        ------
        InvalidParameterError
            If the text is not a positive time or number of trials, or names either twice.
        """
        if isinstance(text, Budget):
            return text
        if isinstance(text, timedelta | np.timedelta64):
            return cls(seconds=_in_seconds(text))
        if isinstance(text, bool) or not isinstance(text, str | Real):
            raise InvalidParameterError("budget", text, _EXPECTED)
        if not isinstance(text, str):
            return cls(seconds=float(text))
        seconds: float | None = None
        trials: int | None = None
        for part in text.strip().lower().split(","):
            part = part.strip()
            match = _TRIALS.fullmatch(part)
            if (trials if match else seconds) is not None:  # which of two limits is meant?
                raise InvalidParameterError("budget", text, _EXPECTED)
            if match:
                trials = int(match[1])
            else:
                try:
                    seconds = parse_seconds(part, "budget")
                except InvalidParameterError:
                    raise InvalidParameterError("budget", text, _EXPECTED) from None
        return cls(seconds=seconds, trials=trials)

    def __str__(self) -> str:
        """Return the text that `parse` reads back."""
        parts = [] if self.seconds is None else [f"{max(self.seconds, 1e-6):.6f}".rstrip("0").rstrip(".") + "s"]
        return ",".join(parts + ([] if self.trials is None else [f"{self.trials}trials"]))


def parse_seconds(text: str | float | timedelta | np.timedelta64, parameter: str) -> float:
    """Read a duration such as ``60s``, ``10m``, ``1h30m``, a number of seconds or a `timedelta`.

    Raises
    ------
    InvalidParameterError
        If it is not a positive duration.
    """
    expected = "a positive time such as '5ms', '60s' or '1h30m'"
    if isinstance(text, timedelta | np.timedelta64):  # before numbers: numpy's is one
        seconds = _in_seconds(text)
    elif isinstance(text, Real) and not isinstance(text, bool):
        seconds = float(text)
    elif isinstance(text, str) and text.strip() and _TIME.sub("", text.strip().lower()).strip() == "":
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _TIME.findall(text.strip().lower()))
    else:
        raise InvalidParameterError(parameter, text, expected)
    if not 0 < seconds < float("inf"):
        raise InvalidParameterError(parameter, text, expected)
    return seconds


def _in_seconds(length: timedelta | np.timedelta64) -> float:
    return float(np.timedelta64(length) / np.timedelta64(1, "s"))


def parse_memory_mib(text: str | float, parameter: str = "memory") -> float:
    """Read a size such as ``4GiB`` or ``512MB``, or a number (not a text) of MiB; return MiB.

    Raises
    ------
    InvalidParameterError
        If it is not a positive size.

    Examples
    --------
    >>> parse_memory_mib("4GiB")
    4096.0
    """
    expected = "a positive size with its unit, such as '4GiB' or '512MB'"
    if isinstance(text, Real) and not isinstance(text, bool):
        size = float(text)
    elif isinstance(text, str) and (match := _SIZE.fullmatch(text.strip().lower())):
        number, unit = float(match[1]), match[2]
        base = 1024.0 if "i" in unit or unit in ("k", "m", "g", "t") else 1000.0
        size = number * base ** " kmgt".index(unit[0] if unit[0] != "b" else " ") / 2**20
    else:
        raise InvalidParameterError(parameter, text, expected)
    if not 0 < size < float("inf"):
        raise InvalidParameterError(parameter, text, expected)
    return size


class Deadline:
    """The clock of one call, which everything that takes time consults.

    Parameters
    ----------
    seconds : float or None
        Allowed wall time from now; None for no limit.
    already_spent : float
        Seconds that count as spent already, such as the start-up of the process.

    Notes
    -----
    It uses the monotonic clock: changes of the system time have no effect.
    """

    def __init__(self, seconds: float | None, *, already_spent: float = 0.0) -> None:
        self._start = time.monotonic() - already_spent
        self.seconds = seconds

    @property
    def elapsed(self) -> float:
        """Seconds since the call began."""
        return time.monotonic() - self._start

    @property
    def remaining(self) -> float:
        """Remaining seconds: infinite without a limit, negative after the end."""
        return float("inf") if self.seconds is None else self.seconds - self.elapsed
