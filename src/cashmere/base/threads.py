"""Limit the threads of this process's numerical libraries."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let BLAS use one thread inside a ``with`` block.

    The cores belong to the workers, small products wait longer for threads than they compute, and sums must not
    depend on the number of threads.
    """
    limits: AbstractContextManager[Any] = _blas().limit(limits=1)
    return limits


@functools.cache
def _blas() -> Any:
    """Return the controller that limits the threads of BLAS; finding the libraries takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
