"""Limits of a trial: wall seconds where runs are alone, CPU seconds where others use the machine, too."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from cashmere.execution.limits import Limits
from cashmere.execution.outcome_check import outcome_of
from cashmere.protocols import Objective, PortableObjective
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus

WALL_FACTOR = 5
"""Wall seconds a trial may take per CPU second of its limit: CPU seconds decide, on a busy machine too."""

CPU_MARGIN = 0.5
"""CPU seconds beyond the limit after which a trial is killed; within them it measures itself, more exactly."""

MEMORY_MIB = 4096
"""Memory limit of a trial with a limit of CPU seconds."""


class TrialLimit(Protocol):
    """A limit, and how trials measure themselves against it."""

    @property
    def limits(self) -> Limits:
        """Resources that a trial may use before it is killed."""
        ...

    def measure(self, objective: Objective) -> Objective:
        """Return the objective with the limit applied."""
        ...


@dataclass(frozen=True, slots=True)
class WallLimit:
    """Wall seconds after which a trial is killed."""

    seconds: float

    @property
    def limits(self) -> Limits:
        """See `TrialLimit`."""
        return Limits(seconds=self.seconds)

    def measure(self, objective: Objective) -> Objective:
        """See `TrialLimit`."""
        return objective


@dataclass(frozen=True, slots=True)
class CpuLimit:
    """CPU seconds beyond which a trial is a timeout, so that a busy machine does not change the results.

    Attributes
    ----------
    seconds : float
        The limit.
    wall_factor : float
        Wall seconds a trial may take per second of the limit.
    """

    seconds: float
    wall_factor: float = WALL_FACTOR

    @property
    def limits(self) -> Limits:
        """See `TrialLimit`."""
        return Limits(
            seconds=self.wall_factor * self.seconds,
            cpu_seconds=self.seconds + CPU_MARGIN,
            memory_mib=MEMORY_MIB,
        )

    def measure(self, objective: Objective) -> Objective:
        """See `TrialLimit`."""
        return CpuTimedObjective(objective=objective, limit_seconds=self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTimedObjective:
    """Evaluates a configuration and judges its CPU time; ``fit_seconds`` of the outcome are CPU seconds of everything.

    Attributes
    ----------
    objective : Objective
        The objective to time.
    limit_seconds : float
        CPU seconds beyond which the outcome is a timeout.
    """

    objective: Objective
    limit_seconds: float

    def files(self) -> Mapping[str, Path]:
        """Return the files that the objective reads."""
        return self.objective.files() if isinstance(self.objective, PortableObjective) else {}

    def in_folder(self, folder: Path) -> CpuTimedObjective:
        """Return the objective for its files below another folder."""
        if isinstance(self.objective, PortableObjective):
            return replace(self, objective=self.objective.in_folder(folder))
        return self

    def __call__(self, trial: Trial) -> Outcome:
        """Evaluate the trial."""
        start = time.process_time()
        outcome = outcome_of(self.objective(trial))
        seconds = time.process_time() - start
        if seconds > self.limit_seconds:
            cause = Cause(kind=CauseKind.CPU_LIMIT, limit=self.limit_seconds, used=seconds)
            return Outcome(status=TrialStatus.TIMEOUT, error=cause, fit_seconds=seconds)
        return replace(outcome, fit_seconds=seconds, predict_seconds=0.0)
