"""Durations and times of day, which are read as seconds."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pandas as pd

from cashmere.base.arrays import Float64

_TEXT = (
    r"^(?=\S)(?:(?P<days>-?\d{1,7}) days?(?:$|,? ))?"
    r"(?:(?P<sign>[+-]?)(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d(?:\.\d{1,9})?))?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?)?$"
)
_NEXT = r"(?:(?:,| and)? ?(?=\d)|$)"
_IN_UNITS = (
    rf"(?i)^(?=\d)(?:(?P<days>\d{{1,7}}) ?(?:d|days?){_NEXT})?"
    rf"(?:(?P<hours>\d{{1,7}}) ?(?:h|hrs?|hours?){_NEXT})?"
    rf"(?:(?P<minutes>\d{{1,7}}) ?(?:m|mins?|minutes?){_NEXT})?"
    r"(?:(?P<seconds>\d{1,7}(?:\.\d{1,9})?) ?(?:s|secs?|seconds?))?$"
)
_ISO_8601 = (
    r"^P(?=.*\d)(?:(?P<days>\d{1,7})D)?"
    r"(?:T(?:(?P<hours>\d{1,7})H)?(?:(?P<minutes>\d{1,7})M)?(?:(?P<seconds>\d{1,7}(?:\.\d{1,9})?)S)?)?$"
)
_DAY, _HOUR, _MINUTE = 86_400.0, 3_600.0, 60.0
_SECONDS = {"days": _DAY, "hours": _HOUR, "minutes": _MINUTE, "seconds": 1.0}


def seconds_of_texts(texts: pd.Series[str]) -> Float64:
    """Return the seconds of durations and times of day; NaN for all other texts.

    Parameters
    ----------
    texts : Series of str
        Without blanks around them. Hours and minutes, with or without seconds (``"8:15"``, ``"26:10:00.5"``); days
        before them, or alone, as pandas and Python write them (``"1 days 08:15:00"``, ``"-1 day, 23:59:50"``,
        ``"30 days"``); times of day also in halves of 12 hours (``"2:30 PM"``); numbers with their units (``"2h 50m"``,
        ``"1 hour, 5 minutes"``), also in the notation of ISO 8601 (``"PT4M13S"``).

    Examples
    --------
    >>> seconds_of_texts(pd.Series(["8:15", "0 days 00:00:01.5", "-1 day, 23:59:50", "30 days", "8:75"])).tolist()
    [29700.0, 1.5, -10.0, 2592000.0, nan]
    >>> seconds_of_texts(pd.Series(["2h 50m", "45 min", "PT4M13S", "50m 2h"])).tolist()
    [10200.0, 2700.0, 253.0, nan]
    """
    texts = texts.astype(object)
    seconds = _seconds_with_colons(texts)
    for pattern in (_IN_UNITS, _ISO_8601):
        unread = np.isnan(seconds)
        parts = _parts_of(texts[unread], pattern)
        if parts is not None:
            numbers = parts.astype(np.float64)
            total = sum(numbers[name].fillna(0.0) * each for name, each in _SECONDS.items())
            seconds[unread] = np.where(numbers.notna().any(axis=1), total, np.nan)
    return seconds


def _parts_of(texts: pd.Series[str], pattern: str) -> pd.DataFrame | None:
    """Return the groups of a pattern in each text; None if it fits none of them, which is quickly found."""
    return texts.str.extract(pattern) if any(map(re.compile(pattern).search, texts)) else None


def _seconds_with_colons(texts: pd.Series[str]) -> Float64:
    parts = _parts_of(texts, _TEXT)
    if parts is None:
        return np.full(len(texts), np.nan)
    found = parts[["days", "hours"]].notna().any(axis=1).to_numpy()
    days, hours, minutes, seconds = (
        pd.to_numeric(parts[name]).fillna(0.0).to_numpy(dtype=np.float64)
        for name in ("days", "hours", "minutes", "seconds")
    )
    half = parts["half"].str.lower()
    in_halves = half.notna().to_numpy()
    found = found & ~(in_halves & ((hours < 1) | (hours > 12)))
    hours = np.where(in_halves, hours % 12 + 12 * (half == "p"), hours)
    sign = np.where(parts["sign"] == "-", -1.0, 1.0)
    total = _DAY * days + sign * (_HOUR * hours + _MINUTE * minutes + seconds)
    return np.where(found, total, np.nan)


def are_clear(texts: pd.Series[str]) -> bool:
    """Return whether texts of durations can hardly be anything else.

    With colons, all must have seconds or all none: ``"59:30"`` may be minutes beside ``"1:02:30"``. With units, one
    must have two of them: ``"5 m"`` alone may be metres, and ``"3D"`` beside ``"2D"`` is no time.

    Examples
    --------
    >>> are_clear(pd.Series(["59:30", "1:02:30"])), are_clear(pd.Series(["2 days", "0:59:30", "1:02:30"]))
    (False, True)
    >>> are_clear(pd.Series(["2h 50m", "45m"])), are_clear(pd.Series(["2h", "45m"]))
    (True, False)
    """
    counts = texts.str.count(":")
    if counts[counts > 0].nunique() > 1:
        return False
    in_units = texts[np.isnan(_seconds_with_colons(texts)) & ~texts.str.startswith("P")]
    return len(in_units) == 0 or bool(in_units.str.contains(r"[A-Za-z]\D*\d").any())


def seconds_of(value: object) -> object:
    """Return the seconds of a duration or a time of day, and any other value as it is."""
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, dt.time):
        return _HOUR * value.hour + _MINUTE * value.minute + value.second + value.microsecond / 1e6
    return value
