"""Line charts: series of steps, lines, dots and marks over a common x axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cashmere.base.text import clean_text
from cashmere.charts.axes import Scale, x_axis, y_axis
from cashmere.charts.legends import legend_places
from cashmere.charts.marks import dot, thinned
from cashmere.charts.svg import CHARACTER, css_name, drawing, element, nothing_to_draw, svg_text
from cashmere.charts.ticks import nice_ticks, padded, tick_labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One thing drawn in a line chart.

    Attributes
    ----------
    label : str
        Its name in the legend; without one, it has no entry there.
    x, y : sequence of float
        Coordinates in ascending order of x. A ``"constant"`` has one y and no x, a ``"rug"`` x only.
    kind : {"step", "line", "segments", "dots", "constant", "rug"}
        A value that holds until the next one; joined points; pairs of joined points, one after the other; separate
        points; a dashed line across; short marks on the x axis.
    css : str
        Class that gives the colour.
    radius : float
        Of dots.
    """

    label: str
    x: Sequence[float] = ()
    y: Sequence[float] = ()
    kind: Literal["step", "line", "segments", "dots", "constant", "rug"] = "step"
    css: str = "s1"
    radius: float = 2.6


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    y_range: tuple[float, float] | None = None,
    log_x: bool = False,
    whole_x: bool = False,
    width: int = 760,
    height: int = 320,
    css: str = "",
) -> str:
    """Draw series over a common x axis.

    Parameters
    ----------
    series : sequence of Series
        Later ones are drawn above earlier ones. Values that are not finite are left out.
    title : str
        What the chart shows, for those who cannot see it.
    x_label, y_label : str
        Names of the axes.
    y_range : (low, high), optional
        Values shown; all by default. Dots and joined points outside are drawn on the edge; steps and constants are not
        drawn there. The legend says which are.
    log_x : bool
        Logarithmic x axis; x must then be positive.
    whole_x : bool
        Label whole numbers only on the x axis: it counts.
    width, height : int
        Size of the drawing; it scales with the page.
    css : str
        Class of the drawing.

    Returns
    -------
    str
        An ``<svg>`` element, or a sentence in ``<p>`` if there is nothing to draw.
    """
    drawn = [_finite(s) for s in series]
    xs = [x for s in drawn for x in s.x if not log_x or x > 0]
    ys = [y for s in drawn for y in s.y]
    if not xs or not ys:
        return nothing_to_draw(css)
    low, high = y_range if y_range is not None else (min(ys), max(ys))
    low, high = padded(low, high)
    y_ticks = nice_ticks(low, high, max(2, height // 60))
    y_texts = tick_labels(y_ticks)
    legend, legend_height = _legend([s for s in drawn if s.label and (s.y or s.x)], width - 16, (low, high))
    left = 16 + CHARACTER * max(map(len, y_texts), default=1) + 18
    right, top, bottom = width - 14.0, legend_height + 14.0, height - 44.0
    first, last = min(xs), max(xs)
    x = Scale(first, last if last > first else first + 1, left, right, log_x)
    y = Scale(low, high, bottom, top)
    parts = [*legend, *x_axis(x, bottom, x_label, whole=whole_x), *y_axis(y, y_ticks, y_texts, left, right, y_label)]
    for s in drawn:
        parts += _drawn(s, x, y)
    return drawing(parts, width, height, title=title, css=css)


def _drawn(series: Series, x: Scale, y: Scale) -> list[str]:
    css = css_name(series.css)
    points = [(a, b) for a, b in zip(series.x, series.y, strict=False) if not x.log or a > 0]
    if series.kind == "constant":
        if not series.y or series.y[0] not in y:
            return []
        height = y(series.y[0])
        return [element("line", class_=f"constant {css}", x1=x.start, x2=x.end, y1=height, y2=height)]
    if series.kind == "rug":
        marks = [x(a) for a in thinned(series.x) if not x.log or a > 0]
        path = "".join(f"M{a:g} {y.start:g}v-7" for a in marks)
        return [element("path", class_=f"rug {css}", d=path)] if path else []
    if series.kind == "dots":
        return [dot(x(a), y(b), series.radius, css, is_inside=b in y) for a, b in thinned(points)]
    if not points:
        return []
    if series.kind == "segments":
        places = [f"{x(a):g} {y(b):g}" for a, b in points]
        path = "".join(f"M{start}L{end}" for start, end in zip(places[::2], places[1::2], strict=True))
    elif series.kind == "line":
        path = "M" + "L".join(f"{x(a):g} {y(b):g}" for a, b in thinned(points))
    else:
        path = _steps(points, x, y)
    return [element("path", class_=f"step {css}", d=path)]


def _steps(points: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    """Return the path of values that each hold until the next one, and the last to the end of the axis.

    Where the values are outside the range, only the way out to the edge and back is drawn.
    """
    path = f"M{x(points[0][0]):g} {y(points[0][1]):g}"
    previous = points[0][1]
    for a, b in points[1:]:
        if b != previous:
            along = f"H{x(a):g}" if previous in y else f"M{x(a):g} {y(previous):g}"
            path += f"{along}V{y(b):g}"
            previous = b
    return path + (f"H{x.end:g}" if previous in y else "")


def _finite(series: Series) -> Series:
    """Return a series without values that are not finite."""
    if series.kind in ("constant", "rug"):
        return replace(series, x=list(filter(math.isfinite, series.x)), y=list(filter(math.isfinite, series.y)))
    pairs = [(x, y) for x, y in zip(series.x, series.y, strict=True) if math.isfinite(x) and math.isfinite(y)]
    return replace(series, x=[x for x, _ in pairs], y=[y for _, y in pairs])


def _legend(series: Sequence[Series], width: float, shown: tuple[float, float]) -> tuple[list[str], float]:
    """Return the legend and the height it takes."""
    texts = []
    for s in series:
        texts.append(clean_text(s.label, 60) + _off_the_chart(s, shown))
    places = legend_places((24 + CHARACTER * len(text) + 14 for text in texts), room=width, y=14.0, pitch=19)
    parts = []
    for s, text, (x, y) in zip(series, texts, places, strict=True):
        parts.append(_sample(s, x, y))
        parts.append(element("text", svg_text(text, 80), class_="legend", x=x + 24, y=y))
    return parts, places[-1][1] if places else 14.0


def _off_the_chart(series: Series, shown: tuple[float, float]) -> str:
    """Return what the legend says about values outside the range."""
    if series.kind == "rug":
        return ""
    n_outside = sum(not shown[0] <= value <= shown[1] for value in series.y)
    if n_outside == 0:
        return ""
    if n_outside == len(series.y):
        return " – off the chart"
    return f" – {n_outside:,} off the chart" if series.kind == "dots" else " – partly off the chart"


def _sample(series: Series, x: float, y: float) -> str:
    """Draw the symbol of a series for the legend."""
    css = css_name(series.css)
    if series.kind == "dots":
        return dot(x + 9, y - 4, max(3.2, series.radius), css)
    if series.kind == "rug":
        return element("path", class_=f"rug {css}", d=f"M{x + 5:g} {y:g}v-8m4 8v-8m4 8v-8")
    kind = "constant" if series.kind == "constant" else "step"
    return element("path", class_=f"{kind} {css}", d=f"M{x:g} {y - 4:g}h18")
