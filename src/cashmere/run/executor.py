"""Where the trials of a run are evaluated, and under which limits."""

from __future__ import annotations

from pathlib import Path

from cashmere.base.memory import available_memory, total_memory
from cashmere.execution.in_process import InProcessExecutor
from cashmere.execution.limits import Limits
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.protocols import Executor
from cashmere.records.budget import Budget
from cashmere.run.settings import RunSettings

_LONGEST_SECONDS = 600.0
"""Longest time of a trial, unless the user gives another."""

_SHORTEST_SECONDS = 10.0
"""Least time limit of a trial under any budget: starting a worker and fitting small models takes seconds."""

_TRIALS_IN_A_BUDGET = 4
"""Number of trials at the time limit that fit into a time budget, so that no single trial can use it up."""

_SHARE_OF_MEMORY = 0.8
"""Share of the memory free at the start that all workers get; the rest is for this process and others."""

_MATRICES_IN_A_TRIAL = 4
"""Copies of its training matrix that a trial may need: the matrix, one from the operators, two in a learner."""


def make_executor(settings: RunSettings, budget: Budget, *, log_folder: Path) -> Executor:
    """Return the executor for these settings; the caller shuts it down.

    Parameters
    ----------
    settings : RunSettings
        Where trials are evaluated, and how many at the same time.
    budget : Budget
        Of this call.
    log_folder : Path
        Receives the output of workers.
    """
    if settings.isolation == "none":
        return InProcessExecutor()
    return WorkerProcessExecutor(settings.workers, limits=trial_limits(settings, budget), log_folder=log_folder)


def largest_matrix_mib(settings: RunSettings) -> float:
    """Return the size up to which a matrix of training rows is offered to trials, in MiB.

    It is derived from all the memory there is, not from what is free: so it is the same in every call of a run.
    """
    memory = settings.memory_mib
    if memory is None:
        memory = _SHARE_OF_MEMORY * total_memory() / settings.workers
    return memory / _MATRICES_IN_A_TRIAL


def trial_limits(settings: RunSettings, budget: Budget) -> Limits:
    """Return the limits of a trial: those of the settings, or shares of the time budget and the free memory."""
    seconds = settings.trial_seconds
    if seconds is None:
        seconds = _LONGEST_SECONDS
        if budget.seconds is not None:
            seconds = min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, budget.seconds / _TRIALS_IN_A_BUDGET))
    memory = settings.memory_mib
    if memory is None:
        memory = _SHARE_OF_MEMORY * available_memory() / settings.workers
    return Limits(seconds=seconds, memory_mib=memory)
