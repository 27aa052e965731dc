"""Numbers of new rows that are unlike those in training: of another unit, or codes such as 999 of missing values."""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import BoolArray, FloatArray
from cashmere.base.text import first_of
from cashmere.data.column import ColumnKind
from cashmere.data.column_values import LARGEST
from cashmere.data.schema import CodedTable

_CODES = (-1.0, -9.0, *(sign * (10.0**digits - 1) for digits in range(2, 8) for sign in (-1, 1)))
"""What often stands for missing values: -1, -9, and two to seven nines; float32 merges longer ones with others."""

_LEAST_REPEATED = 3
"""Cells with a code, as in training."""

_LEAST_FAR, _FAR_SHARE = 5, 0.02
"""Fewer numbers may be the tail of a column."""

_CODE_GAP = 0.1
"""Least distance of a positive code from the range in training, as a share of its width."""

_SHOWN, _SAMPLED = 3, 1000


def far_values_hint(coded: CodedTable) -> str | None:
    """Return a warning about numbers that are unlike those in training; None if there are none.

    Parameters
    ----------
    coded : CodedTable
        The rows to predict. Columns whose range in training is not known are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> from cashmere.data.inference import infer_schema
    >>> schema = infer_schema(pd.DataFrame({"age": range(18, 90)}))
    >>> far_values_hint(schema.code(pd.DataFrame({"age": [30, 40, 999, 50, 999, 999]}))).partition(". ")[0]
    "3 of 6 values of column 'age' are unlike those in training (18 to 89), such as 999"
    """
    sentences: list[str] = []
    others: list[str] = []
    for position, column in enumerate(coded.schema.value_columns):
        low, high, values = column.lowest, column.highest, coded.values[:, position]
        if column.kind is not ColumnKind.NUMERIC or low is None or high is None:
            continue
        odd = _unlike_training(values, low - column.offset, high - column.offset, has_codes=not column.offset)
        if odd is None:
            continue
        if len(sentences) == _SHOWN:
            others.append(column.name)
            continue
        numbers, counts = np.unique(values[odd][:_SAMPLED], return_counts=True)
        example = float(numbers[counts.argmax()]) + column.offset
        n_odd, n_values = int(odd.sum()), int((~np.isnan(values)).sum())
        sentences.append(
            f"{n_odd:,} of {n_values:,} values of column {column.name!r} are unlike those in training "
            f"({_shown(low)} to {_shown(high)}), such as {_shown(example)}."
        )
    if not sentences:
        return None
    if others:
        sentences.append(f"So are values of {first_of(others, most=_SHOWN)}.")
    return " ".join(
        [*sentences, "Convert them if their unit is another one; leave cells empty if they stand for missing values."]
    )


def _unlike_training(values: FloatArray, low: float, high: float, *, has_codes: bool) -> BoolArray | None:
    """Return which numbers are farther from the range in training than it is wide, or codes; None if too few are."""
    if max(abs(low), abs(high)) >= LARGEST:  # coded values are clipped to it
        return None
    least, most = float(np.fmin.reduce(values)), float(np.fmax.reduce(values))
    if not (least < low or most > high):  # in most columns; NaN if there is no value
        return None
    width = high - low
    is_far: BoolArray = (values < max(low - width, -LARGEST)) | (values > min(high + width, LARGEST))
    is_code = np.zeros(len(values), dtype=bool)
    if has_codes:
        if least in _CODES and (least < 0 <= low or least < low - width):
            is_code |= _repeated(values, least, values < low)
        if most in _CODES and most > high + _CODE_GAP * width:
            is_code |= _repeated(values, most, values > high)
    n_present = len(values) - np.isnan(values).sum()
    if is_far.sum() < max(_LEAST_FAR, _FAR_SHARE * n_present):
        is_far &= is_code
    odd: BoolArray = is_far | is_code
    return odd if odd.any() else None


def _repeated(values: FloatArray, code: float, outside: BoolArray) -> BoolArray:
    """Return where a code is, if it is in several cells and in most of those outside the range; else nowhere."""
    is_code: BoolArray = values == code
    n_cells = int(is_code.sum())
    return is_code if n_cells >= _LEAST_REPEATED and 2 * n_cells >= outside.sum() else np.zeros_like(is_code)


def _shown(number: float) -> str:
    return f"{number:.6g}" if abs(number) < 1e6 else f"{number:.10g}"  # 1700000000 is clearer than 1.7e+09
