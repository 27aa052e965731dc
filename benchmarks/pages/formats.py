"""How results are shown in tables of pages."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def bold_lowest(values: Iterable[float], form: str) -> list[str]:
    """Return numbers, the lowest of them bold."""
    shown = [format(value, form) for value in values]
    lowest = min(map(float, shown))
    return [f"**{text}**" if float(text) == lowest else text for text in shown]


def per_cent_change(log_ratio: float) -> str:
    """Return a ratio, given as its logarithm, as a change in per cent; nothing for NaN."""
    return "" if np.isnan(log_ratio) else f"{100 * np.expm1(log_ratio):+.1f}"
