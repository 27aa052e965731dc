"""Let fitted pipelines that loop over jobs, as some steps of scikit-learn do even with a single job, take turns."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOOPING = ("sklearn.compose._column_transformer", "sklearn.ensemble._bagging", "sklearn.ensemble._forest")
"""Modules whose classes loop when they predict or transform. Our forests, which are derived from theirs, do not."""

_INNER = ("estimator_", "operator_", "pipeline", "regressor_")
"""Attributes with another estimator that a step may use."""

_looping = threading.Lock()


@contextmanager
def one_loop_over_jobs() -> Iterator[None]:
    """Wait until no other thread is in such a block.

    Even with a single job, a loop of scikit-learn empties the warning filters of the process for each part of its work,
    and fills them again. One that begins in between would find none, and every part of it would warn.
    """
    with _looping, warnings.catch_warnings():  # the threads of one loop change the copy that this makes
        yield


def loops_over_jobs(estimator: Any) -> bool:
    """Return whether a fitted pipeline loops over jobs when it predicts; nearest neighbours do if they have a tree."""
    if type(estimator).__module__.startswith(_LOOPING) or getattr(estimator, "_tree", None) is not None:
        return True
    inner = [step for _, step in getattr(estimator, "steps", ())]
    inner += [getattr(estimator, name) for name in _INNER if hasattr(estimator, name)]
    return any(map(loops_over_jobs, inner))
