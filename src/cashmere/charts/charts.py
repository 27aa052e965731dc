"""Charts as SVG text, made by pure functions: numbers in, markup out; no script, no outside reference.

Colours and fonts come from the page: every element carries a class (``axis``, ``grid``, ``tick``, ``dot``, ``step``,
``constant``, ``rug``, ``s1`` ... for the series) that the style sheet of the report knows.
"""

from __future__ import annotations

import html
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from cashmere.base.text import clean_text

_T = TypeVar("_T")

_CHARACTER = 6.8
"""Mean width of a character at the charts' font size of 12, in units of the drawing."""

MAX_DOTS = 1500
"""Points drawn at most, to bound the size of a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One thing drawn in a line chart.

    Attributes
    ----------
    label : str
        Its name in the legend; a blank one is not there.
    x, y : sequence of float
        Coordinates in ascending order of x. A ``"constant"`` has one y and no x, a ``"rug"`` x only.
    kind : {"step", "line", "dots", "constant", "rug"}
        A value that holds until the next one; joined points; separate points; a dashed line across; short marks on the
        x axis.
    css : str
        Class that gives the colour.
    """

    label: str
    x: Sequence[float] = ()
    y: Sequence[float] = ()
    kind: Literal["step", "line", "dots", "constant", "rug"] = "step"
    css: str = "s1"


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
    """Return the ticks as text, all with the same number of decimals.

    Examples
    --------
    >>> tick_labels([0.0, 0.25, 0.5])
    ['0.00', '0.25', '0.50']
    >>> tick_labels([0, 500, 1000])
    ['0', '500', '1,000']
    """
    largest = max(map(abs, ticks), default=0.0)
    if largest >= 1e6 or 0 < largest < 1e-3:
        return [f"{t:.4g}" for t in ticks]
    for decimals in range(7):
        if all(abs(round(t, decimals) - t) <= 1e-9 * max(1.0, largest) for t in ticks):
            return [f"{t:,.{decimals}f}" for t in ticks]
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


@dataclass(frozen=True, slots=True)
class _Scale:
    """A map from data to drawing units; values outside are moved to the edge."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        # Halved, so that a range of nearly all floats does not overflow.
        share = (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    y_range: tuple[float, float] | None = None,
    log_x: bool = False,
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
        Values shown; all by default. Others are drawn on the edge; a constant outside is only named in the legend.
    log_x : bool
        Logarithmic x axis; x must then be positive.
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
        return f'<p class="empty {svg_attribute(css)}">Nothing to draw yet.</p>'
    low, high = y_range if y_range is not None else (min(ys), max(ys))
    low, high = padded(low, high)
    y_ticks = nice_ticks(low, high, max(2, height // 60))
    y_texts = tick_labels(y_ticks)
    legend = _legend([s for s in drawn if s.label and (s.y or s.x)], width - 16, (low, high))
    left = 16 + _CHARACTER * max(map(len, y_texts), default=1) + 18
    right, top, bottom = width - 14.0, legend[1] + 14.0, height - 44.0
    first, last = min(xs), max(xs)
    x = _Scale(first, last if last > first else first + 1, left, right, log_x)
    y = _Scale(low, high, bottom, top)
    parts = [legend[0], *_x_axis(x, bottom, top, x_label), *_y_axis(y, y_ticks, y_texts, left, right, y_label)]
    for s in drawn:
        parts.extend(_drawn(s, x, y))
    return svg_element(parts, width, height, title, css)


def _drawn(series: Series, x: _Scale, y: _Scale) -> list[str]:
    css = svg_attribute(series.css)
    points = [(a, b) for a, b in zip(series.x, series.y, strict=False) if not x.log or a > 0]
    if series.kind == "constant":
        if not series.y or series.y[0] not in y:
            return []
        height = y(series.y[0])
        return [f'<line class="constant {css}" x1="{x.start:g}" x2="{x.end:g}" y1="{height:g}" y2="{height:g}"/>']
    if series.kind == "rug":
        marks = [x(a) for a in _thinned(series.x) if not x.log or a > 0]
        path = "".join(f"M{a:g} {y.start:g}v-7" for a in marks)
        return [f'<path class="rug {css}" d="{path}"/>'] if path else []
    if series.kind == "dots":
        return [
            f'<circle class="dot {css}{"" if b in y else " edge"}" cx="{x(a):g}" cy="{y(b):g}" r="2.6"/>'
            for a, b in _thinned(points)
        ]
    if not points:
        return []
    if series.kind == "line":
        path = "M" + "L".join(f"{x(a):g} {y(b):g}" for a, b in _thinned(points))
        return [f'<path class="step {css}" d="{path}"/>']
    path = f"M{x(points[0][0]):g} {y(points[0][1]):g}"
    previous = points[0][1]
    for a, b in points[1:]:
        if b != previous:
            path += f"H{x(a):g}V{y(b):g}"
            previous = b
    path += f"H{x.end:g}"
    return [f'<path class="step {css}" d="{path}"/>']


def _thinned(points: Sequence[_T]) -> Sequence[_T]:
    return points[:: math.ceil(len(points) / MAX_DOTS)] if len(points) > MAX_DOTS else points


def _finite(series: Series) -> Series:
    if series.kind in ("constant", "rug"):
        return Series(
            label=series.label,
            x=[x for x in series.x if math.isfinite(x)],
            y=[y for y in series.y if math.isfinite(y)],
            kind=series.kind,
            css=series.css,
        )
    pairs = [(x, y) for x, y in zip(series.x, series.y, strict=True) if math.isfinite(x) and math.isfinite(y)]
    return Series(
        label=series.label, x=[x for x, _ in pairs], y=[y for _, y in pairs], kind=series.kind, css=series.css
    )


def _x_axis(x: _Scale, bottom: float, top: float, label: str) -> list[str]:
    room = max(2, int((x.end - x.start) / 80))
    ticks = log_ticks(x.low, x.high) if x.log else nice_ticks(x.low, x.high, room)
    parts = [f'<path class="axis" d="M{x.start:g} {bottom:g}H{x.end:g}"/>']
    free = -math.inf
    for tick, text in zip(ticks, tick_labels(ticks) if not x.log else [f"{t:,.6g}" for t in ticks], strict=True):
        place, half = x(tick), _CHARACTER * len(text) / 2
        if place - half < free or place + half > x.end + 14:
            continue
        free = place + half + 6
        parts.append(f'<path class="axis" d="M{place:g} {bottom:g}v5"/>')
        parts.append(f'<text class="tick" x="{place:g}" y="{bottom + 18:g}" text-anchor="middle">{text}</text>')
    middle = (x.start + x.end) / 2
    parts.append(
        f'<text class="label" x="{middle:g}" y="{bottom + 37:g}" text-anchor="middle">{svg_text(label)}</text>'
    )
    return parts


def _y_axis(
    y: _Scale, ticks: Sequence[float], texts: Sequence[str], left: float, right: float, label: str
) -> list[str]:
    parts = []
    for tick, text in zip(ticks, texts, strict=True):
        place = y(tick)
        parts.append(f'<path class="grid" d="M{left:g} {place:g}H{right:g}"/>')
        parts.append(f'<text class="tick" x="{left - 7:g}" y="{place + 4:g}" text-anchor="end">{text}</text>')
    middle = (y.start + y.end) / 2
    turn = f'transform="rotate(-90 12 {middle:g})"'
    parts.append(f'<text class="label" x="12" y="{middle:g}" text-anchor="middle" {turn}>{svg_text(label, 50)}</text>')
    return parts


def _legend(series: Sequence[Series], width: float, shown: tuple[float, float]) -> tuple[str, float]:
    """Return the legend and the height it takes."""
    parts, x, y = [], 8.0, 14.0
    for s in series:
        text = clean_text(s.label, 60)
        if s.kind == "constant" and not (s.y and shown[0] <= s.y[0] <= shown[1]):
            text += " – off the chart"
        needed = 24 + _CHARACTER * len(text) + 14
        if x + needed > width and x > 8:
            x, y = 8.0, y + 19
        css = svg_attribute(s.css)
        if s.kind == "dots":
            mark = f'<circle class="dot {css}" cx="{x + 9:g}" cy="{y - 4:g}" r="3.2"/>'
        elif s.kind == "rug":
            mark = f'<path class="rug {css}" d="M{x + 5:g} {y:g}v-8m4 8v-8m4 8v-8"/>'
        else:
            kind = "constant" if s.kind == "constant" else "step"
            mark = f'<path class="{kind} {css}" d="M{x:g} {y - 4:g}h18"/>'
        parts.append(f'{mark}<text class="legend" x="{x + 24:g}" y="{y:g}">{svg_text(text, 80)}</text>')
        x += needed
    return "".join(parts), y


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
        return f'<p class="empty {svg_attribute(css)}">Nothing to draw yet.</p>'
    low, high = padded(*(x_range if x_range is not None else (min(joined), max(joined))), share=0.03)
    names = [clean_text(s.label, 26) for s in strips]
    left = 12.0 if labels_above else 18 + _CHARACTER * max(map(len, names))
    pitch = 44.0 if labels_above else 30.0
    bottom = 8 + pitch * len(strips)
    x = _Scale(low, high, left, width - 14.0)
    parts = []
    for i, (strip, name, row) in enumerate(zip(strips, names, values, strict=True)):
        middle = 8 + pitch * (i + 1) - 15
        if labels_above:
            parts.append(f'<text class="name" x="{left:g}" y="{middle - 14:g}">{svg_text(name)}</text>')
        else:
            parts.append(
                f'<text class="name" x="{left - 10:g}" y="{middle + 4:g}" text-anchor="end">{svg_text(name)}</text>'
            )
        parts.append(f'<path class="grid" d="M{left:g} {middle:g}H{x.end:g}"/>')
        for value in _thinned(row):
            edge = "" if value in x else " edge"
            parts.append(f'<circle class="dot s0{edge}" cx="{x(value):g}" cy="{middle:g}" r="3.4"/>')
        if row and (median := statistics.median(row)) in x:
            parts.append(f'<path class="median" d="M{x(median):g} {middle - 8:g}v16"/>')
        if strip.marked is not None and math.isfinite(strip.marked):
            edge = "" if strip.marked in x else " edge"
            parts.append(f'<circle class="dot best{edge}" cx="{x(strip.marked):g}" cy="{middle:g}" r="4.6"/>')
    parts.extend(_x_axis(x, bottom, 8, x_label))
    return svg_element(parts, width, int(bottom + 46), title, css)


_CELL = 46.0
"""Largest side of a cell of a heat map."""

_TEXTS_UP_TO = 12
"""Rows up to which cells hold their values as text."""


def heat_map(
    matrix: Sequence[Sequence[float]],
    *,
    names: Sequence[str],
    keys: Sequence[str],
    title: str,
    description: str,
    legend: str,
    width: int = 760,
    css: str = "",
) -> str:
    """Draw a symmetric matrix of non-negative numbers as coloured cells, the diagonal blank.

    Parameters
    ----------
    matrix : (n, n) sequence of sequences
        Numbers; those that are not finite stay blank.
    names, keys : (n,) sequence of str
        Long and short name of each row; columns, and rows without much room, have the short one.
    title, width, css
        As in `line_chart`.
    description : str
        What is to be seen, for those who cannot see it.
    legend : str
        What the colours mean.
    """
    values = [v for i, row in enumerate(matrix) for j, v in enumerate(row) if i != j and math.isfinite(v)]
    if not values:
        return f'<p class="empty {svg_attribute(css)}">Nothing to draw yet.</p>'
    n, largest = len(matrix), max(values)
    # Nearly equal values look so: the colours span a fifth of the largest at least.
    lowest = max(0.0, min(1.25 * min(values) - 0.25 * largest, 0.8 * largest))
    short = [clean_text(key, 8) for key in keys]
    long = [f"{clean_text(name, 22)} {key}" for name, key in zip(names, short, strict=True)]
    left, side = _heat_map_grid(long, n, width)
    if side < 27:
        long = short
        left, side = _heat_map_grid(long, n, width)
    turned = _CHARACTER * max(map(len, short)) > side - 4
    top = 12 + (_CHARACTER * max(map(len, short)) if turned else 10.0)
    texts = {v: _cell_text(v, largest) for v in values}
    written = n <= _TEXTS_UP_TO and 6.2 * max(map(len, texts.values())) <= side - 3
    parts = []
    for i, row in enumerate(matrix):
        y, middle = top + side * i, round(top + side * (i + 0.5), 1)
        x_middle = round(left + side * (i + 0.5), 1)
        turn = f' transform="rotate(-90 {x_middle + 4:g} {top - 6:g})"' if turned else ""
        head = f'x="{x_middle + 4 * turned:g}" y="{top - 6:g}" text-anchor="{"start" if turned else "middle"}"{turn}'
        parts.append(
            f'<text class="name" x="{left - 8:g}" y="{middle + 4:g}" text-anchor="end">{svg_text(long[i])}</text>'
            f'<text class="tick" {head}>{svg_text(short[i])}</text>'
        )
        for j, value in enumerate(row):
            x = left + side * j
            box = f'x="{x:.1f}" y="{y:.1f}" width="{side - 1:.1f}" height="{side - 1:.1f}"'
            if i == j or not math.isfinite(value):
                parts.append(f'<rect class="track" {box}/>')
                continue
            share = f'fill-opacity="{_shade((value - lowest) / (largest - lowest) if largest > 0 else 0.0):.2f}"'
            if written:
                centre = f'x="{x + side / 2 - 0.5:.1f}" y="{middle + 3.5:g}" text-anchor="middle"'
                parts.append(f'<rect class="cell" {share} {box}/><text class="value" {centre}>{texts[value]}</text>')
            else:
                pair = svg_text(f"{long[i]}, {long[j]}: {texts[value]}", 120)
                parts.append(f'<rect class="cell" {share} {box}><title>{pair}</title></rect>')
    bottom = top + side * n + 16
    low, high = (_cell_text(value, largest) for value in (lowest, largest))
    start = 14 + _CHARACTER * len(low)
    for step in range(12):
        box = f'x="{start + 10 * step:g}" y="{bottom:.1f}" width="10" height="10"'
        parts.append(f'<rect class="cell" fill-opacity="{_shade(step / 11):.2f}" {box}/>')
    parts.append(
        f'<text class="tick" x="8" y="{bottom + 9:.1f}">{low}</text>'
        f'<text class="tick" x="{start + 126:g}" y="{bottom + 9:.1f}">{high}</text>'
        f'<text class="label" x="8" y="{bottom + 29:.1f}">{svg_text(legend, 120)}</text>'
    )
    return svg_element(parts, width, int(bottom + 38), title, css, description)


def _heat_map_grid(names: Sequence[str], n: int, width: int) -> tuple[float, float]:
    """Return where the cells begin and how wide they are."""
    left = 18 + _CHARACTER * max(map(len, names))
    return left, min(_CELL, (width - left - 8) / n)


def _shade(share: float) -> float:
    return 0.05 + 0.95 * min(max(share, 0.0), 1.0)


def _cell_text(value: float, largest: float) -> str:
    """Return a value with about two digits, all cells with the same number of decimals."""
    if largest >= 1e4 or 0 < largest < 1e-3:
        return f"{value:.1e}"
    return f"{value:.{max(0, 1 - math.floor(math.log10(largest))) if largest > 0 else 0}f}"


def bar(share: float, *, title: str, css: str = "s1", track: bool = False) -> str:
    """Draw one horizontal bar that fills the width of its cell; the row of a table is its label.

    Parameters
    ----------
    share : float
        Length, in [0, 1].
    title : str
        What it shows.
    css : str
        Class that gives the colour.
    track : bool
        Whether the full length is shown behind it.

    Examples
    --------
    >>> bar(0.5, title="one half")
    '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img"><title>one
    half</title><rect class="s1" width="50" height="10"/></svg>'
    """
    share = min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img">'
        f"<title>{svg_text(title)}</title>"
        + ('<rect class="track" width="100" height="10"/>' if track else "")
        + f'<rect class="{svg_attribute(css)}" width="{round(100 * share, 2):g}" height="10"/></svg>'
    )


def svg_element(parts: Sequence[str], width: int, height: int, title: str, css: str, description: str = "") -> str:
    """Return a drawing of these parts, with what it shows in words."""
    head = f'<svg class="chart {svg_attribute(css)}" viewBox="0 0 {width} {height}" role="img">'
    told = f"<desc>{svg_text(description, 600)}</desc>" if description else ""
    return f"{head}<title>{svg_text(title, 300)}</title>{told}{''.join(parts)}</svg>"


def svg_text(text: str, limit: int = 80) -> str:
    """Return a text made fit to stand between tags, cut to a number of characters."""
    return html.escape(clean_text(text, limit))


def svg_attribute(text: str) -> str:
    """Return a text made fit to stand between the quotes of an attribute."""
    return html.escape(clean_text(text, 80), quote=True)
