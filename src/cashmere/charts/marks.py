"""Dots of charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from cashmere.charts.svg import element

_T = TypeVar("_T")

MAX_DOTS = 1500
"""Largest number of points drawn, to bound the size of a page."""


def dot(x: float, y: float, radius: float, css: str, *, is_inside: bool = True) -> str:
    """Draw a value; a value outside the range is moved to the edge and pale."""
    return element("circle", class_=f"dot {css}{'' if is_inside else ' edge'}", cx=x, cy=y, r=radius)


def thinned(points: Sequence[_T]) -> Sequence[_T]:
    """Return the points, thinned out evenly if there are too many."""
    return points[:: math.ceil(len(points) / MAX_DOTS)] if len(points) > MAX_DOTS else points
