"""The columns of a table as inputs of a graph, and the matrices that encoders make from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cashmere.data.calendar import DATE_PARTS
from cashmere.data.column import ColumnKind
from cashmere.data.column_values import LARGEST
from cashmere.data.preparation import FoldEncoder
from cashmere.data.schema import TableSchema
from cashmere.data.task import Encoding
from cashmere.export.graph import Graph, Value
from cashmere.export.inputs import check_columns_convert, input_type

_SECONDS_OF_A_DAY = 86_400.0
_DAYS_OF_AN_ERA = 146_097
"""Days in 400 years."""

_DAYS_BEFORE_1970 = 719_468
"""Days from 1 March of the year 0 to 1970."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedColumns:
    """A table as the schema codes it.

    Attributes
    ----------
    numbers : Value or None
        Numbers, booleans and parts of dates, ``(n_rows, n_numbers)``, float32; NaN where missing.
    codes : tuple of Value
        Level number of each categorical column, ``(n_rows,)``; the number of levels if the value is missing or unseen.
    """

    numbers: Value | None
    codes: tuple[Value, ...]


def coded_columns(graph: Graph, schema: TableSchema) -> CodedColumns:
    """Declare an input for each used column and code it.

    Raises
    ------
    ConversionError
        As `check_columns_convert`.
    """
    check_columns_convert(schema)
    inputs = [(column, graph.input(column.name, input_type(column))) for column in schema.used]
    numbers, codes = [], []
    for column, value in inputs:
        if column.kind is ColumnKind.CATEGORICAL:
            codes.append(graph.codes(graph.node("Squeeze", value, np.array([1])), column.categories))
        elif column.kind is ColumnKind.DATE:
            numbers.append(_date_parts(graph, value, column.date_parts))
        elif column.offset:
            numbers.append((value - column.offset).cast(np.float32))
        else:
            numbers.append(value)
    return CodedColumns(numbers=_finite(graph, numbers) if numbers else None, codes=tuple(codes))


def _finite(graph: Graph, parts: list[Value]) -> Value:
    """Return columns side by side; numbers too large for float32 become the largest."""
    numbers = graph.side_by_side(*parts)
    numbers = graph.where(numbers > LARGEST, LARGEST, numbers)
    return graph.where(numbers < -LARGEST, -LARGEST, numbers)


def _date_parts(graph: Graph, seconds: Value, names: tuple[str, ...]) -> Value:
    """Turn seconds since 1970 into parts of dates, see `cashmere.data.calendar.date_parts`, as float32.

    Notes
    -----
    Years begin in March here, so that a leap day is their last day, in eras of 400 years (Hinnant, chrono-compatible
    low-level date algorithms, https://howardhinnant.github.io/date_algorithms.html#civil_from_days).
    """
    is_missing = seconds.is_missing()
    filled = graph.where(is_missing, 0.0, seconds)
    days = filled / _SECONDS_OF_A_DAY
    whole_days = graph.node("Floor", days)
    era, day_of_era = _divided(whole_days + _DAYS_BEFORE_1970, _DAYS_OF_AN_ERA)
    leap_days = _quotient(day_of_era, 1460) - _quotient(day_of_era, 36_524) + _quotient(day_of_era, 146_096)
    year_of_era = _quotient(day_of_era - leap_days, 365)
    until_year = year_of_era * 365.0 + _quotient(year_of_era, 4) - _quotient(year_of_era, 100)
    day_of_year = day_of_era - until_year
    month_from_march = _quotient(day_of_year * 5.0 + 2.0, 153)
    day = day_of_year - _quotient(month_from_march * 153.0 + 2.0, 5) + 1.0
    is_next_year = (month_from_march > 9.5).cast(np.float64)
    month = month_from_march + 3.0 - is_next_year * 12.0
    year = year_of_era + era * 400.0 + is_next_year
    weekday = _divided(whole_days + 3.0, 7)[1]  # 1970 began on a Thursday
    hour = _divided(_quotient(filled, 3600), 24)[1]
    parts = dict(zip(DATE_PARTS, (year, month, day, weekday, days, hour), strict=True))
    return graph.where(is_missing, np.nan, graph.side_by_side(*(parts[name] for name in names))).cast(np.float32)


def _quotient(value: Value, divisor: int) -> Value:
    """Return the rounded-down quotient of whole numbers, stored as float64."""
    return value.graph.node("Floor", value / divisor)


def _divided(value: Value, divisor: int) -> tuple[Value, Value]:
    """Return quotient and remainder."""
    quotient = _quotient(value, divisor)
    return quotient, value - quotient * divisor


def encoded(graph: Graph, encoder: FoldEncoder, columns: CodedColumns) -> Value:
    """Return the matrix that an encoder makes, ``(n_rows, n_outputs)``, float32."""
    parts: list[Value] = []
    if (numbers := columns.numbers) is not None:
        is_missing = numbers.is_missing()
        keeps_gaps = encoder.encoding == Encoding.ORDINAL
        parts.append(numbers if keeps_gaps else graph.where(is_missing, encoder._medians, numbers))
        if len(encoder._flagged):
            parts.append(is_missing.columns(encoder._flagged).cast(np.float32))
    parts += [
        graph.node("Gather", table, codes, axis=0)
        for table, codes in zip(encoder._tables, columns.codes, strict=True)
        if table.shape[1]
    ]
    # As in the encoder, a column of zeros replaces columns without information.
    return graph.side_by_side(*parts) if parts else graph.rows_of(np.zeros(1, dtype=np.float32), columns.codes[0])
