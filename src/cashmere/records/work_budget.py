"""The total work of a study, in the units that strategies count in."""

from __future__ import annotations

from dataclasses import dataclass

from cashmere.records.budget import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkBudget:
    """The total work of a study, for strategies that divide it.

    Unlike `Budget`, which limits the wall-clock time of one call, it counts the durations of trials, summed over the
    workers, which a strategy can read from a history.

    Attributes
    ----------
    trials : int or None
        Number of trials.
    worker_seconds : float or None
        Sum of the durations of trials. With both, whichever limit is reached first.

    Raises
    ------
    InvalidParameterError
        If there is no limit, or one that is not positive.

    Examples
    --------
    >>> str(WorkBudget(trials=50, worker_seconds=120.5))
    '120.5s,50trials'
    >>> WorkBudget.from_text("120.5s,50trials").worker_seconds
    120.5
    """

    trials: int | None = None
    worker_seconds: float | None = None

    def __post_init__(self) -> None:
        self._as_budget()

    @classmethod
    def from_text(cls, text: str) -> WorkBudget:
        """Read the text that `str` returns, which is also the stored form."""
        budget = Budget.parse(text)
        return cls(trials=budget.trials, worker_seconds=budget.seconds)

    def __str__(self) -> str:
        """Return the text that `from_text` reads back; seconds are rounded to six decimals."""
        return str(self._as_budget())

    def _as_budget(self) -> Budget:
        return Budget(trials=self.trials, seconds=self.worker_seconds)
