"""Seeds that belong to names, so that what is random about one thing does not depend on what else there is."""

from __future__ import annotations

import zlib

import numpy as np


def seed_of(seed: int, *parts: str | int) -> int:
    """Return a seed in [0, 2**31) that belongs to texts and numbers.

    Examples
    --------
    >>> seed_of(0, "iris", "rows") == seed_of(0, "iris", "rows")
    True
    >>> seed_of(0, "iris", "rows") == seed_of(0, "iris", "holdout")
    False
    """
    words = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in parts]
    return int(np.random.SeedSequence([seed, *words]).generate_state(1)[0]) % 2**31
