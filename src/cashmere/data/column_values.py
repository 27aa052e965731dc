"""Turn the values of a column into numbers, dates or texts, by what is known of the column."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, BoolArray, Float64, FloatArray
from cashmere.base.text import counted
from cashmere.data.amounts import Amounts, read_amounts
from cashmere.data.calendar import date_parts
from cashmere.data.column import Column, ColumnKind
from cashmere.data.dates import DateNotation, in_other_order, near_years, read_dates, read_local, read_moments
from cashmere.data.durations import seconds_of, seconds_of_texts
from cashmere.data.frames import infinity_error
from cashmere.data.labels import category_codes, factorised
from cashmere.data.limits import numbers_beyond
from cashmere.exceptions import ColumnTypeError, DataError, SchemaError

_TRUTH = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}

LARGEST = float(np.finfo(np.float32).max)
"""Largest number that learners see; larger ones are clipped to it."""


@contextmanager
def failures_of(name: str) -> Iterator[None]:
    """Turn any failure to read the values of a column into an error that names it."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # values may be objects of any class
        reason = f"{type(error).__name__}: {str(error)[:200]}" if str(error) else type(error).__name__
        raise ColumnTypeError(
            f"Column {name!r} cannot be read ({reason}). Convert its values to numbers or text, or remove it.",
            column=name,
        ) from error


def coded_values(column: Column, series: pd.Series[Any]) -> tuple[FloatArray, int]:
    """Return the numbers of a column other than text, as a model gets them.

    Parameters
    ----------
    column : Column
        What is known of the column from training.
    series : Series of shape (n_rows,)
        Its values in a table.

    Returns
    -------
    (n_rows, n_values) array, int
        A column for each of ``column.value_names``, NaN where a value is missing or not understood; how many were not
        understood, such as levels that are new.

    Raises
    ------
    SchemaError
        If a value cannot be what the column was in training.
    DataError
        If a number is infinite.
    """
    bad = 0
    if column.kind is ColumnKind.NUMERIC:
        coded = numbers_of(
            series, column.name, column.missing_texts, in_seconds=column.in_seconds, amounts=column.amounts
        )[:, None]
        if column.offset:
            coded = np.subtract(coded, column.offset, dtype=np.float64)
    elif column.kind is ColumnKind.BOOLEAN:
        coded = booleans_of(series, column.name)[:, None]
    elif column.kind is ColumnKind.DATE:
        dates, bad = dates_of(series, column.name, column.zone, column.notation, column.years)
        coded = date_parts(dates, column.date_parts)
    else:
        codes, bad = category_codes(series, column.categories)
        coded = codes[:, None]
    return coded, bad


def are_present(series: pd.Series[Any]) -> BoolArray:
    """Return where values are present; blank strings are missing."""
    present: BoolArray = series.notna().to_numpy(dtype=bool)
    if series.dtype == object or isinstance(series.dtype, pd.StringDtype):
        values = series.to_numpy(dtype=object)
        blank = [isinstance(value, str) and (not value or value.isspace()) for value in values]
        present = present & ~np.array(blank, dtype=bool)
    return present


def numbers_of(
    series: pd.Series[Any],
    name: str,
    missing_texts: tuple[str, ...] = (),
    *,
    in_seconds: bool = False,
    amounts: Amounts | None = None,
) -> FloatArray:
    """Return numbers as float64; float32 ones unchanged, which halves the memory to read.

    Parameters
    ----------
    series : Series of shape (n_rows,)
        Numbers, texts of numbers or of limits, durations.
    name : str
        Of the column, for errors.
    missing_texts : tuple of str
        Texts that mean a missing value.
    in_seconds : bool
        Whether the values are durations or times of day.
    amounts : Amounts, optional
        How texts of numbers are written; plain numbers by default.

    Raises
    ------
    SchemaError
        If other values are no numbers.
    DataError
        If a number is infinite.
    """
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    values: FloatArray
    if isinstance(dtype, np.dtype) and dtype == np.float32:
        values = series.to_numpy()
    elif pd.api.types.is_numeric_dtype(dtype) and kind != "c":  # booleans included
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    elif kind == "m":
        values = series.dt.total_seconds().to_numpy(dtype=np.float64)
    else:
        present = are_present(series)
        values = np.full(len(series), np.nan)
        content = series.astype(object)[present]
        if in_seconds or (len(content) and isinstance(content.iloc[0], dt.timedelta)):
            content = content.map(seconds_of)
        content = content.map(lambda value: _as_float(value) if isinstance(value, (Decimal, Fraction)) else value)
        is_date = content.map(lambda value: isinstance(value, (dt.date, complex))).to_numpy(dtype=bool)
        parsed = parse_numbers(content)
        if amounts is not None:
            is_text = content.map(lambda value: isinstance(value, str)).to_numpy(dtype=bool)
            codes, distinct = pd.factorize(content[is_text].str.strip())
            parsed = parsed.copy()
            parsed[is_text] = read_amounts(pd.Series(distinct, dtype=object), amounts)[codes]
        elif in_seconds:
            codes, distinct = pd.factorize(content.map(lambda value: value.strip() if isinstance(value, str) else ""))
            parsed = np.where(np.isnan(parsed), seconds_of_texts(pd.Series(distinct))[codes], parsed)
        unread = np.flatnonzero(np.isnan(parsed) | is_date)
        if not in_seconds and amounts is None and len(unread):
            parsed = parsed.copy()
            parsed[unread] = _beyond_limits(content.iloc[unread], missing_texts)
            unread = np.flatnonzero(np.isnan(parsed) | is_date)
        texts = [value.strip() if isinstance(value, str) else None for value in content.iloc[unread]]
        bad = [i for i, text in zip(unread, texts, strict=True) if text not in missing_texts]
        if bad:
            expected = "numbers" if amounts is None else f"numbers such as {amounts.example}"
            if in_seconds:
                expected = "durations or times of day such as 1:30:00"
            raise _unfit(name, content.iloc[bad[0]], expected, len(bad))
        values[present] = parsed
    if np.isinf(values).any():
        raise infinity_error(name)
    return values


def _beyond_limits(content: pd.Series[Any], missing_texts: tuple[str, ...]) -> Float64:
    """Return the numbers of limits, NaN of all else; what early versions read as missing stays so."""
    texts = content.map(lambda value: value.strip() if isinstance(value, str) else "")
    codes, distinct = pd.factorize(texts.where(~texts.isin(missing_texts), ""))
    return numbers_beyond(pd.Series(distinct, dtype=object))[codes]


def parse_numbers(content: pd.Series[Any]) -> Float64:
    """Return numbers and texts of numbers as floats: infinity if too large, NaN for everything else."""
    try:
        return np.asarray(pd.to_numeric(content, errors="coerce"), dtype=np.float64)
    except OverflowError:  # integers of hundreds of digits
        return np.array([_as_float(value) for value in content], dtype=np.float64)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf
    except (TypeError, ValueError):
        return np.nan


def booleans_of(series: pd.Series[Any], name: str) -> Float64:
    """Return 1 for true, 0 for false, also as texts, and NaN where a value is missing.

    Raises
    ------
    SchemaError
        If other values are neither.
    """
    if pd.api.types.is_bool_dtype(series.dtype) and not isinstance(series.dtype, pd.CategoricalDtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    codes, labels = factorised(series)
    table = np.array([_TRUTH.get(label.lower(), -1.0) for label in labels] + [np.nan])
    values: Float64 = table[codes]
    if np.any(values == -1.0):
        bad = np.flatnonzero(values == -1.0)
        raise _unfit(name, labels[codes[bad[0]]], "True or False", bad.size)
    return values


def _unfit(name: str, value: object, expected: str, count: int) -> SchemaError:
    how = ", with decimals after a point," if expected == "numbers" and "," in shown_value(value) else ""
    return SchemaError(
        f"Column {name!r} must hold {expected} as in training, but {counted(count, 'value')} did not fit, for example "
        f"{shown_value(value)!r}. Correct them{how} or replace them by NaN (missing).",
        column=name,
    )


def shown_value(value: object) -> str:
    """Return the beginning of a value's text, or its type if it has no text."""
    try:
        return str(value)[:60]
    except Exception:
        return f"a {type(value).__name__}"


def texts_of(series: pd.Series[Any]) -> AnyArray:
    """Return values as texts, ``""`` where they are missing."""
    values = series.to_numpy(dtype=object)
    texts = np.empty(len(values), dtype=object)
    texts[:] = ["" if gone else str(value) for value, gone in zip(values, pd.isna(values), strict=True)]
    return texts


def dates_of(
    series: pd.Series[Any],
    name: str,
    zone: str = "",
    notation: DateNotation = DateNotation.YEAR_FIRST,
    years: tuple[int, int] | None = None,
    *,
    in_utc: bool = False,
) -> tuple[NDArray[np.datetime64], int]:
    """Return wall times in microseconds, NaT where missing or not understood, and the number of the latter.

    With a zone, values that have one, or an offset, become wall times there. With `years`, those of two digits are of
    the nearest century. With `in_utc`, objects and texts that have an offset become moments in UTC.

    Raises
    ------
    SchemaError
        If the values are no dates, or day and month come in the other order.
    """
    if isinstance(series.dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        if zone and zone != str(series.dtype.tz):
            series = series.dt.tz_convert(ZoneInfo(zone))
        series = series.dt.tz_localize(None)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "M":
        return series.to_numpy().astype("datetime64[us]"), 0
    if pd.api.types.is_numeric_dtype(series.dtype) and series.notna().any():
        raise _unfit(name, series.dropna().iloc[0], "dates", int(series.notna().sum()))
    present = are_present(series)
    dates = np.full(len(series), "NaT", dtype="datetime64[us]")
    content = series.astype(object)[present]
    if len(content):
        if pd.api.types.infer_dtype(content) != "string":  # as objects, equal moments of several zones would be one
            place = dt.UTC if in_utc else ZoneInfo(zone) if zone else None
            written = [_date_text(value, place) for value in content]
            content = pd.Series(written, dtype=object)
        codes, distinct = pd.factorize(content)
        texts = pd.Series(distinct, dtype=object).str.strip()
        if in_utc:
            read = read_moments(texts, notation)
        else:
            read = read_local(texts, zone, notation) if zone else read_dates(texts, notation)
        if np.isnat(read).any() and (example := in_other_order(texts, notation)) is not None:
            raise _misread(name, example, notation)
        if years is not None:
            read = near_years(read, texts, years)
        dates[present] = read[codes]
    return dates, int(np.sum(np.isnat(dates) & present))


def _misread(name: str, example: str, notation: DateNotation) -> SchemaError:
    return SchemaError(
        f"Column {name!r} had dates with the {notation.value} in training, such as {notation.example}, but now day and "
        f"month change places, for example in {shown_value(example)!r}. Write the dates as in training, or as year, "
        "month and day, for instance with pandas.to_datetime.",
        column=name,
    )


def _date_text(value: object, place: dt.tzinfo | None) -> str:
    """Return the text of a date without an offset, of its wall time at a place; only texts keep their offset."""
    if isinstance(value, pd.Period):
        value = value.to_timestamp()
    if isinstance(value, dt.datetime):
        if place is not None and value.utcoffset() is not None:
            value = value.astimezone(place)
        value = value.replace(tzinfo=None)
    return str(value)
