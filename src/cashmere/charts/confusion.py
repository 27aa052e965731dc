"""Confusion matrices as coloured cells: true classes down, predicted classes across."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cashmere.base.text import clean_text
from cashmere.charts.shades import opacity
from cashmere.charts.svg import CHARACTER, drawing, element, nothing_to_draw, svg_text, text_width, tooltip

_NAME_LENGTH = 16
_ROW_HEIGHTS = (30.0, 110.0)
"""Smallest and largest height of a row."""

_ROOM_FOR_COUNT = 44.0
"""Smallest height of a cell that also shows its number of rows."""


def confusion_chart(
    counts: Sequence[Sequence[float]],
    *,
    labels: Sequence[str],
    title: str,
    description: str,
    width: int = 420,
    height: int = 330,
    css: str = "",
) -> str:
    """Draw how many rows of each class were taken for which class; the shade of a cell is its share of the row.

    Parameters
    ----------
    counts : (n_classes, n_classes) sequence of sequences
        Rows by true class (down) and predicted class (across).
    labels : (n_classes,) sequence of str
        Names of the classes.
    title, width, css
        As in `line_chart`.
    description : str
        What the chart shows in detail, for those who cannot see it.
    height : int
        Height wanted; with many classes the drawing is higher.
    """
    n = len(counts)
    if not n or not any(map(sum, counts)):
        return nothing_to_draw(css)
    names = [clean_text(label, _NAME_LENGTH) for label in labels]
    longest = max(map(text_width, names))
    left, right = 36 + longest, width - 8.0
    cell_width = (right - left) / n
    turned = longest > cell_width - 6
    top = 30 + (longest if turned else 12.0)
    row_height = min(max((height - top - 12) / n, _ROW_HEIGHTS[0]), _ROW_HEIGHTS[1])
    bottom = top + row_height * n
    parts = [
        element("text", "predicted", class_="label", x=(left + right) / 2, y=14, text_anchor="middle"),
        _turned("true", 14, (top + bottom) / 2, css="label", anchor="middle"),
    ]
    sign = " %" if CHARACTER * len("100 %") <= cell_width - 4 else ""
    for i, (name, row) in enumerate(zip(names, counts, strict=True)):
        x, y = left + cell_width * (i + 0.5), top + row_height * (i + 0.5)
        parts.append(element("text", svg_text(name), class_="name", x=left - 8, y=y + 4, text_anchor="end"))
        if turned:
            parts.append(_turned(svg_text(name), x + 4, top - 8, css="name", anchor="start"))
        else:
            parts.append(element("text", svg_text(name), class_="name", x=x, y=top - 8, text_anchor="middle"))
        total = math.fsum(row)
        for j, count in enumerate(row):
            share = count / total if total > 0 else 0.0
            tip = f"{count:,.0f} rows of class {names[i]} taken for {names[j]}, {100 * share:.3g} %"
            corner = (left + cell_width * j, top + row_height * i)
            text = f"{100 * share:.0f}{sign}" if share >= 0.005 else f"<1{sign}"
            parts += _cell(corner, (cell_width - 1.5, row_height - 1.5), count, text, share, tip)
    return drawing(parts, width, int(bottom + 10), title=title, css=css, description=description)


def _cell(
    corner: tuple[float, float], size: tuple[float, float], count: float, text: str, share: float, tip: str
) -> list[str]:
    """Draw a cell with its share as text and, if there is room, its number of rows."""
    (x, y), (width, height) = corner, size
    box: dict[str, float | str] = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
    if count <= 0:
        return [element("rect", tooltip(tip, 160), class_="track", **box)]
    parts = [element("rect", tooltip(tip, 160), class_="cell", fill_opacity=f"{opacity(share):.2f}", **box)]
    number = f"{count:,.0f}"
    has_count = height >= _ROOM_FOR_COUNT and CHARACTER * len(number) < width
    middle, y = f"{x + width / 2:.1f}", y + height / 2
    place = f"{y - 1 if has_count else y + 4.5:.1f}"
    parts.append(element("text", svg_text(text), class_="share", x=middle, y=place, text_anchor="middle"))
    if has_count:
        parts.append(element("text", number, class_="value", x=middle, y=f"{y + 15:.1f}", text_anchor="middle"))
    return parts


def _turned(text: str, x: float, y: float, *, css: str, anchor: str) -> str:
    """Write a text upwards."""
    turn = f"rotate(-90 {x:g} {y:g})"
    return element("text", text, class_=css, x=x, y=y, text_anchor=anchor, transform=turn)
