"""Signs that columns of text hold numbers or dates that are not read as such, or only in part."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.text import columns_hold, counted
from cashmere.data.amounts import CURRENCY_CODE, GAP
from cashmere.data.column import Column, ColumnKind
from cashmere.data.column_kinds import LEAST_NUMBERS, MOST_OTHERS
from cashmere.data.dates import have_two_digits, read_dates
from cashmere.data.decimal_commas import DECIMAL_COMMA
from cashmere.data.limits import LIMIT, PLAIN_NUMBER
from cashmere.data.schema import TableSchema

_THOUSANDS = r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?"
_NUMBER = rf"(?:{DECIMAL_COMMA}|{_THOUSANDS}|[+-]?[0-9]*\.?[0-9]+)"
_SIGN = r"[%€$£¥]"
_WITH_GAPS = rf"[+-]?[1-9][0-9]{{0,2}}(?:{GAP}[0-9]{{3}})+(?:[.,][0-9]+)?"
_WITH_POINTS = r"[+-]?[0-9]{1,3}(?:\.[0-9]{3})*(?:,[0-9]+)?"
_DAY = r"[0-9]{1,2}"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_ISO_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_OTHER_DAY = (
    rf"{_DAY}\.{_DAY}\.[0-9]{{4}}|{_DAY}/{_DAY}/[0-9]{{4}}|{_DAY}-{_DAY}-[0-9]{{4}}|[0-9]{{4}}/{_DAY}/{_DAY}"
    rf"|{_DAY}[ -]{_MONTH}[ -][0-9]{{4}}|{_MONTH} {_DAY},? [0-9]{{4}}"
)
_NUMBERS_OF_DAY = r"(?:[0-9]{2}\MARK(?:0[1-9]|1[0-2])|(?:0[1-9]|1[0-2])\MARK[0-3][0-9])\MARK[0-9]{2}"
_SHORT_DAY = "|".join(_NUMBERS_OF_DAY.replace("MARK", mark) for mark in "./-") + rf"|{_DAY}/{_DAY}/[0-9]{{2}}"
"""Days with years of two digits; of longer numbers, with month and day, as versions have fewer digits."""

_NOTATIONS = (
    (
        rf"{_WITH_POINTS}|[+-]?[0-9]+,[0-9]+|--?",
        r"\.[0-9]{3}[.,]",
        "numbers with commas, and points between thousands",
        "read the file with pandas.read_csv(..., decimal=',', thousands='.'), and na_values=['-'] if there are dashes",
    ),
    (
        _NUMBER,
        ",",
        "numbers with commas",
        "read the file with pandas.read_csv(..., decimal=','), or thousands=',' if they separate thousands",
    ),
    (rf"{_WITH_GAPS}|{_NUMBER}", GAP, "numbers with blanks or apostrophes between thousands", "remove them"),
    (
        rf"(?:{_SIGN}|{CURRENCY_CODE})?\s*(?:{_WITH_GAPS}|{_NUMBER})\s*{_SIGN}?",
        rf"{_SIGN}|^{CURRENCY_CODE}",
        "numbers with % or a currency sign",
        "remove the signs",
    ),
    (
        rf"\(\s*{_NUMBER}\s*\)|{_NUMBER}|(?=.{{3}}){_NUMBER}-",  # 1- may be a grade
        r"^\(|-$",
        "negative numbers in brackets or with the minus behind",
        "write the minus before the number",
    ),
    (
        rf"(?:{_ISO_DAY}|{_OTHER_DAY})(?:[ T]{_DAY}:[0-9:]+)?",
        _OTHER_DAY,
        "dates",
        "convert them with pandas.to_datetime(..., dayfirst=True), or dayfirst=False if the month comes first",
    ),
    (
        rf"(?:{_SHORT_DAY})(?:[ T]{_DAY}:[0-9:]+)?",
        r"^[0-9]",
        "dates",
        "convert them with pandas.to_datetime and their format, such as format='%d.%m.%y'",
    ),
    (
        rf"{_ISO_DAY}[ T]{_DAY}:[0-9:.,]+ ?(?:[A-Z]{{1,5}}|[+-][0-9]{{1,2}})?|[0-9]{{8}}T[0-9]{{6}}Z?",
        r"[A-Z]{2,5}$|,|[+-][0-9]{1,2}$|^[0-9]{8}T",
        "dates",
        "convert them with pandas.to_datetime, to one time zone",
    ),
)
"""What every text matches, what some contain, what they are, and what to do."""

_WITH_UNIT = rf"^{_NUMBER}\s*([^\W\d_]\S{{0,9}}|[°%]\S{{0,9}}|% [A-Z]{{2}})$"
_LEAST_WITH_UNIT = 0.9
"""Share of the different texts that have the unit; others may tell of errors."""

_PLAIN = rf"(?:{PLAIN_NUMBER}|{DECIMAL_COMMA})"
WITH_OTHERS = "numbers and a few other texts"
_FIRST_CELLS = 100

_LATE = 2030
"""Years of two digits that are read as this or a later one may be of the last century, as in dates of birth."""


def kind_hint(frame: pd.DataFrame, schema: TableSchema) -> str | None:
    """Return a warning about columns of text that hold numbers or dates; None if there are none.

    Parameters
    ----------
    frame : pandas.DataFrame
        The training table.
    schema : TableSchema
        As it is read. Columns are named if they are read as numbers except a few texts, as dates of which some have two
        digits for a late year, or as categories although they hold numbers or dates. Pandas categories are meant to be
        categories.

    Examples
    --------
    >>> from cashmere.data.inference import infer_schema
    >>> table = pd.DataFrame({"price": ["3,14", "2,5", "10"]})
    >>> kind_hint(table, infer_schema(table)).partition(":")[0]
    "Column 'price' holds numbers with commas, such as '3,14', which are not read as numbers"
    """
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    gaps: list[tuple[str, str]] = []
    limits: list[tuple[str, str]] = []
    late: list[tuple[str, str]] = []
    n_late = 0
    for position, column in enumerate(schema.columns):
        if column.dropped is not None and not column.dropped.startswith("identifier"):
            continue
        if column.missing_texts:
            gaps.append((column.name, column.missing_texts[0][:60]))
        if column.kind is ColumnKind.NUMERIC and (limit := _limit_of(frame.iloc[:, position])) is not None:
            limits.append((column.name, limit))
        if column.kind is ColumnKind.DATE and column.years is not None and column.years[1] >= _LATE:
            cells = _late_of(frame.iloc[:, position], column)
            if len(cells):
                late.append((column.name, cells.iloc[0][:60]))
                n_late += len(cells)
        if column.kind is not ColumnKind.CATEGORICAL:
            continue
        if (notation := other_notation(frame.iloc[:, position])) is not None:
            what, remedy, example = notation
            found.setdefault((what, remedy), []).append((column.name, example))
    sentences = [
        f"{_columns_hold(columns, what)}, which are not read as {'dates' if what == 'dates' else 'numbers'}: {remedy}."
        for (what, remedy), columns in found.items()
    ]
    if gaps:
        sentences.append(
            f"{_columns_hold(gaps, WITH_OTHERS)}, which are read as missing values: convert the column to categories "
            "if they tell more."
        )
    if limits:
        sentences.append(
            f"{_columns_hold(limits, 'limits')}, which are read as numbers just beyond them: replace them by other "
            "numbers, such as half of a limit of detection, if you know better."
        )
    if late:
        sentences.append(
            f"{_columns_hold(late, 'years of two digits')}: {counted(n_late, 'date')} {'is' if n_late == 1 else 'are'} "
            f"read as {_LATE} or later. Write years with four digits if some are of the last century."
        )
    return " ".join(sentences) or None


def _late_of(column: pd.Series[Any], read: Column) -> pd.Series[str]:
    """Return the cells in a column of dates whose years have two digits, and are read as late ones."""
    if column.dtype.kind in "mM":
        return pd.Series(dtype=object)
    cells = column.dropna().astype(str).str.strip()
    texts = _distinct(cells)
    texts = texts[have_two_digits(texts)]
    late = read_dates(texts, read.notation) >= np.datetime64(str(_LATE))
    return cells[cells.isin(texts[late])]


def _limit_of(column: pd.Series[Any]) -> str | None:
    """Return the first limit in a column of numbers and limits; None if there is none."""
    if pd.api.types.is_numeric_dtype(column.dtype) or column.dtype.kind in "mM":
        return None
    texts = _distinct(column.dropna())
    limits = texts[texts.str.fullmatch(LIMIT)]
    return None if limits.empty else limits.iloc[0][:60]


def _columns_hold(columns: list[tuple[str, str]], what: str) -> str:
    return f"{columns_hold([name for name, _ in columns])} {what}, such as {columns[0][1]!r}"


def other_notation(column: pd.Series[Any]) -> tuple[str, str, str] | None:
    """Return what the texts of a column are, what to do, and an example; None if they are no numbers or dates."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return None
    column = column.dropna()
    first = _distinct(column.head(_FIRST_CELLS))
    for pattern, mark, what, remedy in _NOTATIONS:
        if not all(map(re.compile(pattern).fullmatch, first)):  # ends at the first that does not match
            continue
        texts = _distinct(column)
        shows = texts.str.contains(mark)
        if texts.str.fullmatch(pattern).all() and shows.any():
            return what, remedy, texts[shows].iloc[0][:60]
    if (unit := _unit(first)) is not None:
        texts = _distinct(column)
        if len(texts) >= LEAST_NUMBERS and _unit(texts) == unit:
            example = texts[texts.str.endswith(unit)].iloc[0][:60]
            return f"numbers with the unit {unit}", "remove the unit", example
    if 2 * first.str.fullmatch(_PLAIN).sum() > len(first):
        texts = _distinct(column)
        others = texts[~texts.str.fullmatch(_PLAIN)]
        if len(texts) - len(others) >= LEAST_NUMBERS and 0 < len(others) <= MOST_OTHERS:
            return WITH_OTHERS, "remove these texts", others.iloc[0][:60]
    return None


def _unit(texts: pd.Series[str]) -> str | None:
    """Return the unit behind the numbers in almost all texts; None if there is none, or more than one."""
    units = texts.str.extract(_WITH_UNIT, expand=False)
    found = units.dropna().unique()
    return str(found[0]) if len(found) == 1 and units.notna().mean() >= _LEAST_WITH_UNIT else None


def _distinct(column: pd.Series[Any]) -> pd.Series[str]:
    texts = pd.Series(column.unique(), dtype=object).astype(str).str.strip()
    return texts[texts != ""]
