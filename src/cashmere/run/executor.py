"""Where the trials of a run work, and what each of them may take."""

from __future__ import annotations

from pathlib import Path

import psutil

from cashmere.execution.in_process import InProcessExecutor
from cashmere.execution.limits import MIB, Limits
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.protocols import Executor
from cashmere.records.budget import Budget
from cashmere.run.settings import RunSettings

_LONGEST_SECONDS = 600.0
"""No trial takes longer, unless the user says so."""

_SHORTEST_SECONDS = 10.0
"""Time that a trial gets under any budget: starting a worker and fitting small models takes seconds."""

_TRIALS_IN_A_BUDGET = 6
"""Trials of the longest kind that fit into a time budget one after the other: one of them cannot eat it all."""

_SHARE_OF_MEMORY = 0.8
"""Of the memory that is free at the start, for all workers; the rest is for this process and for others."""


def make_executor(settings: RunSettings, budget: Budget, *, log_folder: Path) -> Executor:
    """Return the executor that the settings ask for; the caller shuts it down.

    Parameters
    ----------
    settings : RunSettings
        Says where trials work and how many at a time.
    budget : Budget
        Of this call.
    log_folder : Path
        Gets what workers print.
    """
    if settings.isolation == "none":
        return InProcessExecutor()
    return WorkerProcessExecutor(settings.workers, limits=trial_limits(settings, budget), log_folder=log_folder)


def trial_limits(settings: RunSettings, budget: Budget) -> Limits:
    """Return what a trial may take: what the settings say, else shares of the time budget and of the free memory."""
    seconds = settings.trial_seconds
    if seconds is None:
        seconds = _LONGEST_SECONDS
        if budget.seconds is not None:
            seconds = min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, budget.seconds / _TRIALS_IN_A_BUDGET))
    memory = settings.memory_mib
    if memory is None:
        memory = _SHARE_OF_MEMORY * psutil.virtual_memory().available / MIB / settings.workers
    return Limits(seconds=seconds, memory_mib=memory)
