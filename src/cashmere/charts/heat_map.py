"""Heat maps: a symmetric matrix as coloured cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cashmere.base.text import clean_text
from cashmere.charts.shades import opacity, shade_scale
from cashmere.charts.svg import CHARACTER, drawing, element, nothing_to_draw, svg_text, tooltip

_CELL = 46.0
"""Largest side of a cell."""

_LEAST_SIDE_FOR_NAMES = 27.0
"""Smallest side of a cell beside long names; names are shortened before cells get smaller."""

_TEXTS_UP_TO = 12
"""Largest number of rows with which cells show their values as text."""

_DIGIT = 6.2
"""Mean width of a character in a cell."""


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
        What the map shows in detail, for those who cannot see it.
    legend : str
        What the colours mean.
    """
    values = [v for i, row in enumerate(matrix) for j, v in enumerate(row) if i != j and math.isfinite(v)]
    if not values:
        return nothing_to_draw(css)
    n, largest = len(matrix), max(values)
    # The colours span at least a fifth of the largest value, so that nearly equal values look alike.
    lowest = max(0.0, min(1.25 * min(values) - 0.25 * largest, 0.8 * largest))
    short = [clean_text(key, 8) for key in keys]
    long = [f"{clean_text(name, 22)} {key}" for name, key in zip(names, short, strict=True)]
    if _side(long, n, width) < _LEAST_SIDE_FOR_NAMES:
        long = short
    left, side = _left(long), _side(long, n, width)
    turned = CHARACTER * max(map(len, short)) > side - 4
    top = 12 + (CHARACTER * max(map(len, short)) if turned else 10.0)
    grid = _Grid(left, top, side)
    texts = {v: _cell_text(v, largest) for v in values}
    is_written = n <= _TEXTS_UP_TO and _DIGIT * max(map(len, texts.values())) <= side - 3
    parts = []
    for i, row in enumerate(matrix):
        parts += _heads(grid, i, long[i], short[i], turned=turned)
        for j, value in enumerate(row):
            if i == j or not math.isfinite(value):
                parts.append(element("rect", class_="track", **grid.box(i, j)))
                continue
            shade = opacity((value - lowest) / (largest - lowest) if largest > 0 else 0.0)
            tip = f"{long[i]}, {long[j]}: {texts[value]}"
            parts += _cell(grid, i, j, shade, texts[value], tip, is_written=is_written)
    bottom = top + side * n + 16
    parts += _scale(bottom, _cell_text(lowest, largest), _cell_text(largest, largest), legend)
    return drawing(parts, width, int(bottom + 38), title=title, css=css, description=description)


@dataclass(frozen=True, slots=True)
class _Grid:
    """A grid of square cells; `left` and `top` are the corner of the first."""

    left: float
    top: float
    side: float

    def box(self, i: int, j: int) -> dict[str, str]:
        """Return the place and the size of a cell, with a gap to the next."""
        x, y, size = self.left + self.side * j, self.top + self.side * i, self.side - 1
        return {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{size:.1f}", "height": f"{size:.1f}"}

    def middle(self, i: int) -> float:
        """Return the y coordinate of the middle of a row."""
        return round(self.top + self.side * (i + 0.5), 1)


def _left(names: Sequence[str]) -> float:
    """Return where the cells start, to the right of these names."""
    return 18 + CHARACTER * max(map(len, names))


def _side(names: Sequence[str], n: int, width: int) -> float:
    """Return the side of the cells beside these names."""
    return min(_CELL, (width - _left(names) - 8) / n)


def _heads(grid: _Grid, i: int, name: str, key: str, *, turned: bool) -> list[str]:
    """Write the name of a row, and of the column with the same number; turned where columns are narrow."""
    x, y = round(grid.left + grid.side * (i + 0.5), 1), grid.top - 6
    place: dict[str, float | str] = {"x": x, "y": y, "text_anchor": "middle"}
    if turned:
        place = {"x": x + 4, "y": y, "text_anchor": "start", "transform": f"rotate(-90 {x + 4:g} {y:g})"}
    return [
        element("text", svg_text(name), class_="name", x=grid.left - 8, y=grid.middle(i) + 4, text_anchor="end"),
        element("text", svg_text(key), class_="tick", **place),
    ]


def _cell(grid: _Grid, i: int, j: int, shade: float, text: str, tip: str, *, is_written: bool) -> list[str]:
    """Draw a cell with its value as text, or as a tooltip if there is no room for text."""
    content = () if is_written else (tooltip(tip, 120),)
    parts = [element("rect", *content, class_="cell", fill_opacity=f"{shade:.2f}", **grid.box(i, j))]
    if is_written:
        x = f"{grid.left + grid.side * j + grid.side / 2 - 0.5:.1f}"
        parts.append(element("text", text, class_="value", x=x, y=grid.middle(i) + 3.5, text_anchor="middle"))
    return parts


def _scale(y: float, low: str, high: str, legend: str) -> list[str]:
    """Draw the scale of shades with its ends and, below it, their meaning."""
    start = 14 + CHARACTER * len(low)
    return [
        *shade_scale(start, f"{y:.1f}", n=12, width=10, height=10),
        element("text", low, class_="tick", x=8, y=f"{y + 9:.1f}"),
        element("text", high, class_="tick", x=start + 126, y=f"{y + 9:.1f}"),
        element("text", svg_text(legend, 120), class_="label", x=8, y=f"{y + 29:.1f}"),
    ]


def _cell_text(value: float, largest: float) -> str:
    """Return a value with about two digits, all cells with the same number of decimals."""
    if largest >= 1e4 or 0 < largest < 1e-3:
        return f"{value:.1e}"
    return f"{value:.{max(0, 1 - math.floor(math.log10(largest))) if largest > 0 else 0}f}"
