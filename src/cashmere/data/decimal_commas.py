"""Numbers with a decimal comma, as many countries write them: 3,14 or 1.234,5."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

DECIMAL_COMMA = r"[+-]?(?:(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+)(?:,[0-9]+)?|,[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A number in which a comma, if there is one, comes before the decimals, and points separate thousands."""

_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")
"""A whole number whose commas might just as well separate thousands."""

_POINT_THOUSANDS = r"[+-]?(?:[1-9][0-9]{0,2}(?:\.[0-9]{3})+|[0-9]{1,3})"
"""A whole number in which points separate thousands, if it has so many."""

_FIRST_CELLS = 1000
"""Enough to tell that most columns hold something else."""


def decimal_comma_columns(frame: pd.DataFrame, *, expected: bool = False) -> list[int]:
    """Find columns of text whose first cells are numbers, some with a decimal comma.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table from a text file whose cells are not separated by commas.
    expected : bool
        Whether commas come before decimals unless something else is certain, as in the table of a model.

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
    found = [i for i in range(frame.shape[1]) if _begins_with_numbers(frame.iloc[:, i])]
    if expected:
        return found
    cells = (cell.strip() for i in found for cell in frame.iloc[:, i].dropna() if "," in cell)
    return found if any(not _THOUSANDS.fullmatch(cell) for cell in cells) else []


def _begins_with_numbers(column: pd.Series[Any]) -> bool:
    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return False
    texts = column.dropna()
    first = texts.head(_FIRST_CELLS).str.strip()
    return bool(first.str.fullmatch(DECIMAL_COMMA).all()) and any("," in text for text in texts)


def separates_thousands(column: pd.Series[Any]) -> bool:
    """Return whether points separate thousands in a column of written whole numbers, if commas come before decimals.

    Parameters
    ----------
    column : pandas.Series
        Texts, or missing, of a table in which other columns have decimal commas.

    Examples
    --------
    >>> [separates_thousands(pd.Series(texts)) for texts in (["1.500", "999"], ["1.5", "999"], ["999", "7"])]
    [True, False, False]
    """
    texts = column.dropna().str.strip()
    first = texts.head(_FIRST_CELLS)
    if not first.str.fullmatch(_POINT_THOUSANDS).all() or not texts.str.contains(".", regex=False).any():
        return False
    return bool(texts.str.fullmatch(_POINT_THOUSANDS).all())


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


def without_thousands(column: pd.Series[Any]) -> pd.Series[float] | None:
    """Return the numbers of a column of text with decimal commas and points between thousands.

    Parameters
    ----------
    column : pandas.Series
        Texts, or missing.

    Returns
    -------
    pandas.Series or None
        None if a text is anything else.
    """
    texts = column.dropna().str.strip()
    if not texts.str.fullmatch(DECIMAL_COMMA).all():
        return None
    plain = texts.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    return pd.to_numeric(plain).astype("float64").reindex(column.index)
