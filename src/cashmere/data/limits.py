"""Measurements outside the range of a device, such as "<0.5" and ">1000"."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cashmere.base.arrays import Float64

PLAIN_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
LIMIT = rf"\s*([<>]=?|[≤≥])\s*({PLAIN_NUMBER})\s*"

_BEYOND = 1e-4
"""How far beyond a limit its numbers are, relative to it: enough to tell them from the limit itself in 32 bits."""


def numbers_beyond(texts: pd.Series[str]) -> Float64:
    """Return numbers just beyond limits, shape ``(n_texts,)``; NaN for all other texts.

    Examples
    --------
    >>> numbers_beyond(pd.Series(["<0.5", "> 1000", "<=2", "0.5"])).tolist()
    [0.49995, 1000.1, 2.0, nan]
    """
    parts = texts.astype(object).str.extract(f"^{LIMIT}$")
    limits = pd.to_numeric(parts[1]).to_numpy(dtype=np.float64)
    sides = parts[0].map({"<": -1.0, ">": 1.0}).fillna(0.0).to_numpy(dtype=np.float64)
    return np.asarray(limits + sides * _BEYOND * np.where(limits == 0, 1.0, np.abs(limits)))
