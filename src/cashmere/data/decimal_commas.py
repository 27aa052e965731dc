"""Numbers with a decimal comma, as many countries write them: 3,14 or 1.234,5."""

from __future__ import annotations

import re
from collections.abc import Collection
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray, Float64
from cashmere.data.column_kinds import MOST_OTHERS, are_numbers
from cashmere.data.limits import LIMIT, PLAIN_NUMBER

DECIMAL_COMMA = r"[+-]?(?:(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+)(?:,[0-9]+)?|,[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A number in which a comma, if there is one, comes before the decimals, and points separate thousands."""

_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")
"""A whole number whose commas might just as well separate thousands."""

_NUMBER, _LIMIT_SIGN = re.compile(rf"\s*{DECIMAL_COMMA}\s*"), re.compile(r"^\s*(?:[<>]=?|[≤≥])\s*|\s+$")

_POINT_THOUSANDS = r"[+-]?(?:[1-9][0-9]{0,2}(?:\.[0-9]{3})+|[0-9]{1,3})"
"""A whole number in which points separate thousands, if it has so many."""

_NUMBER_OR_LIMIT = rf"^(?P<limit>(?:[<>]=?|[≤≥])\s*)?(?P<number>{DECIMAL_COMMA})$"

_WITH_POINT = rf"{LIMIT}|{PLAIN_NUMBER}"
"""What in a column with decimal commas leaves open what points mean, unless it is a number with a decimal comma."""

_MILLION, _ROUNDING = 1e6, 1e-6

_FIRST_CELLS = 1000
"""Enough to tell that most columns hold something else."""


def decimal_comma_columns(
    frame: pd.DataFrame, *, expected: bool = False, numeric: Collection[int] | None = None
) -> list[int]:
    """Find columns whose first texts are numbers, some with a decimal comma, but for a few others.

    Parameters
    ----------
    frame : pandas.DataFrame
        A workbook, or a table from a text file whose cells are not separated by commas.
    expected : bool
        Whether commas come before decimals unless something else is certain, as in the table of a model.
    numeric : collection of int, optional
        The columns that are numbers in a model; without a model, those that training reads as such, see `are_numbers`.
        Only they may have limits and other texts beside the numbers.

    Returns
    -------
    list of int
        Their positions. If every comma comes before exactly three digits (``1,234``), it might just as well separate
        thousands, and there are none, unless expected: one other comma in the table is needed to know what commas mean
        in it.

    Examples
    --------
    >>> frame = pd.DataFrame({"price": ["3,14", "1.234,5"], "size": ["1,250", "7"], "digits": ["1,2,3", "4,5"]})
    >>> decimal_comma_columns(frame), decimal_comma_columns(frame[["size"]])
    ([0, 1], [])
    """
    found = {}
    for i in range(frame.shape[1]):
        texts = texts_among_numbers(frame.iloc[:, i])
        if texts is None or not _begins_with_numbers(texts) or not texts.str.contains(",", regex=False, na=False).any():
            continue
        first = texts.dropna().head(_FIRST_CELLS).str.strip()
        if first.str.fullmatch(DECIMAL_COMMA).all() or (
            with_decimal_points(frame.iloc[:, i], is_numeric=None if numeric is None else i in numeric) is not None
        ):
            found[i] = texts
    if expected:
        return list(found)
    return list(found) if any(map(_has_decimals, found.values())) else []


def _begins_with_numbers(texts: pd.Series[Any]) -> bool:
    """Return whether the first texts are numbers or limits, but for a few others."""
    first = pd.Series(texts.dropna().head(_FIRST_CELLS).str.strip().unique(), dtype=object)
    return bool((~first.str.fullmatch(_NUMBER_OR_LIMIT)).sum() <= MOST_OTHERS)


def _has_decimals(texts: pd.Series[Any]) -> bool:
    """Return whether any comma cannot separate thousands."""
    numbers = (_LIMIT_SIGN.sub("", text) for text in texts.dropna() if "," in text)
    return any(_NUMBER.fullmatch(number) and not _THOUSANDS.fullmatch(number) for number in numbers)


def texts_among_numbers(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """Return the texts of a column, others missing; None if it has no text, or anything but texts and numbers."""
    if not (pd.api.types.is_object_dtype(column.dtype) or pd.api.types.is_string_dtype(column.dtype)):
        return None
    if pd.api.types.infer_dtype(column, skipna=True) == "string":
        return column
    is_text = column.map(lambda cell: isinstance(cell, str)).astype(bool)
    others = column[~is_text].dropna()
    if not is_text.any() or not all(isinstance(cell, Real) and not isinstance(cell, bool) for cell in others):
        return None
    return column.astype(object).where(is_text)


def separates_thousands(column: pd.Series[Any]) -> bool:
    """Return whether points separate thousands in a column of written whole numbers, if commas come before decimals.

    Parameters
    ----------
    column : pandas.Series
        Texts, or missing, of a table in which other columns have decimal commas. There may be limits and a few others.

    Examples
    --------
    >>> texts = ["1.500", "999"], ["1.500", "<999", "k.A."], ["1.5", "999"], ["999", "7"]
    >>> [separates_thousands(pd.Series(each)) for each in texts]
    [True, True, False, False]
    """
    if not _begins_with_numbers(column):
        return False
    texts = pd.Series(column.dropna().str.strip().unique(), dtype=object)
    numbers = texts.str.extract(_NUMBER_OR_LIMIT)["number"]
    others = texts[numbers.isna()]
    numbers = numbers.dropna()
    if others.str.fullmatch(_WITH_POINT).any() or not numbers.str.contains(".", regex=False).any():
        return False
    return bool(numbers.str.fullmatch(_POINT_THOUSANDS).all())


def may_separate_thousands(values: Float64) -> bool:
    """Return whether numbers could be whole ones in which a point before three digits was read as a decimal point.

    Parameters
    ----------
    values : (n_rows,) array
        Numbers as they were read, or NaN.

    Examples
    --------
    >>> columns = [1.017, 875, 3.38], [1.0175, 875], [1.017, 3.38], [1.0, 875]
    >>> [may_separate_thousands(np.array(each)) for each in columns]
    [True, False, False, False]
    """
    values = values[~np.isnan(values)]
    thousandths = np.abs(values) * 1000
    are_whole = values == np.rint(values)
    if are_whole.all() or not are_whole.any() or thousandths.max() >= _MILLION:
        return False
    return bool((np.abs(thousandths - np.rint(thousandths)) < _ROUNDING).all())


def shows_point_thousands(column: pd.Series[Any]) -> str | None:
    """Return a number in which a point probably separates thousands, although it was read as a decimal point, or None.

    Three digits follow each point, some of them end in 0, and numbers without a point have at most three digits.
    Numbers rounded to three decimals either have them in all rows, or are written without a 0 at the end.

    Parameters
    ----------
    column : pandas.Series
        Written numbers, or missing.

    Examples
    --------
    >>> texts = ["1.017", "875", "3.380"], ["1.017", "875.000", "3.380"], ["1.017", "875", "3.38"]
    >>> [shows_point_thousands(pd.Series(each)) for each in texts]
    ['3.380', None, None]
    """
    texts = pd.Series(column.dropna().str.strip().unique(), dtype=object)
    have_point = texts.str.contains(".", regex=False)
    if have_point.all() or not texts.str.fullmatch(_POINT_THOUSANDS).all():
        return None
    telling = texts[have_point & texts.str.endswith("0")]
    return None if telling.empty else str(telling.iloc[0])


def has_decimal_points(column: pd.Series[Any]) -> bool:
    """Return whether a column of written numbers has points that cannot separate thousands.

    Parameters
    ----------
    column : pandas.Series
        Texts, or missing.

    Examples
    --------
    >>> [has_decimal_points(pd.Series(texts)) for texts in (["1.5", "999"], ["1.500", "999"], ["0.125"], ["7"])]
    [True, False, True, False]
    """
    texts = column.dropna().str.strip()
    texts = texts[texts.str.contains(".", regex=False)]
    return not texts.str.fullmatch(_POINT_THOUSANDS).all()


def with_decimal_points(column: pd.Series[Any], *, is_numeric: bool | None = None) -> pd.Series[Any] | None:
    """Return a column of numbers with decimal commas, and points between thousands, as training reads it.

    Parameters
    ----------
    column : pandas.Series
        Texts, perhaps among numbers, or missing.
    is_numeric : bool, optional
        Whether the column is numeric in a model. Without a model, it is to be numeric in training, see `are_numbers`.

    Returns
    -------
    pandas.Series or None
        Numbers; or, if there are limits or other texts, these and texts of numbers, with a decimal point. None if it is
        not numeric, or if numbers have decimal points already.

    Examples
    --------
    >>> with_decimal_points(pd.Series(["1.234,5", "7"])).tolist()
    [1234.5, 7.0]
    >>> with_decimal_points(pd.Series(["1.234,5", "<0,5", "k.A."]), is_numeric=True).tolist()
    ['1234.5', '<0.5', 'k.A.']
    """
    texts = texts_among_numbers(column)
    if texts is None:
        return None
    codes, distinct = pd.factorize(texts)
    written = pd.Series(distinct, dtype=object).str.strip()
    parts = written.str.extract(_NUMBER_OR_LIMIT)
    are_others = parts["number"].isna()
    if written[are_others].str.fullmatch(_WITH_POINT).any():
        return None
    numbers = parts["number"].str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    is_plain = not are_others.any() and not parts["limit"].notna().any()
    if is_plain:
        values: AnyArray = pd.to_numeric(numbers).to_numpy(dtype="float64")
    else:
        values = written.where(are_others, parts["limit"].fillna("") + numbers).to_numpy(dtype=object)
    read = column.astype(object)
    present = codes >= 0
    read[present] = values[codes[present]]
    if is_plain:
        return pd.to_numeric(read).astype("float64")
    if is_numeric is None:
        cells = read.dropna().astype(str)
        is_numeric = are_numbers(cells[cells != ""])
    return read if is_numeric else None
