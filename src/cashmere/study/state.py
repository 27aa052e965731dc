"""The state of a study: what is decided, which outcomes are known, and what a decision may see of them."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cashmere.costs.predicted import OVERHEAD_SECONDS
from cashmere.records.order import Order
from cashmere.records.time_left import TimeLeft
from cashmere.records.trial import History, Observation, Trial
from cashmere.records.work_budget import WorkBudget


class StudyState:
    """The trials of a study and their outcomes, and which of these the decision of a trial may use.

    A trial is decided, its outcome arrives, and finally is committed, which makes it part of the history. Outcomes
    arrive in any order. They are committed in the order of trials, or as they arrive if `order` says so or the plan is
    a time alone.

    Parameters
    ----------
    lookahead, order
        See `Study`.
    arrived : mapping of int to Observation
        Stored outcomes by trial number. The first ones without a gap are committed at once; the others are kept until
        their trials are decided.
    empty : History
        Without trials; what all histories of the study share: metric, targets and so on.

    Attributes
    ----------
    decided : list of Trial
        All trials, by number.
    committed : list of Observation
        What decisions may use, in trial order.
    arrived : dict of int to Observation
        By trial number, without the committed ones; also of trials that are still to be decided.
    plan : WorkBudget or None
        Total work of the study, once it is known.
    lookahead, empty
        As given.
    """

    def __init__(self, lookahead: int, order: Order, arrived: Mapping[int, Observation], empty: History) -> None:
        self.lookahead, self._order = lookahead, order
        self.decided: list[Trial] = []
        self.committed: list[Observation] = []
        self.arrived = dict(arrived)
        self.plan: WorkBudget | None = None
        self.empty = empty
        while (observation := self.arrived.get(len(self.decided))) is not None:
            self.decided.append(observation.trial)
        self.commit()

    @property
    def n_open(self) -> int:
        """Number of decided trials that are not committed."""
        return len(self.decided) - len(self.committed)

    @property
    def planned_seconds(self) -> float | None:
        """Planned worker seconds if only time limits the study; costs only matter then.

        A number of trials promises that the same seed gives the same run, a promise that seconds would break.
        """
        return None if self.plan is None or self.plan.trials is not None else self.plan.worker_seconds

    @property
    def is_by_arrival(self) -> bool:
        """Whether outcomes are committed as they arrive."""
        return self._order is Order.ARRIVAL or self.planned_seconds is not None

    # ------------------------------------------------------------ what decisions may see

    def n_shown_to(self, number: int) -> int:
        """Return how many committed outcomes the decision of a trial may see at least."""
        if self.is_by_arrival:
            return len(self.committed)
        return min(len(self.committed), max(0, number - self.lookahead + 1))

    def pending(self, end: int) -> list[Trial]:
        """Return the decided trials that are not among the first `end` committed ones."""
        if not self.is_by_arrival:
            return self.decided[end:]
        known = {o.trial.number for o in self.committed[:end]}
        return [trial for trial in self.decided if trial.number not in known]

    def history(self, end: int, pending: Sequence[Trial]) -> History:
        """Return the history of the first `end` committed outcomes."""
        return replace(
            self.empty,
            observations=tuple(self.committed[:end]),
            pending=tuple(pending),
            budget=self.plan,
            time_left=self.time_left(end),
        )

    def time_left(self, end: int) -> TimeLeft | None:
        """Return what is left of the planned time after the first `end` trials, by their recorded seconds."""
        if self.planned_seconds is None:
            return None
        spent = sum(o.duration_seconds + OVERHEAD_SECONDS for o in self.committed[:end])
        return TimeLeft(share=max(0.0, 1.0 - spent / self.planned_seconds))

    @property
    def spent_seconds(self) -> float:
        """Seconds that the committed trials took."""
        return sum(observation.duration_seconds for observation in self.committed)

    # ------------------------------------------------------------ outcomes

    def has_outcome(self, number: int) -> bool:
        """Return whether the outcome of a trial is known."""
        place = bisect.bisect_left(self.committed, number, key=_number)
        is_committed = place < len(self.committed) and _number(self.committed[place]) == number
        return is_committed or number in self.arrived

    def commit(self) -> list[Observation]:
        """Move outcomes of decided trials to the history, in trial order or as they have arrived; return them."""
        if self.is_by_arrival:
            fresh = [self.arrived.pop(n) for n in sorted(self.arrived) if n < len(self.decided)]
            for each in fresh:
                bisect.insort(self.committed, each, key=_number)
            return fresh
        fresh = []
        while len(self.committed) < len(self.decided):
            observation = self.arrived.pop(len(self.committed), None)
            if observation is None:
                break
            self.committed.append(observation)
            fresh.append(observation)
        return fresh

    def commit_stored(self) -> None:
        """Commit the outcomes behind a trial without one as well, if outcomes count as they arrive."""
        if self.is_by_arrival:
            for each in self.arrived.values():
                bisect.insort(self.committed, each, key=_number)
            self.arrived.clear()

    def undo_commit_stored(self) -> None:
        """Set aside again what `commit_stored` has committed, if anything, so that trials can be decided."""
        if self.committed and self.committed[-1].trial.number >= len(self.decided):
            self.forget_open_trials()

    def forget_open_trials(self) -> None:
        """Go back to the first trial without an outcome, which can be decided again; set later outcomes aside."""
        known = {o.trial.number for o in self.committed}
        end = next(number for number in range(len(self.decided) + 1) if number not in known)
        self.arrived |= {o.trial.number: o for o in self.committed if o.trial.number >= end}
        self.committed = [o for o in self.committed if o.trial.number < end]
        del self.decided[end:]

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what is committed, with its predictions."""
        return {**self.__dict__, "committed": [_in_memory(o) for o in self.committed], "arrived": {}}


def _number(observation: Observation) -> int:
    return observation.trial.number


def _in_memory(observation: Observation) -> Observation:
    if observation.predictions is None:
        return observation
    return replace(observation, outcome=replace(observation.outcome, predictions=np.array(observation.predictions)))
