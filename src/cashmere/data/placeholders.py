"""Numbers that probably stand for missing values, such as -999."""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import FloatArray
from cashmere.base.text import columns_hold, counted
from cashmere.data.column import ColumnKind
from cashmere.data.schema import CodedTable

_LEAST_ROWS = 3
_LEAST_NINES = 2
ROWS_OF_HINT = 100_000
"""Rows of a large table that are looked at before a run."""


def placeholder_numbers(values: FloatArray) -> dict[int, int]:
    """Find numbers in a column that probably stand for missing values, such as -999, or 98 and 99.

    One consists of at least two nines, is the smallest or the largest value, and is farther from the next one than all
    others are from each other, or negative while no other is. Beside it, there may be those usual for further answers:
    one or two less in size (98 and 97), and repetitions of 8, 7 or 6 (88).

    Parameters
    ----------
    values : (n_rows,) float array
        The column; NaN where values are missing.

    Returns
    -------
    dict
        Each number, and in how many rows it is; that of nines is in at least three.

    Examples
    --------
    >>> placeholder_numbers(np.array([3.5, -999.0, 7.0, -999.0, 1.0, -999.0]))
    {-999: 3}
    >>> placeholder_numbers(np.array([5.0, 99.0, 1.0, 99.0, 2.0, 88.0, 98.0, 99.0]))
    {88: 1, 98: 1, 99: 3}
    >>> placeholder_numbers(np.array([97.0, 98.0, 99.0, 99.0, 99.0, 95.0]))  # near the others
    {}
    """
    known = values[~np.isnan(values)]
    if not len(known):
        return {}
    for extreme in (float(known.min()), float(known.max())):
        if not _is_all_nines(extreme) or int((known == extreme).sum()) < _LEAST_ROWS:
            continue
        size = abs(extreme)
        beside = np.sign(extreme) * np.array([size, size - 1, size - 2, *(size / 9 * np.array([8, 7, 6]))])
        for is_found, least_gap in ((known == extreme, 0.0), (np.isin(known, beside), size / 2)):
            others, found = known[~is_found], known[is_found]
            if not len(others):
                continue
            gap = min(abs(others.min() - found.max()), abs(found.min() - others.max()))
            is_far = gap > max(others.max() - others.min(), least_gap)
            if is_far or extreme < 0 <= others.min():
                numbers, counts = np.unique(found, return_counts=True)
                return {int(number): int(count) for number, count in zip(numbers, counts, strict=True)}
    return {}


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
        for number, count in placeholder_numbers(coded.values[:most_rows, position]).items():
            names, n_cells = found.get(number, ((), 0))
            found[number] = (*names, column.name), n_cells + count
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
        for number, (names, n_cells) in placeholders(coded, most_rows=ROWS_OF_HINT).items()
    ]
    return " ".join(sentences) or None
