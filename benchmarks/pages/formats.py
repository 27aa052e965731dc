"""How results are shown in tables of pages."""

from __future__ import annotations

from collections.abc import Iterable


def bold_lowest(values: Iterable[float], form: str) -> list[str]:
    """Return numbers, the lowest of them bold."""
    shown = [format(value, form) for value in values]
    lowest = min(map(float, shown))
    return [f"**{text}**" if float(text) == lowest else text for text in shown]
