"""Decide where the trials of a run are evaluated, and under which limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cashmere.base.memory import available_memory, total_memory
from cashmere.exceptions import IncompatibleParametersError
from cashmere.execution.cluster import Cluster
from cashmere.execution.in_process import InProcessExecutor
from cashmere.execution.limits import Limits
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.protocols import Executor
from cashmere.records.budget import Budget
from cashmere.run.settings import MOST, RunSettings

_LONGEST_SECONDS = 600.0
"""Default time limit of a trial."""

_SHORTEST_SECONDS = 10.0
"""Least time limit of a trial under any budget, as starting a worker and fitting small models takes seconds."""

_TRIALS_IN_A_BUDGET = 4
"""Number of trials at the time limit that fit into a time budget, so that no single trial can use it up."""

_PROMOTED_IN_A_BUDGET = 2
"""The same on the highest rung: one good fit of many rows is worth more than several that end halfway, and what it has
reached when the search ends is its result."""

_LOWEST_IN_A_BUDGET = 24
"""The same on the lowest rung of rows. Each rung above has three times the rows, and three times the seconds."""

_SHORTEST_ON_RUNG_SECONDS = 2.5
"""Least time limit of a trial on a rung: on a busy machine, a worker takes a second or two to import its libraries."""

_SHARE_OF_MEMORY = 0.8
"""Share of the memory free at the start for all workers together; the rest is for this process and others."""

_MATRICES_IN_A_TRIAL = 4
"""Copies of its training matrix that a trial may need: the matrix, one from the operators, two in a learner."""


def settings_on(cluster: Cluster | None, settings: RunSettings) -> RunSettings:
    """Return the settings of a run on a cluster, which determines workers and memory unless they are given.

    Parameters
    ----------
    cluster : Cluster or None
        None for trials on this machine.
    settings : RunSettings
        As given.

    Raises
    ------
    IncompatibleParametersError
        If trials were to run in this process.
    """
    if cluster is None:
        return settings
    if settings.isolation == "none":
        raise IncompatibleParametersError(
            "With isolation='none' trials run in this process, and not on a cluster. Leave out one of the two.",
            {"isolation": "none", "executor": cluster},
        )
    memory = settings.memory_mib or _SHARE_OF_MEMORY * cluster.memory_mib
    n_workers = settings.n_workers or min(cluster.n_trials(memory), settings.lookahead or MOST["n_workers"])
    return replace(settings, memory_mib=memory, n_workers=n_workers)


def make_executor(
    settings: RunSettings,
    budget: Budget,
    *,
    rungs: Sequence[float] = (1.0,),
    log_folder: Path,
    cluster: Cluster | None = None,
) -> Executor:
    """Return the executor for these settings; the caller shuts it down.

    Parameters
    ----------
    settings : RunSettings
        Where trials are evaluated, and how many at the same time.
    budget : Budget
        Of this call.
    rungs : sequence of float
        Shares of the training rows that trials may use, ascending.
    log_folder : Path
        Receives the output of workers.
    cluster : Cluster, optional
        Where trials run instead of this machine.
    """
    if settings.isolation == "none":
        return InProcessExecutor()
    limits = trial_limits(settings, budget, rungs)
    if cluster is not None:
        return cluster.executor(settings.workers, limits=limits, log_folder=log_folder)
    return WorkerProcessExecutor(settings.workers, limits=limits, log_folder=log_folder)


def largest_matrix_mib(settings: RunSettings) -> float:
    """Return the size up to which a matrix of training rows is offered to trials, in MiB.

    It is derived from total memory, not free memory, so it is the same in every call of a run.
    """
    memory = settings.memory_mib
    if memory is None:
        memory = _SHARE_OF_MEMORY * total_memory() / settings.workers
    return memory / _MATRICES_IN_A_TRIAL


def trial_limits(settings: RunSettings, budget: Budget, rungs: Sequence[float] = (1.0,)) -> Limits:
    """Return the limits of a trial: those of the settings, or shares of the time budget and the free memory.

    Parameters
    ----------
    settings : RunSettings
        With the limits that the user has given.
    budget : Budget
        Of this call.
    rungs : sequence of float
        Shares of the training rows that trials may use, ascending. With more than one, the seconds of a trial depend on
        its rung.
    """
    seconds = settings.trial_seconds
    if seconds is None:
        seconds = _LONGEST_SECONDS
        if budget.seconds is not None:
            seconds = min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, budget.seconds / _TRIALS_IN_A_BUDGET))
    memory = settings.memory_mib
    if memory is None:
        memory = _SHARE_OF_MEMORY * available_memory() / settings.workers
    by_share = {}
    if len(rungs) > 1 and budget.seconds is not None and budget.trials is None:
        longest = settings.trial_seconds or max(seconds, budget.seconds / _PROMOTED_IN_A_BUDGET)
        lowest = max(_SHORTEST_ON_RUNG_SECONDS, budget.seconds / _LOWEST_IN_A_BUDGET)
        by_share = {share: min(longest, lowest * share / rungs[0]) for share in rungs[:-1]}
        by_share[rungs[-1]] = longest
    return Limits(seconds=seconds, memory_mib=memory, seconds_by_share=by_share)
