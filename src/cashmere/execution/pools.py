"""Worker processes for long computations: one thread each, ended with the main process, however that ends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cashmere.execution.inside_worker import exit_with_parent

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@contextmanager
def worker_pool(n_workers: int) -> Iterator[Any]:
    """Return a loky executor; if the block raises, or on Ctrl+C, its workers are killed."""
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


def _start(parent: int) -> None:
    """Leave Ctrl+C to the main process, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=exit_with_parent, args=(parent,), daemon=True).start()
