"""Numbers that probably stand for missing values, such as -999."""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import FloatArray

_LEAST_ROWS = 3
_LEAST_NINES = 2


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
