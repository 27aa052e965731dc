"""Predict many rows with fold models: with boosters some trees or rows at a time, with other learners on all cores.

Nearly all of the time of a prediction is spent walking down trees; encoding the rows takes a hundredth of it.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import FloatArray
from cashmere.base.threads import one_blas_thread
from cashmere.model.fold_model import FoldModel
from cashmere.model.job_loops import loops_over_jobs, one_loop_over_jobs
from cashmere.model.trees_in_turns import TreesInTurns, in_turns

LEAST_ROWS = 2_000
"""With fewer rows, additional calls and threads cost more than they save."""

_CELLS_IN_CACHE = 200_000
"""Histogram boosting goes through all rows tree by tree: so many cells of them, as doubles, stay in a core's cache."""

_HISTOGRAM = "sklearn.ensemble._hist_gradient_boosting"
_WITH_THREADS = ("lightgbm", "xgboost", "catboost", _HISTOGRAM, "sklearn.neighbors")


def has_threads(learner: Any) -> bool:
    """Return whether a learner itself distributes rows over threads when it predicts, with the same result.

    Forests distribute their trees, and add them up in the order in which the threads finish.
    """
    return _is_of(learner, _WITH_THREADS)


def _is_of(learner: Any, modules: str | tuple[str, ...]) -> bool:
    return any(base.__module__.startswith(modules) for base in type(learner).__mro__)


def for_many_rows(model: FoldModel, n_rows: int, *, n_threads: int) -> FoldModel:
    """Return a model that predicts the same up to rounding, but is faster for many rows; see `in_turns`.

    Parameters
    ----------
    model : FoldModel
        Fitted.
    n_rows : int
        Total number of rows to predict.
    n_threads : int
        Threads to use.
    """
    if n_rows < LEAST_ROWS or model.pipeline is None:
        return model
    faster = in_turns(model.pipeline, n_rows=n_rows, n_threads=n_threads)
    return model if faster is None else replace(model, pipeline=faster)


def predict_in_threads(model: FoldModel, X: FloatArray, *, n_threads: int) -> NDArray[np.float32]:
    """Predict prepared rows like `FoldModel.predict`, but with all threads.

    Parameters
    ----------
    model : FoldModel
        From `for_many_rows`, or any other.
    X : (n_rows, n_features) float32 array
        In the encoding of the model.
    n_threads : int
        Threads over which to distribute the rows, for learners that do not do so themselves.
    """
    if loops_over_jobs(model.pipeline):
        with one_loop_over_jobs():
            return model.predict(X)
    if model.pipeline is None or isinstance(model.pipeline, TreesInTurns):
        return model.predict(X)
    if _is_of(model.pipeline[-1], _HISTOGRAM):
        n_parts = 1 + (len(X) - 1) // max(LEAST_ROWS, n_threads * _CELLS_IN_CACHE // X.shape[1])
        ends = np.linspace(0, len(X), max(1, n_parts) + 1).astype(int)
        return np.concatenate([model.predict(X[start:end]) for start, end in itertools.pairwise(ends)])
    n_parts = min(n_threads, 2 * len(X) // LEAST_ROWS)
    if n_parts < 2 or has_threads(model.pipeline[-1]):
        return model.predict(X)
    with one_blas_thread(), ThreadPoolExecutor(n_parts) as threads:
        return np.concatenate(list(threads.map(model.predict, np.array_split(X, n_parts))))
