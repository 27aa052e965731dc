"""Infer how the values of a column are understood."""

from __future__ import annotations

import datetime as dt
import numbers
import re
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cashmere.base.arrays import Float64
from cashmere.data.amounts import Amounts, find_amounts, read_amounts
from cashmere.data.column import ColumnKind
from cashmere.data.column_values import are_present, parse_numbers, shown_value
from cashmere.data.dates import DateNotation, find_notation
from cashmere.data.durations import are_clear, seconds_of_texts
from cashmere.data.limits import numbers_beyond
from cashmere.data.words import UNSPACED
from cashmere.exceptions import ColumnTypeError

LEAST_NUMBERS, MOST_OTHERS = 10, 5
"""Different numbers, and different other texts, of a column of numbers in which some cells say that there is none."""

_OTHERS_SHARE = 0.05
"""Most cells with several such texts: a column that is read as numbers no longer tells them apart."""

_TEXT_WORDS = 4
"""Strings of more words on average are text, whatever the words."""

_PHRASE_WORDS, _RECURRENCES = 1.5, 3
"""Shorter strings are text if they have at least as many words with letters, each in as many strings, on average."""

_LETTERS_OF_WORD = 2
"""In scripts without blanks between words."""

_TEXT_DISTINCT, _PHRASE_DISTINCT = 0.5, 0.2
"""Smallest shares of the values that differ, in sentences and in phrases: a level of a category has more rows."""

_PHRASES_READ = 10_000
_WORD = re.compile(r"\b[^\W\d_]\w+")
_SCALARS = (str, numbers.Number, Decimal, np.generic, dt.date, dt.time, dt.timedelta, pd.Period, pd.Interval)


class Reading(NamedTuple):
    """How values are understood, see `Column`."""

    kind: ColumnKind
    missing_texts: tuple[str, ...] = ()
    in_seconds: bool = False
    notation: DateNotation = DateNotation.YEAR_FIRST
    amounts: Amounts | None = None


def are_numbers(texts: pd.Series[str]) -> bool:
    """Return whether texts are read as plain numbers in training, perhaps with limits and a few for missing ones.

    Parameters
    ----------
    texts : Series of str
        Cells of a column, without blanks around them, nothing missing.

    Examples
    --------
    >>> are_numbers(pd.Series([*map(str, range(10)), "<1", "unknown"])), are_numbers(pd.Series(["1", "2", "unknown"]))
    (True, False)
    """
    reading = _kind_of_texts(texts)
    return reading.kind is ColumnKind.NUMERIC and reading.amounts is None


def infer_kind(name: str, series: pd.Series[Any]) -> Reading:
    """Return what the values of a column mean.

    Raises
    ------
    ColumnTypeError
        If they are objects that are not plain values.
    """
    kind = _kind_by_type(name, series)
    if kind is None:
        return _kind_of_texts(series[are_present(series)].astype(str).str.strip())
    return Reading(kind, in_seconds=kind is ColumnKind.NUMERIC and _holds_times(series))


def _holds_times(series: pd.Series[Any]) -> bool:
    """Return whether a column of numbers, by its type, holds durations or times of day."""
    if pd.api.types.is_numeric_dtype(series.dtype):
        return False
    return series.dtype.kind == "m" or any(isinstance(value, (dt.timedelta, dt.time)) for value in series)


def _kind_by_type(name: str, series: pd.Series[Any]) -> ColumnKind | None:
    """Return what the types of the values tell; None if some are strings, whose contents tell."""
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return ColumnKind.CATEGORICAL
    if pd.api.types.is_bool_dtype(dtype):
        return ColumnKind.BOOLEAN
    if pd.api.types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return ColumnKind.DATE
    if pd.api.types.is_numeric_dtype(dtype) or getattr(dtype, "kind", "") == "m":
        return ColumnKind.NUMERIC
    values = series[are_present(series)]
    if len(values) == 0:
        return ColumnKind.NUMERIC
    types = set(map(type, values))
    for type_ in types:
        if not issubclass(type_, _SCALARS) or issubclass(type_, (complex, bytes)):
            example = next(value for value in values if type(value) is type_)
            raise ColumnTypeError(
                f"Column {name!r}: argument must be a string or a number, not {type_.__name__!r} (for example "
                f"{shown_value(example)}). Expand the objects into columns of plain values, or remove the column.",
                column=name,
            )
    if all(issubclass(type_, (bool, np.bool_)) for type_ in types):
        return ColumnKind.BOOLEAN
    if all(issubclass(type_, (dt.date, np.datetime64, pd.Period)) for type_ in types):
        return ColumnKind.DATE
    if all(issubclass(type_, (numbers.Number, Decimal, np.number, dt.timedelta, dt.time)) for type_ in types):
        return ColumnKind.NUMERIC
    return None


def _kind_of_texts(texts: pd.Series[str]) -> Reading:
    """Infer what strings mean.

    Each distinct string is examined once, and counts as often as it occurs.
    """
    counts = texts.value_counts()
    distinct = pd.Series(counts.index, dtype=object)
    weight = counts.to_numpy() / counts.sum()
    if set(distinct.str.lower()) <= {"true", "false"}:
        return Reading(ColumnKind.BOOLEAN)
    parsed, in_seconds = parse_numbers(distinct), False
    if np.isnan(parsed).all() and not np.isnan(seconds_of_texts(distinct.head(2 * MOST_OTHERS))).all():
        seconds = seconds_of_texts(distinct)
        if are_clear(distinct[~np.isnan(seconds)]):
            parsed, in_seconds = seconds, True
    if not in_seconds:
        parsed = _with_limits(distinct, parsed)
    if not np.isnan(parsed).any():
        return Reading(ColumnKind.NUMERIC, in_seconds=in_seconds)
    has_others = not in_seconds and distinct[np.isnan(parsed)].str.contains("[0-9]").any()
    amounts = find_amounts(distinct) if has_others else None
    if amounts is not None:
        parsed = read_amounts(distinct, amounts)
        if not np.isnan(parsed).any():
            return Reading(ColumnKind.NUMERIC, amounts=amounts)
    other = ~np.isfinite(parsed)
    are_gaps = other.sum() == 1 or (other.sum() <= MOST_OTHERS and weight[other].sum() <= _OTHERS_SHARE + 1e-12)
    if are_gaps and (~other).sum() >= LEAST_NUMBERS:
        return Reading(ColumnKind.NUMERIC, tuple(sorted(distinct[other])), in_seconds, amounts=amounts)
    if (notation := find_notation(distinct, weight)) is not None:
        return Reading(ColumnKind.DATE, notation=notation)
    if len(distinct) > _PHRASE_DISTINCT * len(texts):
        n_words = distinct.str.count(r"\s+") + 1 + distinct.str.count(f"[{UNSPACED}]") // _LETTERS_OF_WORD
        total = n_words.to_numpy(dtype=np.int64) @ counts.to_numpy()
        are_sentences = total > _TEXT_WORDS * len(texts) and len(distinct) > _TEXT_DISTINCT * len(texts)
        if are_sentences or (total >= _PHRASE_WORDS * len(texts) and _are_phrases(distinct)):
            return Reading(ColumnKind.TEXT)
    return Reading(ColumnKind.CATEGORICAL)


def _are_phrases(distinct: pd.Series[str]) -> bool:
    """Return whether different strings are made of recurring words, such as titles of jobs or names of products.

    Examples
    --------
    >>> colours = ["red", "green", "blue", "black"]
    >>> _are_phrases(pd.Series([f"{one} on {other}" for one in colours for other in colours]))
    True
    >>> _are_phrases(pd.Series([f"user {number}" for number in range(100)]))
    False
    """
    if len(distinct) > _PHRASES_READ:  # always the same ones, whatever the order of the rows
        hashes = pd.util.hash_array(distinct.to_numpy(dtype=object))
        distinct = distinct[np.argpartition(hashes, _PHRASES_READ)[:_PHRASES_READ]]
    words = [word for text in distinct.str.lower() for word in set(_WORD.findall(text))]
    return len(words) >= max(_PHRASE_WORDS * len(distinct), _RECURRENCES * len(set(words)))


def _with_limits(distinct: pd.Series[str], parsed: Float64) -> Float64:
    """Return numbers with those of limits, if these are few beside plain numbers: `"<5"` and `">=5"` are categories."""
    unread = np.isnan(parsed)
    if not unread.any() or (~unread).sum() < LEAST_NUMBERS:
        return parsed
    beyond = np.full(len(parsed), np.nan)
    beyond[unread] = numbers_beyond(distinct[unread])
    is_limit = ~np.isnan(beyond)
    return np.where(is_limit, beyond, parsed) if 2 * is_limit.sum() <= (~unread).sum() else parsed
