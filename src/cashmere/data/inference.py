"""Learn the meaning of the columns of a table, once in `fit`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, BoolArray, Float64
from cashmere.data.calendar import recurring_parts
from cashmere.data.column import ZONE, Column, ColumnKind
from cashmere.data.column_kinds import infer_kind
from cashmere.data.column_values import LARGEST, are_present, booleans_of, dates_of, failures_of, numbers_of
from cashmere.data.dates import are_in_utc
from cashmere.data.labels import factorised, label_text
from cashmere.data.schema import TableSchema, each_column

_IDENTIFIER_ROWS = 50
_FIRST_DATES = 100

_TOLD_APART = 0.9
"""Share of the distinct numbers of a column that float32 must tell apart."""


def infer_schema(
    frame: pd.DataFrame, *, named: bool = True, calendar: str = "", check: Callable[[], object] = lambda: None
) -> TableSchema:
    """Learn the meaning of the columns of the training table.

    Text columns are read as numbers if every value parses, or every value but a few texts such as "unknown", see
    `Column.missing_texts`; also if they have thousands separators, a currency or a unit, see `find_amounts`; likewise
    as seconds if they are durations or times of day, see `seconds_of_texts`; as dates
    if 95 % are, see `find_notation`; as text if more than half of the values differ, and have more than 4 words on
    average, or if more than a fifth differ, and their words recur in others; else as categories. Missing values and
    blank strings are ignored. Integers stay numbers. Columns without information are dropped, see `Column.dropped`,
    which may leave none. The result does not depend on the order of the rows.

    Parameters
    ----------
    frame : pandas.DataFrame
        From `cashmere.data.frames.to_frame`. With decimal commas, `read_table` leaves a comma in
        ``frame.attrs["decimal"]``.
    named : bool
        Whether later tables are matched by column name.
    calendar : str
        A column of dates that put the rows in order: only parts that recur are features, see `recurring_parts`.
    check : callable
        Called before each column; an exception that it raises ends the work.

    Raises
    ------
    ColumnTypeError
        If a column holds dicts, lists or other objects that are not plain values.
    DataError
        If a column of numbers written as text holds an infinity.

    Examples
    --------
    >>> schema = infer_schema(pd.DataFrame({"size": [1, 2, 3], "colour": ["red", "blue", None]}))
    >>> [(column.name, column.kind.value, column.categories) for column in schema.columns]
    [('size', 'numeric', ()), ('colour', 'categorical', ('blue', 'red'))]
    """
    given = [(str(name), frame.iloc[:, position]) for position, name in enumerate(frame.columns)]

    def infer_column(number: int) -> tuple[Column, bytes]:
        check()
        name, series = given[number]
        with failures_of(name):
            return _infer_column(name, series, is_calendar=name == calendar)

    columns: list[Column] = []
    first_with: dict[bytes, str] = {}
    for column, digest in each_column(infer_column, len(given), n_rows=len(frame)):
        if column.dropped is None:
            original = first_with.setdefault(digest, column.name)
            if original != column.name:
                column = Column(name=column.name, kind=column.kind, dropped=f"duplicate of {original!r}")
        columns.append(column)
    return TableSchema(columns=tuple(columns), named=named, decimal="," if frame.attrs.get("decimal") == "," else ".")


def _infer_column(name: str, series: pd.Series[Any], *, is_calendar: bool = False) -> tuple[Column, bytes]:
    """Return the column and a digest that is equal for equal content."""
    reading = infer_kind(name, series)
    kind = reading.kind
    categories: tuple[str, ...] = ()
    with_time, zone, offset = False, "", 0.0
    years: tuple[int, int] | None = None
    lowest: float | None = None
    highest: float | None = None
    parts: tuple[str, ...] = ()
    dropped: str | None = None
    content: AnyArray
    if kind is ColumnKind.NUMERIC or kind is ColumnKind.BOOLEAN:
        if kind is ColumnKind.NUMERIC:
            numbers = numbers_of(
                series, name, reading.missing_texts, in_seconds=reading.in_seconds, amounts=reading.amounts
            )
        else:
            numbers = booleans_of(series, name)
        content = np.add(numbers, 0.0, dtype=np.float64)  # turns -0.0 into 0.0
        missing = np.isnan(content)
        distinct = _few_distinct(content, missing)
        if kind is ColumnKind.NUMERIC and distinct > 1:
            offset = float32_offset(content[~missing])
            lowest, highest = float(np.fmin.reduce(content)), float(np.fmax.reduce(content))
    elif kind is ColumnKind.DATE:
        dates, _ = dates_of(series, name, notation=reading.notation)
        content, missing = dates.view(np.int64), np.isnat(dates)
        distinct = _few_distinct(content, missing)
        if isinstance(series.dtype, pd.DatetimeTZDtype) and _is_zone(str(series.dtype.tz)):
            zone = str(series.dtype.tz)
        elif _is_text_in_utc(series):
            zone = "UTC"
        years = _years_of(dates[~missing])
        with_time = bool(np.any(dates[~missing] != dates[~missing].astype("datetime64[D]")))
    else:
        codes, labels = factorised(series)
        order = np.argsort(np.array(labels, dtype=object), kind="stable")
        if isinstance(series.dtype, pd.CategoricalDtype) and series.dtype.ordered:
            rank = {label_text(value): i for i, value in enumerate(series.dtype.categories)}
            order = np.array(sorted(range(len(labels)), key=lambda i: rank[labels[i]]), dtype=np.int64)
        code_of = np.append(np.argsort(order), -1)
        content, missing, distinct = code_of[codes], codes < 0, len(labels)
        categories = tuple(labels[i] for i in order)
        n_present = int((~missing).sum())
        if kind is ColumnKind.CATEGORICAL and distinct == n_present > _IDENTIFIER_ROWS:
            dropped = "identifier: every value differs"
    if is_calendar and kind is ColumnKind.DATE:
        parts = recurring_parts(content.view("datetime64[us]"))
        dropped = None if parts else "puts the rows in order, and no part of it recurs"
    if distinct == 0:
        dropped = "all missing"
    elif distinct == 1 and not missing.any():
        dropped = "constant"
    digest = hashlib.sha256(f"{kind} {categories} {parts}".encode("utf-8", "surrogatepass"))
    digest.update(np.ascontiguousarray(content).data)
    used_categories = categories if kind is ColumnKind.CATEGORICAL and dropped is None else ()
    column = Column(
        name=name,
        kind=kind,
        categories=used_categories,
        with_time=with_time,
        parts=parts,
        notation=reading.notation,
        years=None if dropped else years,
        zone=zone,
        missing_texts=reading.missing_texts,
        in_seconds=reading.in_seconds,
        amounts=reading.amounts,
        offset=0.0 if dropped else offset,
        lowest=None if dropped else lowest,
        highest=None if dropped else highest,
        missing=None if dropped else round(float(np.mean(missing)), 4),
        dropped=dropped,
    )
    return column, digest.digest()


def _years_of(dates: NDArray[np.datetime64]) -> tuple[int, int] | None:
    """Return the first and the last year of dates; None if there are no dates."""
    if not dates.size:
        return None
    ends = np.array([dates.min(), dates.max()]).astype("datetime64[Y]").astype(np.int64) + 1970
    return int(ends[0]), int(ends[1])


def float32_offset(numbers: Float64) -> float:
    """Return what to subtract from numbers that float32 hardly tells apart, such as seconds since 1970; else 0."""
    low, high = float(numbers.min()), float(numbers.max())
    if high - low >= max(abs(low), abs(high)) / 8 or max(abs(low), abs(high)) > LARGEST:
        return 0.0  # subtracting would gain fewer than three of 24 bits
    n_distinct, n_told_apart = (len(pd.unique(each)) for each in (numbers, numbers.astype(np.float32)))
    return low if n_told_apart < _TOLD_APART * n_distinct else 0.0


def _few_distinct(content: AnyArray, missing: BoolArray) -> int:
    """Return the number of distinct present values: 0, 1, or 2 for more than one."""
    n_distinct = 0
    for part in (slice(1000), slice(None)):  # the first rows suffice in most columns
        present = content[part][~missing[part]]
        n_distinct = 0 if present.size == 0 else 1 + int(np.any(present != present[0]))
        if n_distinct == 2:
            break
    return n_distinct


def _is_text_in_utc(series: pd.Series[Any]) -> bool:
    """Return whether all dates are texts that end in an offset of zero."""
    if not (pd.api.types.is_object_dtype(series.dtype) or pd.api.types.is_string_dtype(series.dtype)):
        return False
    for part in (series.head(_FIRST_DATES), series):  # the first cells tell that most columns are not
        texts = part[are_present(part)].astype(object).drop_duplicates()
        if len(texts) and not (pd.api.types.infer_dtype(texts) == "string" and are_in_utc(texts.str.strip()).all()):
            return False
    return True


def _is_zone(name: str) -> bool:
    """Return whether there is a time zone of this name, and not only an offset."""
    try:
        return ZONE.fullmatch(name) is not None and ZoneInfo(name).key == name
    except (OSError, ValueError, KeyError):
        return False
