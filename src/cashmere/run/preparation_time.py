"""Whether the time of a call suffices to prepare its table."""

from __future__ import annotations

from collections.abc import Callable

from cashmere.exceptions import BudgetTooShortError
from cashmere.records.budget import Deadline

_ALWAYS_PREPARED_CELLS = 1_000_000
"""Tables of so many cells are prepared even after the end: that takes about a second, and then there is a model."""


def preparation_check(deadline: Deadline, n_cells: int) -> Callable[[], None]:
    """Return what the steps of the preparation call one after the other, to be stopped when the time is over.

    Parameters
    ----------
    deadline : Deadline
        The clock of the call.
    n_cells : int
        Cells of the table.

    Returns
    -------
    callable
        Raises `BudgetTooShortError` once the time is over, unless the table is small.
    """

    def check() -> None:
        if deadline.seconds is not None and deadline.remaining < 0 and n_cells > _ALWAYS_PREPARED_CELLS:
            raise BudgetTooShortError(deadline.seconds, deadline.elapsed)

    return check
