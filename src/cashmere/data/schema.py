"""How the columns of a table become numbers and texts: what a model has learned of them, stored as JSON."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar

import numpy as np
import pandas as pd
from msgspec import Meta

from cashmere.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from cashmere.base.cores import available_cores
from cashmere.base.json_files import checked
from cashmere.base.text import counted, first_of
from cashmere.data.amounts import Amounts, StoredAmounts
from cashmere.data.calendar import DATE_PARTS
from cashmere.data.column import ZONE, Column, ColumnKind
from cashmere.data.column_values import LARGEST, coded_values, failures_of, texts_of
from cashmere.data.dates import DateNotation
from cashmere.data.frames import check_finite, to_frame
from cashmere.data.texts import PackedTexts
from cashmere.exceptions import SchemaError

_ROWS_FOR_THREADS = 100_000
"""Shorter columns take too little time for threads to help."""

_NAMES_SHOWN = 20
"""Most columns named in an error."""

_Found = TypeVar("_Found")


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
    amounts: NotRequired[StoredAmounts]
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
            if column.amounts is not None:
                entry["amounts"] = column.amounts.to_json()
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
                amounts=Amounts.from_json(entry["amounts"]) if "amounts" in entry else None,
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
            if column.zone and (column.kind is not ColumnKind.DATE or not ZONE.fullmatch(column.zone)):
                raise ValueError(f"the column {column.name[:80]!r} has a time zone, but no dates, or it is no name")
            if column.missing_texts and column.kind is not ColumnKind.NUMERIC:
                raise ValueError(f"the column {column.name[:80]!r} has texts for missing numbers, but is not numeric")
            if column.in_seconds and column.kind is not ColumnKind.NUMERIC:
                raise ValueError(f"the column {column.name[:80]!r} is in seconds, but is not numeric")
            if column.amounts is not None and (column.kind is not ColumnKind.NUMERIC or column.in_seconds):
                raise ValueError(f"the column {column.name[:80]!r} has amounts, but is not numeric, or is in seconds")
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
            with failures_of(column.name):
                if column.kind is not ColumnKind.NUMERIC:  # `numbers_of` finds those also in texts
                    check_finite(column.name, series)
                if column.kind is ColumnKind.TEXT:
                    text = texts_of(series)
                    return (text if rows is None else text[rows]), 0
                coded, bad = coded_values(column, series)
            for part, position in zip(coded.T, range(ends[number] - coded.shape[1], ends[number]), strict=True):
                _place(part, rows, values[:, position])
            return None, bad

        found = each_column(code_column, len(matched), n_rows=len(frame))
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


def each_column(work: Callable[[int], _Found], n_columns: int, *, n_rows: int) -> list[_Found]:
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
