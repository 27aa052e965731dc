"""One number per encoded row, to find equal rows."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import FloatArray


def row_keys(rows: FloatArray) -> NDArray[np.uint64]:
    """Return one 64-bit number per encoded row ``(n, d)``; equal rows have equal keys, others practically never."""
    bits = np.ascontiguousarray(rows, dtype=np.float64).view(np.uint64)
    # Small whole numbers differ only in their upper bits: fold them down before mixing.
    mixed = (bits ^ (bits >> np.uint64(29))) * _hash_factors(bits.shape[1])
    mixed ^= mixed >> np.uint64(32)
    keys: NDArray[np.uint64] = mixed.sum(axis=1, dtype=np.uint64)
    return keys


@functools.lru_cache(maxsize=16)
def _hash_factors(n: int) -> NDArray[np.uint64]:
    """Return n odd 64-bit factors, the same in every process."""
    return np.random.default_rng(20240229).integers(2**63, 2**64, size=n, dtype=np.uint64) | np.uint64(1)
