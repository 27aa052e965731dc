"""Strip charts: the values of several groups as rows of dots over one axis."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from cashmere.base.text import clean_text
from cashmere.charts.axes import Scale, x_axis
from cashmere.charts.marks import dot, thinned
from cashmere.charts.svg import CHARACTER, drawing, element, nothing_to_draw, svg_text
from cashmere.charts.ticks import padded


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One row of a strip chart.

    Attributes
    ----------
    label : str
        Its name.
    values : sequence of float
        Drawn as dots.
    marked : float or None
        The value drawn as a large dot.
    """

    label: str
    values: Sequence[float]
    marked: float | None = None


def strip_chart(
    strips: Sequence[Strip],
    *,
    title: str,
    x_label: str,
    x_range: tuple[float, float] | None = None,
    labels_above: bool = False,
    width: int = 760,
    css: str = "",
) -> str:
    """Draw the values of several groups as rows of dots over one axis, with the median as a bar.

    Parameters
    ----------
    strips : sequence of Strip
        Rows from top to bottom.
    title, x_label, width, css
        As in `line_chart`.
    x_range : (low, high), optional
        Values shown; others are drawn on the edge.
    labels_above : bool
        Names above the rows instead of on their left, for narrow drawings.
    """
    values = [[v for v in s.values if math.isfinite(v)] for s in strips]
    joined = [v for row in values for v in row]
    if not joined:
        return nothing_to_draw(css)
    low, high = padded(*(x_range if x_range is not None else (min(joined), max(joined))), share=0.03)
    names = [clean_text(s.label, 26) for s in strips]
    left = 12.0 if labels_above else 18 + CHARACTER * max(map(len, names))
    pitch = 44.0 if labels_above else 30.0
    bottom = 8 + pitch * len(strips)
    x = Scale(low, high, left, width - 14.0)
    parts: list[str] = []
    for i, (strip, name, row) in enumerate(zip(strips, names, values, strict=True)):
        middle = 8 + pitch * (i + 1) - 15
        parts.append(
            element("text", svg_text(name), class_="name", x=left, y=middle - 14)
            if labels_above
            else element("text", svg_text(name), class_="name", x=left - 10, y=middle + 4, text_anchor="end")
        )
        parts += _row(row, strip.marked, x, middle)
    parts += x_axis(x, bottom, x_label)
    return drawing(parts, width, int(bottom + 46), title=title, css=css)


def _row(values: Sequence[float], marked: float | None, x: Scale, middle: float) -> list[str]:
    """Draw the dots of a group on a thin line, its median and the value to be marked."""
    parts = [element("path", class_="grid", d=f"M{x.start:g} {middle:g}H{x.end:g}")]
    parts += [dot(x(value), middle, 3.4, "s0", is_inside=value in x) for value in thinned(values)]
    if values and (median := statistics.median(values)) in x:
        parts.append(element("path", class_="median", d=f"M{x(median):g} {middle - 8:g}v16"))
    if marked is not None and math.isfinite(marked):
        parts.append(dot(x(marked), middle, 4.6, "best", is_inside=marked in x))
    return parts
