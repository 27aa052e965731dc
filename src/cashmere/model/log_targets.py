"""Targets that are learned as logarithms, and predictions turned back into values."""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import AnyArray, Float64

_BEYOND = 1.0
"""A model may predict this much more than the largest logarithm it has learned, so a linear one cannot explode."""


def learned_logarithms(y: AnyArray) -> tuple[Float64, float]:
    """Return log(1 + y), and the largest logarithm that a model of it may predict.

    Parameters
    ----------
    y : (n_rows,) array
        Targets, at least 0.

    Examples
    --------
    >>> logarithms, limit = learned_logarithms(np.array([0.0, np.e - 1]))
    >>> logarithms.tolist(), limit
    ([0.0, 1.0], 2.0)
    """
    logarithms: Float64 = np.log1p(np.asarray(y, dtype=np.float64))
    return logarithms, float(logarithms.max()) + _BEYOND


def values_of(logarithms: AnyArray, limit: float) -> Float64:
    """Return the values of predicted logarithms, which are clipped to 0 and the limit; NaN stays NaN.

    Examples
    --------
    >>> values_of(np.array([-0.5, np.log(3.0), 9.0]), np.log(5.0)).round(9).tolist()
    [0.0, 2.0, 4.0]
    """
    return np.expm1(np.clip(np.asarray(logarithms, dtype=np.float64), 0.0, limit))
