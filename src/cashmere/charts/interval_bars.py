"""Bars with intervals: values of named things along one axis, from a common origin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cashmere.base.text import clean_text
from cashmere.charts.axes import Scale, x_axis
from cashmere.charts.legends import legend_places
from cashmere.charts.marks import dot
from cashmere.charts.svg import CHARACTER, drawing, element, nothing_to_draw, svg_text, text_width, tooltip
from cashmere.charts.ticks import padded

_NAME_LENGTH = 34
_ROOM_FOR_NAMES = 0.4
"""Share of the width that names on the left may take."""

_COLOURS = ("s1", "s2", "s4")


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalBar:
    """One row of the chart.

    Attributes
    ----------
    label : str
        Its name.
    values : sequence of float
        One is drawn as a bar from the origin, several as dots of different colours.
    interval : (low, high) or None
        Drawn as a whisker.
    """

    label: str
    values: Sequence[float]
    interval: tuple[float, float] | None = None


def interval_bars(
    bars: Sequence[IntervalBar],
    *,
    title: str,
    description: str,
    x_label: str,
    origin: float = 0.0,
    series: Sequence[str] = (),
    labels_above: bool = False,
    width: int = 760,
    css: str = "",
) -> str:
    """Draw values as horizontal bars with whiskers, or several of each row as dots.

    Parameters
    ----------
    bars : sequence of IntervalBar
        Rows from top to bottom.
    title, x_label, width, css
        As in `line_chart`.
    description : str
        What the chart shows in detail, for those who cannot see it.
    origin : float
        Where bars begin; a line marks it, unless there are `series`.
    series : sequence of str
        What the several values of each row are, for the legend: at most three.
    labels_above : bool
        Names above the rows instead of on their left, for narrow drawings.
    """
    numbers = [v for bar in bars for v in (*bar.values, *(bar.interval or ()))]
    if not numbers or not all(map(math.isfinite, [*numbers, origin])):
        return nothing_to_draw(css)
    low, high = padded(min([origin, *numbers]), max([origin, *numbers]), share=0.03)
    room = _NAME_LENGTH if labels_above else min(_NAME_LENGTH, int(_ROOM_FOR_NAMES * width / CHARACTER))
    names = [clean_text(bar.label, room) for bar in bars]
    left = 12.0 if labels_above else 18 + max(map(text_width, names))
    pitch = 44.0 if labels_above else 28.0
    legend, top = _legend(series, width - 16)
    bottom = top + pitch * len(bars)
    x = Scale(low, high, left, width - 14.0)
    parts = legend or [element("path", class_="origin", d=f"M{x(origin):g} {top:g}V{bottom:g}")]
    for i, (bar, name) in enumerate(zip(bars, names, strict=True)):
        middle = top + pitch * (i + 1) - (13 if labels_above else 14)
        if labels_above:
            parts.append(element("text", svg_text(name), class_="name", x=left, y=middle - 12))
        else:
            parts.append(element("text", svg_text(name), class_="name", x=left - 10, y=middle + 4, text_anchor="end"))
        parts += _row(bar, x, middle, origin)
    parts += x_axis(x, bottom, x_label)
    return drawing(parts, width, int(bottom + 46), title=title, css=css, description=description)


def _row(bar: IntervalBar, x: Scale, middle: float, origin: float) -> list[str]:
    if len(bar.values) > 1:
        grid = element("path", class_="grid", d=f"M{x.start:g} {middle:g}H{x.end:g}")
        return [grid, *(dot(x(v), middle, 4.4, css) for v, css in zip(bar.values, _COLOURS, strict=False))]
    start, end = sorted((x(origin), x(bar.values[0])))
    tip = tooltip(f"{bar.label}: {bar.values[0]:.4g}", 120)
    parts = [element("rect", tip, class_="s1 soft", x=start, y=middle - 7, width=round(end - start, 1), height=14)]
    if bar.interval is not None:
        a, b = map(x, bar.interval)
        ends = f"M{a:g} {middle:g}H{b:g}M{a:g} {middle - 4:g}v8M{b:g} {middle - 4:g}v8"
        parts.append(element("path", class_="whisker", d=ends))
    return parts


def _legend(series: Sequence[str], room: float) -> tuple[list[str], float]:
    """Return the legend, and where the rows begin."""
    if not series:
        return [], 6.0
    names = [clean_text(name, 30) for name in series[: len(_COLOURS)]]
    places = legend_places((CHARACTER * len(name) + 34 for name in names), room=room, y=14.0, pitch=19)
    parts = []
    for name, css, (x, y) in zip(names, _COLOURS, places, strict=False):
        parts += [dot(x + 5, y - 4, 4.4, css), element("text", svg_text(name), class_="legend", x=x + 15, y=y)]
    return parts, places[-1][1] + 8
