"""Parts of dates that are features: year, month, weekday and so on."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cashmere.base.arrays import BoolArray, Float64

DATE_PARTS = ("year", "month", "day", "weekday", "days_since_1970", "hour")
"""In the order of the features; the hour only if the dates have a time of day."""

_PERIODS = {"month": "Y", "day": "M", "weekday": "W", "hour": "D"}
"""What each part recurs in, as a unit of numpy."""

_LEAST_PERIODS = 2
"""Periods of the older half in which each value occurs: in one alone, it may be nothing but a later moment."""


def date_parts(dates: NDArray[np.datetime64], names: tuple[str, ...]) -> Float64:
    """Return parts of dates as numbers, shape ``(n_rows, n_parts)``; NaN where a date is missing.

    Parameters
    ----------
    dates : (n_rows,) array of datetime64[us]
        Wall times; NaT where they are missing.
    names : tuple of str
        Which of `DATE_PARTS`; ``weekday`` is 0 on Monday, ``days_since_1970`` has decimals for the time of day.

    Examples
    --------
    >>> date_parts(np.array(["2024-12-31T18:00"], "datetime64[us]"), ("month", "weekday", "days_since_1970"))
    array([[1.200000e+01, 1.000000e+00, 2.008875e+04]])
    """
    index = pd.DatetimeIndex(dates)
    values = np.empty((len(dates), len(names)))
    for position, name in enumerate(names):
        if name == "days_since_1970":
            values[:, position] = (dates - np.datetime64("1970-01-01", "us")) / np.timedelta64(1, "D")
        else:
            values[:, position] = getattr(index, "day_of_week" if name == "weekday" else name)
    values[np.isnat(dates)] = np.nan
    return values


def recurring_parts(dates: NDArray[np.datetime64]) -> tuple[str, ...]:
    """Return the parts of dates whose values come again, for rows that later ones are to be predicted from.

    Parameters
    ----------
    dates : (n_rows,) array of datetime64[us]
        Moments of the rows; NaT is left out.

    Notes
    -----
    A part recurs if it has several values, and each that occurs in the newer half of the rows occurs in at least two
    periods of the older half: a month in two years, a day in two months, a weekday in two weeks, an hour on two days.
    Models that are fitted to the older rows have then seen it, and can tell it from a trend. Years never recur.

    Examples
    --------
    >>> days = np.datetime64("2024-01-01", "us") + np.arange(40) * np.timedelta64(1, "D")
    >>> recurring_parts(days)
    ('weekday',)
    """
    dates = dates[~np.isnat(dates)]
    if len(dates) == 0:
        return ()
    middle = np.partition(dates.view(np.int64), len(dates) // 2)[len(dates) // 2]
    newer: BoolArray = dates.view(np.int64) >= middle
    found = []
    for name, unit in _PERIODS.items():
        values = date_parts(dates, (name,))[:, 0].astype(np.int64)
        periods = dates.astype(f"datetime64[{unit}]").view(np.int64)
        older = pd.Series(periods[~newer]).groupby(values[~newer]).nunique()
        seen = older.index[older >= _LEAST_PERIODS]
        if len(np.unique(values)) > 1 and np.isin(values[newer], seen).all():
            found.append(name)
    return tuple(name for name in DATE_PARTS if name in found)
