"""Numbers that probably stand for missing values, such as -999."""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import FloatArray
from cashmere.base.text import columns_hold, counted
from cashmere.data.schema import CodedTable, ColumnKind

_LEAST_ROWS = 3
_LEAST_NINES = 2
_ROWS_OF_HINT = 100_000
"""Rows of a large table that are looked at before a run."""


def placeholder(values: FloatArray) -> tuple[int, int] | None:
    """Find a number in a column that probably stands for missing values.

    It consists of at least two nines, is the smallest or the largest value, and is farther from the next one than all
    others are from each other, or negative while no other is.

    Parameters
    ----------
    values : (n_rows,) float array
        The column; NaN where values are missing.

    Returns
    -------
    tuple of int or None
        The number, and in how many rows it is, at least three; None if there is none.

    Examples
    --------
    >>> placeholder(np.array([3.5, -999.0, 7.0, -999.0, 1.0, -999.0]))
    (-999, 3)
    >>> placeholder(np.array([97.0, 98.0, 99.0, 99.0, 99.0, 95.0])) is None  # near the others
    True
    """
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    for extreme in (float(known.min()), float(known.max())):
        if not _is_all_nines(extreme):
            continue
        others = known[known != extreme]
        if not len(others) or (n_rows := len(known) - len(others)) < _LEAST_ROWS:
            continue
        is_far = np.abs(others - extreme).min() > others.max() - others.min()
        if is_far or extreme < 0 <= others.min():
            return int(extreme), n_rows
    return None


def _is_all_nines(value: float) -> bool:
    digits = f"{abs(value):.0f}" if np.isfinite(value) and value == round(value) else ""
    return len(digits) >= _LEAST_NINES and set(digits) == {"9"}


def placeholders(coded: CodedTable, *, most_rows: int | None = None) -> dict[int, tuple[tuple[str, ...], int]]:
    """Return the numbers that probably stand for missing values: for each the columns, and the number of cells.

    Parameters
    ----------
    coded : CodedTable
        The rows.
    most_rows : int, optional
        How many of the first rows to look at; by default all.
    """
    found: dict[int, tuple[tuple[str, ...], int]] = {}
    for position, column in enumerate(coded.schema.value_columns):
        if column.kind is not ColumnKind.NUMERIC or column.offset:
            continue
        number = placeholder(coded.values[:most_rows, position])
        if number is not None:
            names, n_cells = found.get(number[0], ((), 0))
            found[number[0]] = (*names, column.name), n_cells + number[1]
    return found


def placeholder_hint(coded: CodedTable) -> str | None:
    """Return a warning about numbers that probably stand for missing values; None if there are none.

    Parameters
    ----------
    coded : CodedTable
        The training rows.
    """
    sentences = [
        f"{columns_hold(list(names))} {number} in {counted(n_cells, 'cell')}, unlike all other values. If it stands "
        "for missing values, leave these cells empty, or replace it by NaN: as a number, it distorts distances and "
        "linear models."
        for number, (names, n_cells) in placeholders(coded, most_rows=_ROWS_OF_HINT).items()
    ]
    return " ".join(sentences) or None
