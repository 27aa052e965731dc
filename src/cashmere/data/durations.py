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
_DAY, _HOUR, _MINUTE = 86_400.0, 3_600.0, 60.0


def seconds_of_texts(texts: pd.Series[str]) -> Float64:
    """Return the seconds of durations and times of day; NaN for all other texts.

    Parameters
    ----------
    texts : Series of str
        Without blanks around them. Hours and minutes, with or without seconds (``"8:15"``, ``"26:10:00.5"``); days
        before them, or alone, as pandas and Python write them (``"1 days 08:15:00"``, ``"-1 day, 23:59:50"``,
        ``"30 days"``); times of day also in halves of 12 hours (``"2:30 PM"``).

    Examples
    --------
    >>> seconds_of_texts(pd.Series(["8:15", "0 days 00:00:01.5", "-1 day, 23:59:50", "30 days", "8:75"])).tolist()
    [29700.0, 1.5, -10.0, 2592000.0, nan]
    """
    texts = texts.astype(object)
    if not any(map(re.compile(_TEXT).search, texts)):
        return np.full(len(texts), np.nan)
    parts = texts.str.extract(_TEXT)
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


def are_alike(texts: pd.Series[str]) -> bool:
    """Return whether durations all have seconds or all have none: ``"59:30"`` may be minutes beside ``"1:02:30"``.

    Examples
    --------
    >>> are_alike(pd.Series(["59:30", "1:02:30"])), are_alike(pd.Series(["2 days", "0:59:30", "1:02:30"]))
    (False, True)
    """
    counts = texts.str.count(":")
    return bool(counts[counts > 0].nunique() <= 1)


def seconds_of(value: object) -> object:
    """Return the seconds of a duration or a time of day, and any other value as it is."""
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, dt.time):
        return _HOUR * value.hour + _MINUTE * value.minute + value.second + value.microsecond / 1e6
    return value
