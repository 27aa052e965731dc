"""Shared code of boosters that grow round by round, without their scikit-learn estimators."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from cashmere.base.arrays import FloatArray
from cashmere.space.path import PathData


def predictions_of(raw: Any, n_classes: int, *, are_logs: bool = False) -> FloatArray:
    """Turn raw scores into predictions.

    Parameters
    ----------
    raw : (n_rows,) or (n_rows, n_classes) array
        Sums over the trees; one column per class with more than two.
    n_classes : int
        1 for regression.
    are_logs : bool
        Whether the sums are logarithms of values, as under a deviance.

    Returns
    -------
    (n_rows,) or (n_rows, n_classes) array
        Values or probabilities.
    """
    if n_classes == 1:
        return np.exp(raw) if are_logs else np.asarray(raw)
    if n_classes == 2:
        positive = expit(raw)
        return np.column_stack([1 - positive, positive])
    probabilities: FloatArray = softmax(raw, axis=1)
    return probabilities


def fitted_shell(learner: Any, data: PathData) -> Any:
    """Return a fitted copy whose trees will be replaced: one round on one row of each class sets everything else."""
    # Of values the extremes: some objectives refuse targets that are all zero.
    ends = [np.argmin(data.y), np.argmax(data.y)]
    one_of_each = np.unique(data.y, return_index=True)[1] if data.n_classes > 1 else np.unique(ends)
    shell = copy.deepcopy(learner).set_params(n_estimators=1)
    return shell.fit(np.asarray(data.X[one_of_each]), data.y[one_of_each])
