"""Keep the warning filters of the process while learners change them in several threads."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


class _Kept:
    """Warning filters, which belong to the whole process: the first to enter copies them, the last sets them back."""

    def __init__(self) -> None:
        self._lock, self._n_inside = threading.Lock(), 0
        self._before = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                self._before = warnings.catch_warnings()
                self._before.__enter__()
            self._n_inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._before.__exit__(None, None, None)


_kept = _Kept()
_looping = threading.Lock()


def warning_filters_kept() -> AbstractContextManager[None]:
    """Set back the warning filters when the last thread has left such a ``with`` block.

    Whatever scikit-learn checks or loops over, it changes the filters and sets back those that it found. If two threads
    do so at once, the second sets back what the first has changed.
    """
    return _kept


@contextmanager
def one_loop_over_jobs() -> Iterator[None]:
    """Wait until no other thread is in such a block.

    Even with a single job, a loop of scikit-learn empties the filters for each part of its work and fills them again.
    One that begins in between would find none, and every part of it would warn.
    """
    with _looping, warnings.catch_warnings():  # the threads of one loop change the copy that this makes
        yield
