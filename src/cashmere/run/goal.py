"""The budget of all calls of a run together, and how much of it is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from cashmere.base.json_files import Count, Positive, checked
from cashmere.records.budget import Budget

_WORTH_STARTING_SECONDS = 1.0
"""With less time left, no trial would finish, so the budget counts as spent."""


class _StoredGoal(TypedDict):
    trials: Count | None
    seconds: Positive | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a run has spent so far, in all calls.

    Attributes
    ----------
    trials : int
        Committed trials.
    seconds : float
        Wall-clock time of the calls.
    """

    trials: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The budget of all calls of a run together; None means no limit.

    Attributes
    ----------
    trials : int or None
        Number of trials.
    seconds : float or None
        Wall-clock time of the calls.
    """

    trials: int | None = None
    seconds: float | None = None

    @classmethod
    def of_call(cls, budget: Budget, spent: Spent) -> Goal:
        """Return the goal of a call whose budget counts all trials of the run, and the seconds from now."""
        return cls(trials=budget.trials, seconds=None if budget.seconds is None else spent.seconds + budget.seconds)

    @classmethod
    def from_json(cls, content: Mapping[str, Any] | None) -> Goal:
        """Read what `to_json` returns; without it there is no limit.

        Raises
        ------
        ValueError
            If it is something else.
        """
        if content is None:
            return cls()
        stored = checked(content, _StoredGoal)
        return cls(trials=stored["trials"], seconds=stored["seconds"])

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"trials": self.trials, "seconds": self.seconds}

    def including(self, other: Goal) -> Goal:
        """Return the other goal, raised to this one wherever both have a limit."""
        trials, seconds = other.trials, other.seconds
        if trials is not None and self.trials is not None:
            trials = max(trials, self.trials)
        if seconds is not None and self.seconds is not None:
            seconds = max(seconds, self.seconds)
        return Goal(trials=trials, seconds=seconds)

    def rest(self, spent: Spent) -> Budget | None:
        """Return what is left as the budget of a call, trials in all and seconds from now; None if nothing is left."""
        seconds = None if self.seconds is None else self.seconds - spent.seconds
        if self.trials is not None and spent.trials >= self.trials:
            return None
        if seconds is not None and seconds < _WORTH_STARTING_SECONDS:
            return None
        return Budget(trials=self.trials, seconds=seconds)
