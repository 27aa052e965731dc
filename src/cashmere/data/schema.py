"""Learn the meaning of the columns of a table, once in `fit`, and turn tables into numbers accordingly."""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import math
import numbers
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict, TypeVar
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, BoolArray, Float64, FloatArray, IntArray
from cashmere.base.cores import available_cores
from cashmere.base.json_files import checked
from cashmere.base.text import counted, first_of
from cashmere.data.calendar import DATE_PARTS, date_parts, recurring_parts
from cashmere.data.dates import (
    DateNotation,
    are_in_utc,
    find_notation,
    in_other_order,
    near_years,
    read_dates,
    read_local,
    read_moments,
)
from cashmere.data.durations import are_alike, seconds_of, seconds_of_texts
from cashmere.data.frames import check_finite, infinity_error, to_frame
from cashmere.data.limits import numbers_beyond
from cashmere.data.texts import PackedTexts
from cashmere.exceptions import ColumnTypeError, DataError, SchemaError

_IDENTIFIER_ROWS = 50
_TEXT_WORDS = 4.0
_TEXT_DISTINCT = 0.5
LEAST_NUMBERS, MOST_OTHERS = 10, 5
"""Different numbers, and different other texts, of a column of numbers in which some cells say that there is none."""

_OTHERS_SHARE = 0.05
"""Most cells with several such texts: a column that is read as numbers no longer tells them apart."""

_FIRST_DATES = 100

_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,31}(?:/[A-Za-z0-9_+-]{1,32}){0,3}")
"""What names of time zones look like: no path to another file."""

_TRUTH = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
_SCALARS = (str, numbers.Number, Decimal, np.generic, dt.date, dt.time, dt.timedelta, pd.Period, pd.Interval)
_MIXED = ("mixed", "mixed-integer")
"""Types by `pandas.api.types.infer_dtype` of which equal objects may have different texts."""

_TOLD_APART = 0.9
"""Share of the distinct numbers of a column that float32 must tell apart."""

LARGEST = float(np.finfo(np.float32).max)
"""Largest number that learners see; larger ones are clipped to it."""

_ROWS_FOR_THREADS = 100_000
"""Shorter columns take too little time for threads to help."""

_NAMES_SHOWN = 20
"""Most columns named in an error."""

_Found = TypeVar("_Found")


class ColumnKind(StrEnum):
    """How the values of a column are understood."""

    NUMERIC = "numeric"
    BOOLEAN = "boolean"
    CATEGORICAL = "categorical"
    DATE = "date"
    TEXT = "text"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of the table.

    Attributes
    ----------
    name : str
        Its name.
    kind : ColumnKind
        How its values are understood.
    categories : tuple of str
        Levels of a categorical column, in code order; sorted, or in the given order of an ordered categorical.
    with_time : bool
        Whether a date column has a time of day in training, and so an ``hour``.
    parts : tuple of str
        The parts of a date column that are features, if not all of them: those that recur, where its dates put the rows
        in order.
    notation : DateNotation
        What comes first in the dates of a column of texts, such as ``"1/2/2024"``.
    years : (int, int) or None
        The first and the last year of a date column in training: later years of two digits are of the nearest century.
        None in models of earlier versions.
    zone : str
        Time zone of a date column in training, such as ``"Europe/Berlin"``; later values of another zone are converted.
        Empty if it had none, or none with a name.
    missing_texts : tuple of str
        Texts among the numbers of a numeric column, such as ``"unknown"``, that are read as missing values.
    in_seconds : bool
        Whether a numeric column held durations or times of day, which are read as seconds.
    offset : float
        Subtracted from the numbers of a numeric column before they become float32, which would merge many of them: the
        smallest number in training, or 0 where nothing would be lost.
    lowest, highest : float or None
        Smallest and largest number of a numeric column in training; None in models of earlier versions.
    missing : float or None
        Share of the training rows without a value; None in models of earlier versions.
    dropped : str or None
        Why the column is not used: ``"constant"``, ``"all missing"``, ``"duplicate of 'x'"``,
        ``"identifier: every value differs"``, or that it puts the rows in order and no part of it recurs.
    """

    name: str
    kind: ColumnKind
    categories: tuple[str, ...] = ()
    with_time: bool = False
    parts: tuple[str, ...] = ()
    notation: DateNotation = DateNotation.YEAR_FIRST
    years: tuple[int, int] | None = None
    zone: str = ""
    missing_texts: tuple[str, ...] = ()
    in_seconds: bool = False
    offset: float = 0.0
    lowest: float | None = None
    highest: float | None = None
    missing: float | None = None
    dropped: str | None = None

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the number columns this column is coded into."""
        if self.dropped is not None or self.kind is ColumnKind.TEXT:
            return ()
        if self.kind is ColumnKind.DATE:
            return tuple(f"{self.name}.{part}" for part in self.date_parts)
        return (self.name,)

    @property
    def date_parts(self) -> tuple[str, ...]:
        """The parts of a date column that are features, in the order of `value_names`."""
        return self.parts or (DATE_PARTS if self.with_time else DATE_PARTS[:-1])


@dataclass(frozen=True, kw_only=True)
class CodedTable:
    """A table as numbers and texts; each row depends only on the same row of the source.

    Attributes
    ----------
    values : (n_rows, n_value_columns) array of float64, or of float32 if coded compactly
        Numbers, 0/1 for booleans, level codes of categories, parts of dates; NaN where missing or unknown.
    texts : tuple of (n_rows,) object arrays of str, or of PackedTexts if they stay in a file
        One per text column; missing is ``""``.
    schema : TableSchema
        What the columns mean.
    unseen : dict
        Per column, how many values were not understood: categories not in the schema, dates that do not parse.
    """

    values: FloatArray
    texts: tuple[AnyArray | PackedTexts, ...]
    schema: TableSchema
    unseen: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: IntArray) -> CodedTable:
        """Return the given rows."""
        return CodedTable(
            values=take_rows(self.values, rows),
            texts=self.take_texts(rows),
            schema=self.schema,
            unseen={},
        )

    def take_texts(self, rows: IntArray | slice) -> tuple[AnyArray, ...]:
        """Return the texts of the given rows, in memory."""
        return tuple(text[rows] for text in self.texts)

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the columns of `values`."""
        return self.schema.value_names

    @property
    def categorical(self) -> BoolArray:
        """Mask of the columns of `values` that hold level codes, shape ``(n_value_columns,)``."""
        return self.schema.categorical

    @property
    def n_levels(self) -> IntArray:
        """Number of levels of each column of `values`; 0 for those that are not categorical."""
        return self.schema.n_levels


def take_rows(values: FloatArray, rows: IntArray) -> FloatArray:
    """Return the given rows of a matrix in its memory order; compact ones column by column, which is faster."""
    if values.flags.c_contiguous:
        return values[rows]
    taken = np.empty((len(rows), values.shape[1]), values.dtype, "F")
    for source, column in zip(values.T, taken.T, strict=True):
        column[:] = source[rows]
    return taken


class _StoredColumn(TypedDict):
    name: str
    kind: ColumnKind
    categories: NotRequired[list[str]]
    with_time: NotRequired[bool]
    parts: NotRequired[list[str]]
    notation: NotRequired[DateNotation]
    years: NotRequired[tuple[int, int]]
    zone: NotRequired[str]
    missing_texts: NotRequired[list[str]]
    in_seconds: NotRequired[bool]
    offset: NotRequired[float]
    lowest: NotRequired[float | None]
    highest: NotRequired[float | None]
    missing: NotRequired[float | None]
    dropped: NotRequired[str | None]


class _StoredSchema(TypedDict):
    named: bool
    decimal: NotRequired[Literal[".", ","]]
    columns: Annotated[list[_StoredColumn], Meta(max_length=1_000_000)]


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """The columns of the training table.

    Attributes
    ----------
    columns : tuple of Column
        All columns, dropped ones included, in training order.
    named : bool
        Whether later tables are matched by column name; by position otherwise, unless they have the same columns in
        another order.
    decimal : {".", ","}
        What came before the decimals in the text file that the table was read from.
    """

    columns: tuple[Column, ...]
    named: bool = True
    decimal: Literal[".", ","] = "."

    @functools.cached_property
    def used(self) -> tuple[Column, ...]:
        """Columns that are not dropped."""
        return tuple(column for column in self.columns if column.dropped is None)

    @functools.cached_property
    def value_names(self) -> tuple[str, ...]:
        """Names of the columns of `CodedTable.values`."""
        return tuple(name for column in self.used for name in column.value_names)

    @functools.cached_property
    def value_columns(self) -> tuple[Column, ...]:
        """The column of the table that each column of `CodedTable.values` comes from."""
        return tuple(column for column in self.used for _ in column.value_names)

    @functools.cached_property
    def text_names(self) -> tuple[str, ...]:
        """Names of the text columns, in the order of `CodedTable.texts`."""
        return tuple(column.name for column in self.used if column.kind is ColumnKind.TEXT)

    @functools.cached_property
    def n_levels(self) -> IntArray:
        """Number of levels of each value column; 0 for those that are not categorical."""
        return np.array([len(c.categories) for c in self.used for _ in c.value_names], dtype=np.int64)

    @property
    def categorical(self) -> BoolArray:
        """Mask of the value columns that hold level codes."""
        return self.n_levels > 0

    @property
    def has_categories(self) -> bool:
        """Whether any used column is categorical with more than two levels."""
        return self.most_levels > 2

    @property
    def most_levels(self) -> int:
        """Levels of the used categorical column that has most of them; 0 if there is none."""
        return int(self.n_levels.max(initial=0))

    def to_json(self) -> dict[str, Any]:
        """Return the schema as plain data for `json.dump`."""
        columns = []
        for column in self.columns:
            entry: dict[str, Any] = {"name": column.name, "kind": column.kind.value}
            if column.categories:
                entry["categories"] = list(column.categories)
            if column.with_time:
                entry["with_time"] = True
            if column.parts:
                entry["parts"] = list(column.parts)
            if column.notation is not DateNotation.YEAR_FIRST:
                entry["notation"] = column.notation.value
            if column.years is not None:
                entry["years"] = list(column.years)
            if column.zone:
                entry["zone"] = column.zone
            if column.missing_texts:
                entry["missing_texts"] = list(column.missing_texts)
            if column.in_seconds:
                entry["in_seconds"] = True
            if column.offset:
                entry["offset"] = column.offset
            if column.lowest is not None:
                entry["lowest"] = column.lowest
            if column.highest is not None:
                entry["highest"] = column.highest
            if column.missing is not None:
                entry["missing"] = column.missing
            if column.dropped is not None:
                entry["dropped"] = column.dropped
            columns.append(entry)
        decimal = {} if self.decimal == "." else {"decimal": self.decimal}
        return {"named": self.named, **decimal, "columns": columns}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TableSchema:
        """Return the schema written by `to_json`.

        Raises
        ------
        ValueError
            If the data are not a schema.
        """
        data = checked(data, _StoredSchema)
        columns = tuple(
            Column(
                name=entry["name"],
                kind=entry["kind"],
                categories=tuple(entry.get("categories", ())),
                with_time=entry.get("with_time", False),
                parts=tuple(entry.get("parts", ())),
                notation=entry.get("notation", DateNotation.YEAR_FIRST),
                years=entry.get("years"),
                zone=entry.get("zone", ""),
                missing_texts=tuple(entry.get("missing_texts", ())),
                in_seconds=entry.get("in_seconds", False),
                offset=entry.get("offset", 0.0),
                lowest=entry.get("lowest"),
                highest=entry.get("highest"),
                missing=entry.get("missing"),
                dropped=entry.get("dropped"),
            )
            for entry in data["columns"]
        )
        for column in columns:
            if len(set(column.categories)) < len(column.categories):
                raise ValueError(f"the column {column.name[:80]!r} has a level twice")
            if column.categories and column.kind is not ColumnKind.CATEGORICAL:
                raise ValueError(f"the column {column.name[:80]!r} has levels, but is not categorical")
            if column.parts and (column.kind is not ColumnKind.DATE or not set(column.parts) <= set(DATE_PARTS)):
                raise ValueError(f"the column {column.name[:80]!r} has parts of dates, but no dates, or unknown parts")
            if column.notation is not DateNotation.YEAR_FIRST and column.kind is not ColumnKind.DATE:
                raise ValueError(f"the column {column.name[:80]!r} has a notation of dates, but no dates")
            if column.years and (column.kind is not ColumnKind.DATE or column.years[0] > column.years[1]):
                raise ValueError(f"the column {column.name[:80]!r} has years, but no dates, or not in order")
            if column.zone and (column.kind is not ColumnKind.DATE or not _ZONE.fullmatch(column.zone)):
                raise ValueError(f"the column {column.name[:80]!r} has a time zone, but no dates, or it is no name")
            if column.missing_texts and column.kind is not ColumnKind.NUMERIC:
                raise ValueError(f"the column {column.name[:80]!r} has texts for missing numbers, but is not numeric")
            if column.in_seconds and column.kind is not ColumnKind.NUMERIC:
                raise ValueError(f"the column {column.name[:80]!r} is in seconds, but is not numeric")
            if column.offset and (column.kind is not ColumnKind.NUMERIC or not math.isfinite(column.offset)):
                raise ValueError(f"the column {column.name[:80]!r} has an offset, but is not numeric, or no number")
        return cls(columns=columns, named=data["named"], decimal=data.get("decimal", "."))

    def frame_of(self, table: Any) -> pd.DataFrame:
        """Return a table as a DataFrame, with the names of these columns if it has none.

        Raises
        ------
        DataError, ColumnTypeError, SchemaError
            See `to_frame`; infinities are not refused, as they may be in columns that are not used.
        """
        return to_frame(table, columns=[column.name for column in self.columns], all_finite=False)

    def code(
        self,
        frame: pd.DataFrame,
        *,
        rows: IntArray | None = None,
        compact: bool = False,
        estimator: str = "cashmere",
        check: Callable[[], object] = lambda: None,
    ) -> CodedTable:
        """Turn a table into numbers.

        Parameters
        ----------
        frame : pandas.DataFrame
            From `frame_of` or `to_frame`. With names, columns may come in any order and further columns
            are ignored; columns dropped in training may be absent.
        rows : (n_rows,) array of int, optional
            Which rows of the frame, in which order; by default all of them. Unlike ``frame.iloc[rows]``, this makes no
            copy of the frame.
        compact : bool
            Whether values are float32, column after column, as large tables are kept: half the memory, and as exact as
            what learners see.
        estimator : str
            Name to show in the error about a wrong number of columns.
        check : callable
            Called before each column; an exception that it raises ends the work.

        Raises
        ------
        SchemaError
            If columns are missing (all are named), their number is wrong (unnamed tables), or a value does not
            fit its column.
        DataError
            If a column that is used holds an infinity.
        """
        shape = (len(frame) if rows is None else len(rows), len(self.value_names))
        values = np.empty(shape, np.float32, "F") if compact else np.empty(shape, np.float64)
        matched = self._match(frame, estimator)
        ends = np.cumsum([len(column.value_names) for column, _ in matched])

        def code_column(number: int) -> tuple[AnyArray | None, int]:
            """Store the values of a column, or return its texts; return how many were not understood."""
            check()
            column, series = matched[number]
            with _failures_of(column.name):
                if column.kind is not ColumnKind.NUMERIC:  # `_numbers` finds those also in texts
                    check_finite(column.name, series)
                if column.kind is ColumnKind.TEXT:
                    text = _text_values(series)
                    return (text if rows is None else text[rows]), 0
                coded, bad = _coded(column, series)
            for part, position in zip(coded.T, range(ends[number] - coded.shape[1], ends[number]), strict=True):
                _place(part, rows, values[:, position])
            return None, bad

        found = _each_column(code_column, len(matched), n_rows=len(frame))
        return CodedTable(
            values=values,
            texts=tuple(text for text, _ in found if text is not None),
            schema=self,
            unseen={column.name: bad for (column, _), (_, bad) in zip(matched, found, strict=True) if bad},
        )

    def _match(self, frame: pd.DataFrame, estimator: str) -> list[tuple[Column, pd.Series[Any]]]:
        if not self.named:
            if frame.shape[1] != len(self.columns):
                raise SchemaError(
                    f"X has {frame.shape[1]} features, but {estimator} is expecting {len(self.columns)} features "
                    "as input."
                )
            known = {column.name for column in self.columns}
            strange = [name for name in frame.columns if name not in known]
            if len(strange) == len(self.columns):
                return [(c, frame.iloc[:, i]) for i, c in enumerate(self.columns) if c.dropped is None]
            if strange:
                names, own = (first_of(each, most=_NAMES_SHOWN) for each in (strange, list(frame.columns)))
                raise SchemaError(
                    f"The table has the columns {own}, but {estimator} has learned from 0 to {len(known) - 1}, so that "
                    f"{names} may be any of these. Give the columns their names in training, or pass an array."
                )
        present = set(frame.columns)
        missing = [column.name for column in self.used if column.name not in present]
        if missing:
            alike = {_spelling(name): name for name in map(str, frame.columns)}
            pairs = ((name, alike.get(_spelling(name))) for name in missing)
            spelt = [f"{name!r} is perhaps {other!r}" for name, other in pairs if other is not None][:_NAMES_SHOWN]
            lacked, own = (first_of(names, most=_NAMES_SHOWN) for names in (missing, list(frame.columns)))
            raise SchemaError(
                f"The table lacks {counted(len(missing), 'column')} it had in training: {lacked}. "
                f"It has: {own}. Add or rename columns" + (f": {', '.join(spelt)}." if spelt else "."),
                column=missing[0],
            )
        return [(column, frame[column.name]) for column in self.used]


def _spelling(name: str) -> str:
    """Return what remains of a name if case, blanks, line breaks and punctuation do not matter."""
    return "".join(letter for letter in name if letter.isalnum()).casefold() or name


def _each_column(work: Callable[[int], _Found], n_columns: int, *, n_rows: int) -> list[_Found]:
    """Return the result of `work` for each column; all cores share long ones, as numpy releases the GIL."""
    if n_rows < _ROWS_FOR_THREADS:
        return [work(number) for number in range(n_columns)]
    with ThreadPoolExecutor(available_cores()) as threads:
        return list(threads.map(work, range(n_columns)))


def _place(coded: FloatArray, rows: IntArray | None, column: FloatArray) -> None:
    """Write the given rows of a coded column to a column of the result, clipped to the range of its type."""
    if column.dtype == np.float32 != coded.dtype:
        with np.errstate(over="ignore"):
            coded = coded.astype(np.float32)
        np.clip(coded, -LARGEST, LARGEST, out=coded)
    if rows is None:
        column[:] = coded
    elif column.flags.c_contiguous and column.dtype == coded.dtype:  # np.take converts no types
        np.take(coded, rows, out=column, mode="clip")  # unlike "raise", writes to the column without a buffer
    else:
        column[:] = coded[rows]


@contextmanager
def _failures_of(name: str) -> Iterator[None]:
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


def _coded(column: Column, series: pd.Series[Any]) -> tuple[FloatArray, int]:
    """Return the value columns of a column other than text, and how many values were not understood."""
    bad = 0
    if column.kind is ColumnKind.NUMERIC:
        coded = _numbers(series, column.name, column.missing_texts, in_seconds=column.in_seconds)[:, None]
        if column.offset:
            coded = np.subtract(coded, column.offset, dtype=np.float64)
    elif column.kind is ColumnKind.BOOLEAN:
        coded = _booleans(series, column.name)[:, None]
    elif column.kind is ColumnKind.DATE:
        dates, bad = _dates(series, column.name, column.zone, column.notation, column.years)
        coded = date_parts(dates, column.date_parts)
    else:
        codes, bad = _category_codes(series, column.categories)
        coded = codes[:, None]
    return coded, bad


def infer_schema(
    frame: pd.DataFrame, *, named: bool = True, calendar: str = "", check: Callable[[], object] = lambda: None
) -> TableSchema:
    """Learn the meaning of the columns of the training table.

    Text columns are read as numbers if every value parses, or every value but a few texts such as "unknown", see
    `Column.missing_texts`; likewise as seconds if they are durations or times of day, see `seconds_of_texts`; as dates
    if 95 % are, see `find_notation`; as text if they have more than 4 words on average and more than half of the values
    differ; else as categories. Missing values and blank strings are ignored. Integers stay numbers. Columns without
    information are dropped, see `Column.dropped`, which may leave none. The result does not depend on the order of the
    rows.

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
        with _failures_of(name):
            return _infer_column(name, series, is_calendar=name == calendar)

    columns: list[Column] = []
    first_with: dict[bytes, str] = {}
    for column, digest in _each_column(infer_column, len(given), n_rows=len(frame)):
        if column.dropped is None:
            original = first_with.setdefault(digest, column.name)
            if original != column.name:
                column = Column(name=column.name, kind=column.kind, dropped=f"duplicate of {original!r}")
        columns.append(column)
    return TableSchema(columns=tuple(columns), named=named, decimal="," if frame.attrs.get("decimal") == "," else ".")


def _infer_column(name: str, series: pd.Series[Any], *, is_calendar: bool = False) -> tuple[Column, bytes]:
    """Return the column and a digest that is equal for equal content."""
    reading = _infer_kind(name, series)
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
            numbers = _numbers(series, name, reading.missing_texts, in_seconds=reading.in_seconds)
        else:
            numbers = _booleans(series, name)
        content = np.add(numbers, 0.0, dtype=np.float64)  # turns -0.0 into 0.0
        missing = np.isnan(content)
        distinct = _few_distinct(content, missing)
        if kind is ColumnKind.NUMERIC and distinct > 1:
            offset = float32_offset(content[~missing])
            lowest, highest = float(np.fmin.reduce(content)), float(np.fmax.reduce(content))
    elif kind is ColumnKind.DATE:
        dates, _ = _dates(series, name, notation=reading.notation)
        content, missing = dates.view(np.int64), np.isnat(dates)
        distinct = _few_distinct(content, missing)
        if isinstance(series.dtype, pd.DatetimeTZDtype) and _is_zone(str(series.dtype.tz)):
            zone = str(series.dtype.tz)
        elif _is_text_in_utc(series):
            zone = "UTC"
        years = _years_of(dates[~missing])
        with_time = bool(np.any(dates[~missing] != dates[~missing].astype("datetime64[D]")))
    else:
        codes, labels = _factorised(series)
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


class _Reading(NamedTuple):
    """How values are understood, see `Column`."""

    kind: ColumnKind
    missing_texts: tuple[str, ...] = ()
    in_seconds: bool = False
    notation: DateNotation = DateNotation.YEAR_FIRST


def are_numbers(texts: pd.Series[str]) -> bool:
    """Return whether texts are read as numbers in training, perhaps with limits and a few texts for missing ones.

    Parameters
    ----------
    texts : Series of str
        Cells of a column, without blanks around them, nothing missing.

    Examples
    --------
    >>> are_numbers(pd.Series([*map(str, range(10)), "<1", "unknown"])), are_numbers(pd.Series(["1", "2", "unknown"]))
    (True, False)
    """
    return _kind_of_texts(texts).kind is ColumnKind.NUMERIC


def _infer_kind(name: str, series: pd.Series[Any]) -> _Reading:
    """Return what values mean."""
    kind = _kind_by_type(name, series)
    if kind is None:
        return _kind_of_texts(series[_present(series)].astype(str).str.strip())
    return _Reading(kind, in_seconds=kind is ColumnKind.NUMERIC and _holds_times(series))


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
    values = series[_present(series)]
    if len(values) == 0:
        return ColumnKind.NUMERIC
    types = set(map(type, values))
    for type_ in types:
        if not issubclass(type_, _SCALARS) or issubclass(type_, (complex, bytes)):
            example = next(value for value in values if type(value) is type_)
            raise ColumnTypeError(
                f"Column {name!r}: argument must be a string or a number, not {type_.__name__!r} (for example "
                f"{_shown(example)}). Expand the objects into columns of plain values, or remove the column.",
                column=name,
            )
    if all(issubclass(type_, (bool, np.bool_)) for type_ in types):
        return ColumnKind.BOOLEAN
    if all(issubclass(type_, (dt.date, np.datetime64, pd.Period)) for type_ in types):
        return ColumnKind.DATE
    if all(issubclass(type_, (numbers.Number, Decimal, np.number, dt.timedelta, dt.time)) for type_ in types):
        return ColumnKind.NUMERIC
    return None


def _kind_of_texts(texts: pd.Series[str]) -> _Reading:
    """Infer what strings mean.

    Each distinct string is examined once, and counts as often as it occurs.
    """
    counts = texts.value_counts()
    distinct = pd.Series(counts.index, dtype=object)
    weight = counts.to_numpy() / counts.sum()
    if set(distinct.str.lower()) <= {"true", "false"}:
        return _Reading(ColumnKind.BOOLEAN)
    parsed, in_seconds = _parse_numbers(distinct), False
    if np.isnan(parsed).all() and not np.isnan(seconds_of_texts(distinct.head(2 * MOST_OTHERS))).all():
        seconds = seconds_of_texts(distinct)
        if are_alike(distinct[~np.isnan(seconds)]):
            parsed, in_seconds = seconds, True
    if not in_seconds:
        parsed = _with_limits(distinct, parsed)
    if not np.isnan(parsed).any():
        return _Reading(ColumnKind.NUMERIC, in_seconds=in_seconds)
    other = ~np.isfinite(parsed)
    are_gaps = other.sum() == 1 or (other.sum() <= MOST_OTHERS and weight[other].sum() <= _OTHERS_SHARE + 1e-12)
    if are_gaps and (~other).sum() >= LEAST_NUMBERS:
        return _Reading(ColumnKind.NUMERIC, tuple(sorted(distinct[other])), in_seconds)
    if (notation := find_notation(distinct, weight)) is not None:
        return _Reading(ColumnKind.DATE, notation=notation)
    words = distinct.str.count(r"\s+").to_numpy(dtype=np.float64) + 1
    if float(words @ weight) > _TEXT_WORDS and len(distinct) > _TEXT_DISTINCT * len(texts):
        return _Reading(ColumnKind.TEXT)
    return _Reading(ColumnKind.CATEGORICAL)


def _with_limits(distinct: pd.Series[str], parsed: Float64) -> Float64:
    """Return numbers with those of limits, if these are few beside plain numbers: `"<5"` and `">=5"` are categories."""
    unread = np.isnan(parsed)
    if not unread.any() or (~unread).sum() < LEAST_NUMBERS:
        return parsed
    beyond = np.full(len(parsed), np.nan)
    beyond[unread] = numbers_beyond(distinct[unread])
    is_limit = ~np.isnan(beyond)
    return np.where(is_limit, beyond, parsed) if 2 * is_limit.sum() <= (~unread).sum() else parsed


def _present(series: pd.Series[Any]) -> BoolArray:
    """Return where values are present; blank strings are missing."""
    present: BoolArray = series.notna().to_numpy(dtype=bool)
    if series.dtype == object or isinstance(series.dtype, pd.StringDtype):
        values = series.to_numpy(dtype=object)
        blank = [isinstance(value, str) and (not value or value.isspace()) for value in values]
        present = present & ~np.array(blank, dtype=bool)
    return present


def _numbers(
    series: pd.Series[Any], name: str, missing_texts: tuple[str, ...] = (), *, in_seconds: bool = False
) -> FloatArray:
    """Return numbers as float64; float32 ones unchanged, which halves the memory to read."""
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
        present = _present(series)
        values = np.full(len(series), np.nan)
        content = series.astype(object)[present]
        if in_seconds or (len(content) and isinstance(content.iloc[0], dt.timedelta)):
            content = content.map(seconds_of)
        content = content.map(lambda value: _as_float(value) if isinstance(value, (Decimal, Fraction)) else value)
        is_date = content.map(lambda value: isinstance(value, (dt.date, complex))).to_numpy(dtype=bool)
        parsed = _parse_numbers(content)
        if in_seconds:
            codes, distinct = pd.factorize(content.map(lambda value: value.strip() if isinstance(value, str) else ""))
            parsed = np.where(np.isnan(parsed), seconds_of_texts(pd.Series(distinct))[codes], parsed)
        unread = np.flatnonzero(np.isnan(parsed) | is_date)
        if not in_seconds and len(unread):
            parsed = parsed.copy()
            parsed[unread] = _beyond_limits(content.iloc[unread], missing_texts)
            unread = np.flatnonzero(np.isnan(parsed) | is_date)
        texts = [value.strip() if isinstance(value, str) else None for value in content.iloc[unread]]
        bad = [i for i, text in zip(unread, texts, strict=True) if text not in missing_texts]
        if bad:
            expected = "durations or times of day such as 1:30:00" if in_seconds else "numbers"
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


def _parse_numbers(content: pd.Series[Any]) -> Float64:
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


def _booleans(series: pd.Series[Any], name: str) -> Float64:
    if pd.api.types.is_bool_dtype(series.dtype) and not isinstance(series.dtype, pd.CategoricalDtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    codes, labels = _factorised(series)
    table = np.array([_TRUTH.get(label.lower(), -1.0) for label in labels] + [np.nan])
    values: Float64 = table[codes]
    if np.any(values == -1.0):
        bad = np.flatnonzero(values == -1.0)
        raise _unfit(name, labels[codes[bad[0]]], "True or False", bad.size)
    return values


def _unfit(name: str, value: object, expected: str, count: int) -> SchemaError:
    how = ", with decimals after a point," if expected == "numbers" and "," in _shown(value) else ""
    return SchemaError(
        f"Column {name!r} must hold {expected} as in training, but {counted(count, 'value')} did not fit, for example "
        f"{_shown(value)!r}. Correct them{how} or replace them by NaN (missing).",
        column=name,
    )


def _shown(value: object) -> str:
    """Return the beginning of a value's text, or its type if it has no text."""
    try:
        return str(value)[:60]
    except Exception:
        return f"a {type(value).__name__}"


def label_text(value: object) -> str:
    """Return the text of a category; equal for 1, 1.0 and "1", which text files do not tell apart."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def other_spelling(label: str, levels: Collection[str]) -> str | None:
    """Return the level that a label spells otherwise, as libraries do; None if there is none.

    Levels are looked up, so many of them should be a set or the keys of a dict.

    Examples
    --------
    >>> other_spelling("True", ("TRUE", "FALSE", "unknown")), other_spelling("1.0", ("1", "2"))
    ('TRUE', '1')
    """
    if label.lower() in ("true", "false"):
        alike = [level for level in levels if level.lower() == label.lower()]
        return alike[0] if len(alike) == 1 else None
    whole = without_zero_decimals(label)
    return whole if whole != label and whole in levels else None


def without_zero_decimals(label: str) -> str:
    """Return the text of a whole number without decimals, which libraries add beside a gap; other texts unchanged.

    Examples
    --------
    >>> without_zero_decimals("-7.00"), without_zero_decimals("1.50"), without_zero_decimals("v1.0")
    ('-7', '1.50', 'v1.0')
    """
    whole = re.fullmatch(r"(-?\d+)\.0+", label)
    return whole[1] if whole else label


def may_merge(objects: AnyArray) -> bool:
    """Return whether objects may be equal with other texts, as True and 1 are: hash tables keep the first of them.

    Examples
    --------
    >>> may_merge(np.array([True, 1, "a"], dtype=object)), may_merge(np.array(["a", None, "b"], dtype=object))
    (True, False)
    """
    return pd.api.types.infer_dtype(objects, skipna=True) in _MIXED


def _factorised(series: pd.Series[Any]) -> tuple[IntArray, list[str]]:
    """Return row codes, -1 where missing, into a list of distinct labels."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        raw, values = series.cat.codes.to_numpy(), series.cat.categories.astype(object).to_numpy()
    else:
        objects = series.to_numpy(dtype=object)
        if may_merge(objects):
            pairs = zip(objects, pd.isna(objects), strict=True)
            objects = np.array([None if gone else label_text(value) for value, gone in pairs], dtype=object)
        raw, values = pd.factorize(objects, use_na_sentinel=True)
    used = np.unique(raw[raw >= 0])
    number_of: dict[str, int] = {}
    table = np.full(len(values) + 1, -1, dtype=np.int64)
    for i in used:
        label = label_text(values[i])
        if label:
            table[i] = number_of.setdefault(label, len(number_of))
    return table[raw], list(number_of)


def _category_codes(series: pd.Series[Any], categories: tuple[str, ...]) -> tuple[Float64, int]:
    """Return codes, NaN where missing or unseen, and the number of unseen values."""
    codes, labels = _factorised(series)
    code_of = {category: float(i) for i, category in enumerate(categories)}
    levels = [label if label in code_of else other_spelling(label, code_of) for label in labels]
    table = np.array([np.nan if level is None else code_of[level] for level in levels] + [np.nan])
    values: Float64 = table[codes]
    return values, int(np.sum(np.isnan(values) & (codes >= 0)))


def _text_values(series: pd.Series[Any]) -> AnyArray:
    values = series.to_numpy(dtype=object)
    texts = np.empty(len(values), dtype=object)
    texts[:] = ["" if gone else str(value) for value, gone in zip(values, pd.isna(values), strict=True)]
    return texts


def read_labels(series: pd.Series[Any], name: str) -> AnyArray:
    """Return the text of each value as a category, so that 1, 1.0 and "1" are equal; ``""`` where it is missing.

    Raises
    ------
    ColumnTypeError
        If objects are not plain values.
    """
    with _failures_of(name):
        _infer_kind(name, series)  # raises an error for other objects
        codes, labels = _factorised(series)
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
    with _failures_of(name):
        kind, missing_texts, in_seconds, notation = _infer_kind(name, series)
        if kind is ColumnKind.NUMERIC and (not in_seconds or series.dtype.kind == "m"):  # times of day begin again
            return _numbers(series, name, missing_texts)
        if kind is ColumnKind.DATE:
            if isinstance(series.dtype, pd.DatetimeTZDtype):
                series = series.dt.tz_convert("UTC")
            dates, n_unread = _dates(series, name, notation=notation, in_utc=True)
            if n_unread == 0:
                return dates
    if isinstance(series.dtype, pd.CategoricalDtype):
        raise ColumnTypeError(
            f"Column {name!r} cannot order rows in time: it holds categories. Convert it to numbers, dates or text.",
            column=name,
        )
    texts = series[_present(series)].astype(str).str.strip()
    unread = texts[np.isnat(read_dates(texts, notation))]
    written = texts if unread.empty else unread
    are_days = bool(written.str.fullmatch(r"\d{1,2}[-/.]\d{1,2}[-/.](?:\d\d|\d{4})").all())
    raise ColumnTypeError(
        f"Column {name!r} cannot order rows in time: expected numbers or dates such as 2024-12-31; "
        f"{counted(len(written), 'value')} did not fit, for example {_shown(written.iloc[0])!r}"
        + (", where it is not clear whether day or month comes first. " if are_days else ". ")
        + "Write them as year, month and day, for instance with pandas.to_datetime.",
        column=name,
    )


def _dates(
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
    present = _present(series)
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
        f"month change places, for example in {_shown(example)!r}. Write the dates as in training, or as year, month "
        "and day, for instance with pandas.to_datetime.",
        column=name,
    )


def _is_text_in_utc(series: pd.Series[Any]) -> bool:
    """Return whether all dates are texts that end in an offset of zero."""
    if not (pd.api.types.is_object_dtype(series.dtype) or pd.api.types.is_string_dtype(series.dtype)):
        return False
    for part in (series.head(_FIRST_DATES), series):  # the first cells tell that most columns are not
        texts = part[_present(part)].astype(object).drop_duplicates()
        if len(texts) and not (pd.api.types.infer_dtype(texts) == "string" and are_in_utc(texts.str.strip()).all()):
            return False
    return True


def _is_zone(name: str) -> bool:
    """Return whether there is a time zone of this name, and not only an offset."""
    try:
        return _ZONE.fullmatch(name) is not None and ZoneInfo(name).key == name
    except (OSError, ValueError, KeyError):
        return False


def _date_text(value: object, place: dt.tzinfo | None) -> str:
    """Return the text of a date without an offset, of its wall time at a place; only texts keep their offset."""
    if isinstance(value, pd.Period):
        value = value.to_timestamp()
    if isinstance(value, dt.datetime):
        if place is not None and value.utcoffset() is not None:
            value = value.astimezone(place)
        value = value.replace(tzinfo=None)
    return str(value)
