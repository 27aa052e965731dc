"""Check that the time of a call suffices to read and prepare its table."""

from __future__ import annotations

import functools
from collections.abc import Callable

from cashmere.exceptions import BudgetTooShortError
from cashmere.records.budget import Deadline

_ALWAYS_PREPARED_CELLS = 1_000_000
"""Tables of up to this size are prepared even after the end: it takes about a second, and gives a model."""


def reading_check(deadline: Deadline) -> Callable[[int, int], None]:
    """Return the function that reading a table calls from time to time, which raises when the time is over.

    Parameters
    ----------
    deadline : Deadline
        The clock of the call.

    Returns
    -------
    callable
        Takes the cells read so far and those of the whole table. Raises `BudgetTooShortError` once the time is over,
        unless the table is small.
    """

    def check(n_read: int, n_cells: int) -> None:
        if deadline.seconds is not None and deadline.remaining < 0 and n_cells > _ALWAYS_PREPARED_CELLS:
            raise BudgetTooShortError(deadline.seconds, deadline.elapsed, share_read=n_read / n_cells)

    return check


def preparation_check(deadline: Deadline, n_cells: int) -> Callable[[], None]:
    """Return the same for the steps of the preparation, which begin when all cells have been read."""
    return functools.partial(reading_check(deadline), n_cells, n_cells)
