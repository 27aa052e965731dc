"""The budget that a strategy divides: the number of trials among its options, or the plan of the study."""

from __future__ import annotations

import numpy as np

from cashmere.exceptions import InvalidParameterError
from cashmere.records.trial import History
from cashmere.records.work_budget import WorkBudget


def check_budget(budget: object) -> None:
    """Raise if the option ``budget`` is neither a number of trials nor None.

    Raises
    ------
    InvalidParameterError
        If it is something else, or less than 1.
    """
    if budget is not None and not (isinstance(budget, int | np.integer) and budget >= 1):
        raise InvalidParameterError("budget", budget, "a number of trials, or None for the budget of the study")


def budget_of_study(budget: int | None, history: History) -> WorkBudget | None:
    """Return the option ``budget``, or without it the plan of the study; None if neither is known."""
    return history.budget if budget is None else WorkBudget(trials=int(budget))
