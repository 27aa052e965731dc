"""Limit the threads of this process's numerical libraries."""

from __future__ import annotations

import contextlib
import functools
import sys
from contextlib import AbstractContextManager
from typing import Any


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let BLAS use one thread inside a ``with`` block.

    The cores belong to the workers, small products wait longer for threads than they compute, and sums must not
    depend on the number of threads.
    """
    limits: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limits


def one_openmp_thread() -> AbstractContextManager[Any]:
    """Let scikit-learn's OpenMP use one thread inside a ``with`` block: histogram boosting has no parameter for that.

    For few rows, waking threads takes longer than the rows; beside other programs, many times as long.
    """
    if "sklearn.utils" not in sys.modules:  # which loads its OpenMP
        return contextlib.nullcontext()
    limits: AbstractContextManager[Any] = _openmp().limit(limits=1)
    return limits


def learner_threads(n_threads: int) -> AbstractContextManager[Any]:
    """Let learners without a parameter for threads use so many inside a ``with`` block, and BLAS one."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits({"openmp": n_threads, "blas": 1})
    return limits


@functools.cache
def _openmp() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="openmp")


@functools.cache
def _blas() -> Any:
    """Return the controller that limits the threads of BLAS; finding the libraries takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
