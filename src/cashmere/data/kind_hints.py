"""Signs that columns of text, which are read as categories, hold numbers or dates."""

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
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_ISO_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_OTHER_DAY = (
    rf"{_DAY}\.{_DAY}\.[0-9]{{4}}|{_DAY}/{_DAY}/[0-9]{{4}}|{_DAY}-{_DAY}-[0-9]{{4}}|[0-9]{{4}}/{_DAY}/{_DAY}"
    rf"|{_DAY}[ -]{_MONTH}[ -][0-9]{{4}}|{_MONTH} {_DAY},? [0-9]{{4}}"
)

_NOTATIONS = (
    (
        _NUMBER,
        ",",
        "numbers with commas",
        "read the file with pandas.read_csv(..., decimal=','), or thousands=',' if they separate thousands",
    ),
    (rf"{_SIGN}?\s*{_NUMBER}\s*{_SIGN}?", _SIGN, "numbers with % or a currency sign", "remove the signs"),
    (
        rf"(?:{_ISO_DAY}|{_OTHER_DAY})(?:[ T]{_DAY}:[0-9:]+)?",
        _OTHER_DAY,
        "dates",
        "convert them with pandas.to_datetime(..., dayfirst=True), or dayfirst=False if the month comes first",
    ),
)
"""What every text matches, what some contain, what they are, and what to do."""

_PLAIN_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_LEAST_NUMBERS, _MOST_OTHERS = 10, 5
"""Different numbers, and different other texts, of a column of numbers in which some cells say that there is none."""

_FIRST_CELLS = 100


def kind_hint(frame: pd.DataFrame, schema: TableSchema) -> str | None:
    """Return a warning about columns of text that hold numbers or dates; None if there are none.

    Parameters
    ----------
    frame : pandas.DataFrame
        The training table.
    schema : TableSchema
        As it is read. Only columns that it reads as categories are examined, except pandas categories, which are meant
        to be categories.

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
    """Return what the texts of a column are, what to do, and an example; None if they are no numbers or dates."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return None
    column = column.dropna()
    first = _distinct(column.head(_FIRST_CELLS))
    for pattern, mark, what, remedy in _NOTATIONS:
        if not first.str.fullmatch(pattern).all():
            continue
        texts = _distinct(column)
        shows = texts.str.contains(mark)
        if texts.str.fullmatch(pattern).all() and shows.any():
            return what, remedy, texts[shows].iloc[0][:60]
    if 2 * first.str.fullmatch(_PLAIN_NUMBER).sum() > len(first):
        texts = _distinct(column)
        others = texts[~texts.str.fullmatch(_PLAIN_NUMBER)]
        if len(texts) - len(others) >= _LEAST_NUMBERS and 0 < len(others) <= _MOST_OTHERS:
            return "numbers and a few other texts", "remove these texts", others.iloc[0][:60]
    return None


def _distinct(column: pd.Series[Any]) -> pd.Series[str]:
    texts = pd.Series(column.unique(), dtype=object).astype(str).str.strip()
    return texts[texts != ""]
