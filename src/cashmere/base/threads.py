"""Limit the threads of this process's numerical libraries."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from contextlib import AbstractContextManager
from typing import Any


class _OneThread:
    """The limit of one thread, which belongs to the whole process: the first to enter sets it, the last restores it.

    Otherwise, of two Python threads that overlap, the second would restore what the first has set.
    """

    def __init__(self, controller: Any) -> None:
        self._controller, self._lock, self._n_inside = controller, threading.Lock(), 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                self._limits = self._controller.limit(limits=1)
            self._n_inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limits.restore_original_limits()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let BLAS use one thread inside a ``with`` block.

    The cores belong to the workers, small products wait longer for threads than they compute, and sums must not
    depend on the number of threads.
    """
    return _blas()


def one_openmp_thread() -> AbstractContextManager[Any]:
    """Let scikit-learn's OpenMP use one thread inside a ``with`` block: histogram boosting has no parameter for that.

    For few rows, waking threads takes longer than the rows; beside other programs, many times as long.
    """
    if "sklearn.utils" not in sys.modules:  # which loads its OpenMP
        return contextlib.nullcontext()
    return _openmp()


def learner_threads(n_threads: int) -> AbstractContextManager[Any]:
    """Let learners without a parameter for threads use so many inside a ``with`` block, and BLAS one."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits({"openmp": n_threads, "blas": 1})
    return limits


@functools.cache
def _openmp() -> _OneThread:
    from threadpoolctl import ThreadpoolController

    return _OneThread(ThreadpoolController().select(user_api="openmp"))


@functools.cache
def _blas() -> _OneThread:
    """Return the limit of BLAS; finding the libraries takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return _OneThread(ThreadpoolController().select(user_api="blas"))
