"""Round numbers for axes, and ranges with some room at their ends."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers inside [low, high], about `count` of them.

    Examples
    --------
    >>> nice_ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    >>> nice_ticks(3, 17, 3)
    [5.0, 10.0, 15.0]
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    raw = high / max(2, count) - low / max(2, count)
    magnitude = 10.0 ** math.floor(math.log10(raw)) if raw > 0 else 0.0
    if magnitude == 0 or low + magnitude == low:  # the range is below the resolution of floats
        return [low]
    step = magnitude * min((1, 2, 5, 10), key=lambda m: abs(math.log(raw / magnitude / m)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    decimals = max(0, -math.floor(math.log10(step)) + 1)
    return [round(k * step, min(decimals, 300)) + 0.0 for k in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2, 5 times powers of ten inside [low, high]; powers of ten alone where these are many.

    Examples
    --------
    >>> log_ticks(1, 30)
    [1.0, 2.0, 5.0, 10.0, 20.0]
    """
    if low <= 0 or high < low or not math.isfinite(high):
        return []
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    factors = (1, 2, 5) if len(decades) <= 4 else (1,)
    stride = max(1, len(decades) // 6)
    ticks = [f * 10.0**d for d in decades[::stride] for f in factors]
    return [t for t in ticks if low * (1 - 1e-9) <= t <= high * (1 + 1e-9)]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Return the ticks as text, all with the same number of decimals; four digits have no comma, as they may be years.

    Examples
    --------
    >>> tick_labels([0.0, 0.25, 0.5])
    ['0.00', '0.25', '0.50']
    >>> tick_labels([2024, 2025, 2026])
    ['2024', '2025', '2026']
    >>> tick_labels([0, 5000, 10_000])
    ['0', '5,000', '10,000']
    """
    largest = max(map(abs, ticks), default=0.0)
    if largest >= 1e6 or 0 < largest < 1e-3:
        return [f"{t:.4g}" for t in ticks]
    for decimals in range(7):
        if all(abs(round(t, decimals) - t) <= 1e-9 * max(1.0, largest) for t in ticks):
            comma = "," if largest >= 10_000 else ""
            return [f"{t:{comma}.{decimals}f}" for t in ticks]
    return [f"{t:.4g}" for t in ticks]


def padded(low: float, high: float, share: float = 0.06) -> tuple[float, float]:
    """Widen a range a little; a range without length gets one.

    Examples
    --------
    >>> padded(0.0, 100.0)
    (-6.0, 106.0)
    >>> padded(2.0, 2.0)
    (1.8, 2.2)
    """
    extra = share * high - share * low if high > low else 0.1 * abs(low) or 1.0
    return max(low - extra, -sys.float_info.max), min(high + extra, sys.float_info.max)
