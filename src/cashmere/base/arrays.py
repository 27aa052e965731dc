"""Names for the types of arrays used throughout the package."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64] | NDArray[np.float32]
"""Real numbers: losses, predictions, encoded configurations."""

Float64 = NDArray[np.float64]
"""Real numbers in double precision: losses, weights, and sums of them."""

IntArray = NDArray[np.int64]
"""Row numbers, class codes, counts."""

BoolArray = NDArray[np.bool_]
"""Masks over rows, columns or candidates."""

AnyArray = NDArray[Any]
"""Any content, such as text or objects."""
