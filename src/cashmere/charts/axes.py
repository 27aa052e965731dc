"""Axes: from data to drawing units, with ticks and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cashmere.charts.svg import CHARACTER, element, svg_text
from cashmere.charts.ticks import log_ticks, nice_ticks, tick_labels


@dataclass(frozen=True, slots=True)
class Scale:
    """A map from data to drawing units; values outside are moved to the edge."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the position of a value."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        half = high / 2 - low / 2  # so that a range of nearly all floats does not overflow
        share = (value / 2 - low / 2) / half if half > 0 else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    def __contains__(self, value: float) -> bool:
        """Return whether a value is inside the range."""
        return self.low <= value <= self.high


def x_axis(x: Scale, bottom: float, label: str, *, whole: bool = False) -> list[str]:
    """Draw a line at the bottom, with as many ticks as fit, if need be at whole numbers only, and the axis's name."""
    room = max(2, int((x.end - x.start) / 80))
    ticks = log_ticks(x.low, x.high) if x.log else nice_ticks(x.low, x.high, room)
    if whole:
        ticks = [tick for tick in ticks if float(tick).is_integer()]
    texts = [f"{tick:,.6g}" for tick in ticks] if x.log else tick_labels(ticks)
    parts = [element("path", class_="axis", d=f"M{x.start:g} {bottom:g}H{x.end:g}")]
    free = -math.inf
    for tick, text in zip(ticks, texts, strict=True):
        place, half = x(tick), CHARACTER * len(text) / 2
        if place - half < free or place + half > x.end + 14:
            continue
        free = place + half + 6
        parts.append(element("path", class_="axis", d=f"M{place:g} {bottom:g}v5"))
        parts.append(element("text", text, class_="tick", x=place, y=bottom + 18, text_anchor="middle"))
    middle = (x.start + x.end) / 2
    parts.append(element("text", svg_text(label), class_="label", x=middle, y=bottom + 37, text_anchor="middle"))
    return parts


def y_axis(y: Scale, ticks: Sequence[float], texts: Sequence[str], left: float, right: float, label: str) -> list[str]:
    """Draw grid lines at the ticks, with their texts on the left, and the name of the axis, turned."""
    parts = []
    for tick, text in zip(ticks, texts, strict=True):
        place = y(tick)
        parts.append(element("path", class_="grid", d=f"M{left:g} {place:g}H{right:g}"))
        parts.append(element("text", text, class_="tick", x=left - 7, y=place + 4, text_anchor="end"))
    middle = (y.start + y.end) / 2
    turn = f"rotate(-90 12 {middle:g})"
    parts.append(
        element("text", svg_text(label, 50), class_="label", x=12, y=middle, text_anchor="middle", transform=turn)
    )
    return parts
