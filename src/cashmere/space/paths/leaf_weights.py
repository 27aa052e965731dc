"""The least weight of a leaf under deviances, where a few large amounts may stand among many zeros.

Notation (shapes)
-----------------
y ``(n,)``: targets, at least 0; w ``(n,)``: row weights; p: power of the Tweedie deviance; m, s: weighted means of y
and of its squares.

Boosters weigh a row by its second derivative after the sum f of the trees, where the prediction is e^f. For the Tweedie
deviance (Poisson: p = 1, gamma: p = 2), it is w ((p - 1) y e^((1 - p) f) + (2 - p) e^((2 - p) f)). At e^f = m, its mean
over all rows is mean(w) m^(2 - p). So it depends on the unit of the targets, but the libraries' limits do not.

Of n rows, n m^2 / s share the total: if some have equal parts and all others nothing, that is the number of these, and
if few parts are large, it is little more than theirs (Kish's effective number).

References
----------
Kish (1965), Survey sampling, Wiley, section 11.7.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray
from cashmere.space.path import PathData

_GAMMA, _TWEEDIE = ("gamma", "reg:gamma"), ("tweedie", "reg:tweedie")

_EFFECTIVE_ROWS = 5.0
"""Effective number of rows that a leaf should have. A leaf of zeros lowers its predictions by the factor
e^(-1 / (2 - p)) in one full step, one of large amounts raises them far less, and the libraries allow leaves of one row:
docs/benchmarks.md#deviances."""


def least_leaf_weight(learner: Any, data: PathData) -> float | None:
    """Return the least weight of a leaf for a booster of LightGBM or XGBoost, or None if its own limit is right.

    So it is for all but powers above 1: under Poisson's deviance, a row weighs as much as the events that it expects.
    """
    if learner.objective in _GAMMA:
        power = 2.0
    elif learner.objective in _TWEEDIE:
        power = float(learner.get_params()["tweedie_variance_power"])
    else:
        return None
    if not np.any(data.y):  # a fold may lack the few positive targets, and then there is nothing to learn
        return None
    return _EFFECTIVE_ROWS * weight_of_effective_row(data.y, data.weight, power)


def weight_of_effective_row(y: AnyArray, weight: AnyArray | None, power: float) -> float:
    """Return by how much a leaf grows in weight, on average, while its effective number of rows grows by one.

    Parameters
    ----------
    y : (n,) array
        Targets, at least 0 and some positive.
    weight : (n,) array or None
        Row weights.
    power : float
        Of the Tweedie deviance, from 1 (Poisson) to 2 (gamma).

    Returns
    -------
    float
        mean(w) m^(2 - p) s / m^2.

    Examples
    --------
    >>> weight_of_effective_row(np.array([0.0, 0.0, 0.0, 16.0]), None, 1.5)  # every fourth row has all
    8.0
    >>> weight_of_effective_row(np.array([200.0, 200.0]), None, 2.0)  # all have the same
    1.0
    """
    y = np.asarray(y, dtype=np.float64)
    w = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    mean = np.average(y, weights=w)
    return float(np.mean(w) * mean ** (2 - power) * np.average((y / mean) ** 2, weights=w))
