"""Read columns that are no features: groups, times, and the labels of a target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray
from cashmere.base.text import counted
from cashmere.data.column import ColumnKind
from cashmere.data.column_kinds import infer_kind
from cashmere.data.column_values import are_present, dates_of, failures_of, numbers_of, shown_value
from cashmere.data.dates import read_dates
from cashmere.data.labels import factorised
from cashmere.exceptions import ColumnTypeError


def read_labels(series: pd.Series[Any], name: str) -> AnyArray:
    """Return the text of each value as a category, so that 1, 1.0 and "1" are equal; ``""`` where it is missing.

    Raises
    ------
    ColumnTypeError
        If objects are not plain values.
    """
    with failures_of(name):
        infer_kind(name, series)  # raises an error for other objects
        codes, labels = factorised(series)
    return np.array([*labels, ""], dtype=object)[codes]


def read_times(series: pd.Series[Any], name: str) -> AnyArray:
    """Return numbers or dates that put rows in order, NaN or NaT where they are missing.

    Dates are moments in UTC: wall times of several offsets would mix their order, and repeat an hour in autumn. Those
    without an offset or a time zone count as UTC.

    Raises
    ------
    ColumnTypeError
        If values are neither numbers nor dates.
    """
    with failures_of(name):
        kind, missing_texts, in_seconds, notation, amounts = infer_kind(name, series)
        if kind is ColumnKind.NUMERIC and (not in_seconds or series.dtype.kind == "m"):  # times of day begin again
            return numbers_of(series, name, missing_texts, amounts=amounts)
        if kind is ColumnKind.DATE:
            if isinstance(series.dtype, pd.DatetimeTZDtype):
                series = series.dt.tz_convert("UTC")
            dates, n_unread = dates_of(series, name, notation=notation, in_utc=True)
            if n_unread == 0:
                return dates
    if isinstance(series.dtype, pd.CategoricalDtype):
        raise ColumnTypeError(
            f"Column {name!r} cannot order rows in time: it holds categories. Convert it to numbers, dates or text.",
            column=name,
        )
    texts = series[are_present(series)].astype(str).str.strip()
    unread = texts[np.isnat(read_dates(texts, notation))]
    written = texts if unread.empty else unread
    are_days = bool(written.str.fullmatch(r"\d{1,2}[-/.]\d{1,2}[-/.](?:\d\d|\d{4})").all())
    raise ColumnTypeError(
        f"Column {name!r} cannot order rows in time: expected numbers or dates such as 2024-12-31; "
        f"{counted(len(written), 'value')} did not fit, for example {shown_value(written.iloc[0])!r}"
        + (", where it is not clear whether day or month comes first. " if are_days else ". ")
        + "Write them as year, month and day, for instance with pandas.to_datetime.",
        column=name,
    )
