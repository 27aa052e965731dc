"""Positions of a path at which a fit is evaluated."""

from __future__ import annotations

import math


def geometric(first: int, last: int, *, ratio: float = math.sqrt(2)) -> tuple[int, ...]:
    """Return whole numbers from `first` to `last`, each about `ratio` times the one before.

    Parameters
    ----------
    first, last : int
        At least 1; both belong to the result.
    ratio : float
        Above 1.

    Examples
    --------
    >>> geometric(10, 100)
    (10, 14, 20, 28, 40, 57, 80, 100)
    """
    positions = [first]
    exact = float(first)
    while positions[-1] < last:
        exact = max(exact * ratio, positions[-1] + 1)
        positions.append(min(last, round(exact)))
    return tuple(positions)
