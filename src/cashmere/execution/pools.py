"""Workers for long computations, one thread each: processes on this machine, or on those of a cluster."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cashmere.execution.calls import CallPool
from cashmere.execution.cluster import Cluster
from cashmere.execution.inside_worker import exit_with_parent
from cashmere.execution.limits import Limits
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.protocols import Executor

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@contextmanager
def worker_pool(n_workers: int, *, cluster: Cluster | None = None) -> Iterator[Any]:
    """Provide a pool that calls functions in other processes; if the block raises, or on Ctrl+C, they are killed.

    Parameters
    ----------
    n_workers : int
        Calls at a time.
    cluster : Cluster, optional
        Where they run instead of this machine.

    Yields
    ------
    object
        Its ``submit(function, *arguments)`` returns a `concurrent.futures.Future`.
    """
    if cluster is not None:
        remote = cluster.executor(n_workers, limits=Limits())
        try:
            yield CallPool(remote)
        finally:
            remote.shutdown()
        return
    from loky import ProcessPoolExecutor

    executor = ProcessPoolExecutor(
        max_workers=n_workers, timeout=60, env=ONE_THREAD, initializer=_start, initargs=(os.getpid(),)
    )
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=True, kill_workers=True)
        raise
    executor.shutdown(wait=True)


def one_thread_executor(n_workers: int, *, limits: Limits, cluster: Cluster | None = None) -> Executor:
    """Return the executor of trials with one thread each; the caller shuts it down.

    Parameters
    ----------
    n_workers : int
        Number of trials that run at the same time.
    limits : Limits
        Limits of each trial.
    cluster : Cluster, optional
        Where they run instead of this machine.
    """
    if cluster is not None:
        return cluster.executor(n_workers, limits=limits)
    return WorkerProcessExecutor(n_workers, limits=limits, n_threads=1)


def _start(parent: int) -> None:
    """Leave Ctrl+C to the main process, and end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=exit_with_parent, args=(parent,), daemon=True).start()
