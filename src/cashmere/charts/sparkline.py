"""Curves without axes, as small as a word; their colours are in the drawing, for pages without our style sheet."""

from __future__ import annotations

from collections.abc import Sequence

from cashmere.charts.axes import Scale
from cashmere.charts.marks import thinned
from cashmere.charts.svg import element, tooltip

_WIDTH, _HEIGHT, _MARGIN = 260, 44, 3.0


def sparkline(curves: Sequence[tuple[Sequence[tuple[float, float]], str]], *, title: str) -> str:
    """Draw curves of steps over a common range.

    Parameters
    ----------
    curves : sequence of (points, colour)
        Each with finite points (x, y) in ascending order of x, and a colour of CSS; later ones lie above. A value holds
        until the next one, the last to the right edge.
    title : str
        What the drawing shows, for those who cannot see it.

    Returns
    -------
    str
        An ``<svg>`` element, or "" if there is no point.

    Examples
    --------
    >>> sparkline([([(0, 1.0), (4, 0.5)], "teal")], title="loss")[:60]
    '<svg viewBox="0 0 260 44" width="260" height="44" role="img"'
    >>> sparkline([], title="loss")
    ''
    """
    points = [point for each, _ in curves for point in each]
    if not points:
        return ""
    x = Scale(min(a for a, _ in points), max(a for a, _ in points), _MARGIN, _WIDTH - _MARGIN)
    y = Scale(min(b for _, b in points), max(b for _, b in points), _HEIGHT - _MARGIN, _MARGIN)
    parts = []
    for each, colour in curves:
        if each:
            path = f"M{x(each[0][0]):g} {y(each[0][1]):g}" + "".join(f"H{x(a):g}V{y(b):g}" for a, b in thinned(each))
            parts.append(element("path", d=f"{path}H{x.end:g}", fill="none", stroke=colour, stroke_width=2))
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    return element("svg", tooltip(title), *parts, viewBox=box, width=_WIDTH, height=_HEIGHT, role="img")
