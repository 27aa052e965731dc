"""The memory that this process may use, and the return of freed memory."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import psutil

from cashmere.base.control_groups import free_memory, memory_limit

_MIB = 2**20


def available_memory() -> float:
    """Return the MiB this process and its workers can still take: free memory, within limits of containers and jobs."""
    free = min(psutil.virtual_memory().available, free_memory()) / _MIB
    job = _memory_of_job()
    return free if job is None else min(free, max(0.0, job - psutil.Process().memory_info().rss / _MIB))


def total_memory() -> float:
    """Return the MiB this process may use at most."""
    total = min(psutil.virtual_memory().total, memory_limit()) / _MIB
    job = _memory_of_job()
    return total if job is None else min(total, job)


def return_freed_memory() -> None:
    """Return freed memory to the system, where the C library keeps it between blocks in use (glibc)."""
    if (trim := _malloc_trim()) is not None:
        trim(0)


@functools.cache
def _malloc_trim() -> Callable[[int], Any] | None:
    if sys.platform != "linux":
        return None
    try:
        trim: Callable[[int], Any] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library, such as musl
        return None
    return trim


def _memory_of_job() -> float | None:
    """Return the MiB that a SLURM job may use on this machine; None outside a job, or if it has all memory (0)."""
    per_node, per_cpu, cpus = (
        int(text) if (text := os.environ.get(name, "")).isdigit() else 0
        for name in ("SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE")
    )
    return float(per_node or per_cpu * cpus) or None
