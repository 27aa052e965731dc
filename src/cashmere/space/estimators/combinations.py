"""Combinations of two columns: their operations, and how many of them are added to a table."""

from __future__ import annotations

import numpy as np

from cashmere.base.arrays import BoolArray, FloatArray
from cashmere.data.column_values import LARGEST

MOST_FEATURES = 20

OPERATIONS = ("plus", "minus", "times", "over", "under")
"""``under`` is the second column over the first."""


def n_arithmetic_features(categorical: BoolArray) -> int:
    """Return how many columns are added."""
    n = int((~categorical).sum())
    return min(MOST_FEATURES, n * (n - 1) // 2 * len(OPERATIONS))


def combined(a: FloatArray, b: FloatArray, operation: int) -> FloatArray:
    """Return ``OPERATIONS[operation]`` of two float64 columns; ratios to zero are 0, and nothing is infinite."""
    if operation < 3:
        result = (np.add, np.subtract, np.multiply)[operation](a, b)
    else:
        above, below = (a, b) if operation == 3 else (b, a)
        result = np.divide(above, below, out=0 * (a + b), where=below != 0)
    clipped: FloatArray = np.clip(result, -LARGEST, LARGEST)
    return clipped
