"""Seeds derived from names, so that the randomness of one thing does not depend on any other."""

from __future__ import annotations

import zlib

import numpy as np


def seed_of(seed: int, *parts: str | int) -> int:
    """Return a seed in [0, 2**31) derived from texts and numbers.

    Examples
    --------
    >>> seed_of(0, "iris", "rows") == seed_of(0, "iris", "rows")
    True
    >>> seed_of(0, "iris", "rows") == seed_of(0, "iris", "holdout")
    False
    """
    words = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in parts]
    return int(np.random.SeedSequence([seed, *words]).generate_state(1)[0]) % 2**31
