"""Signs that columns of text, which are read as categories, hold numbers or dates in another notation."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cashmere.base.text import columns_hold
from cashmere.data.decimal_commas import DECIMAL_COMMA
from cashmere.data.schema import ColumnKind, TableSchema

_THOUSANDS = r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?"
_NUMBER = rf"(?:{DECIMAL_COMMA}|{_THOUSANDS}|[+-]?[0-9]*\.?[0-9]+)"
_SIGN = r"[%€$£¥]"
_DAY = r"[0-9]{1,2}"

_NOTATIONS = (
    (
        _NUMBER,
        ",",
        "numbers with commas",
        "read the file with pandas.read_csv(..., decimal=','), or thousands=',' if they separate thousands",
    ),
    (rf"{_SIGN}?\s*{_NUMBER}\s*{_SIGN}?", _SIGN, "numbers with % or a currency sign", "remove the signs"),
    (
        rf"(?:{_DAY}\.{_DAY}\.|{_DAY}/{_DAY}/|{_DAY}-{_DAY}-)[0-9]{{4}}(?:[ T]{_DAY}:[0-9:]+)?",
        "",
        "dates",
        "convert them with pandas.to_datetime(..., dayfirst=True), or dayfirst=False if the month comes first",
    ),
)
"""What every text matches, what some contain, what they are, and what to do."""

_FIRST_CELLS = 100


def kind_hint(frame: pd.DataFrame, schema: TableSchema) -> str | None:
    """Return a warning about columns of text that hold numbers or dates in another notation; None if there are none.

    Parameters
    ----------
    frame : pandas.DataFrame
        The training table.
    schema : TableSchema
        As it is read. Only columns that it reads as categories are examined, and only texts: pandas categories are
        meant to be categories.

    Examples
    --------
    >>> from cashmere.data.schema import infer_schema
    >>> table = pd.DataFrame({"price": ["3,14", "2,5", "10"]})
    >>> kind_hint(table, infer_schema(table)).partition(":")[0]
    "Column 'price' holds numbers with commas, such as '3,14', which are read as categories"
    """
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for position, column in enumerate(schema.columns):
        is_used = column.dropped is None or column.dropped.startswith("identifier")
        if not is_used or column.kind is not ColumnKind.CATEGORICAL:
            continue
        if (notation := other_notation(frame.iloc[:, position])) is not None:
            what, remedy, example = notation
            found.setdefault((what, remedy), []).append((column.name, example))
    sentences = [
        f"{columns_hold([name for name, _ in columns])} {what}, such as {columns[0][1]!r}, which are read as "
        f"categories: {remedy}."
        for (what, remedy), columns in found.items()
    ]
    return " ".join(sentences) or None


def other_notation(column: pd.Series[Any]) -> tuple[str, str, str] | None:
    """Return what all texts of a column are, what to do, and an example; None if they are no numbers or dates."""
    column = column.dropna()
    first = column.head(_FIRST_CELLS)
    if pd.api.types.infer_dtype(first) != "string":
        return None
    for pattern, mark, what, remedy in _NOTATIONS:
        if not _distinct(first).str.fullmatch(pattern).all():
            continue
        texts = _distinct(column)
        shows = texts.str.contains(mark)
        if texts.str.fullmatch(pattern).all() and shows.any():
            return what, remedy, str(texts[shows].iloc[0])[:60]
    return None


def _distinct(column: pd.Series[Any]) -> pd.Series[str]:
    texts = pd.Series(column.unique(), dtype=object).astype(str).str.strip()
    return texts[texts != ""]
