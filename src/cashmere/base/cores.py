"""The cores this process may use."""

from __future__ import annotations

import math
import os

from cashmere.base.control_groups import cpu_quota

_MOST_WORKERS = 4
"""With a lookahead of 8, a run is then the same on every machine."""


def default_workers(lookahead: int | None = None) -> int:
    """Return how many trials run at a time unless the user says otherwise: one per core, at most 4 or `lookahead`."""
    return min(_MOST_WORKERS, available_cores(), lookahead or _MOST_WORKERS)


def threads_per_worker(n_workers: int) -> int:
    """Return the cores each worker may use: cores / workers, at least 1."""
    return max(1, available_cores() // n_workers)


def available_cores() -> int:
    """Return the number of cores this process may use, at least 1.

    The least of: the cores of the machine, those the process is bound to, the quota of its control groups (containers;
    rounded up) and what a job of SLURM was granted on this machine.
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(bound, cpu_quota(), _cores_of_job())))


def _cores_of_job() -> float:
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        text = os.environ.get(name, "")
        if text.isdigit() and int(text) > 0:
            return int(text)
    return math.inf
