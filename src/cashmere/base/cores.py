"""The cores this process may use."""

from __future__ import annotations

import os


def threads_per_worker(n_workers: int) -> int:
    """Return the cores each worker may use: cores / workers, at least 1."""
    return max(1, available_cores() // n_workers)


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
