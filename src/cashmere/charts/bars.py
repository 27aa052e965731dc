"""Bars in the cells of a table."""

from __future__ import annotations

import math

from cashmere.charts.svg import css_name, element, tooltip


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
    parts = [tooltip(title)]
    if track:
        parts.append(element("rect", class_="track", width=100, height=10))
    parts.append(element("rect", class_=css_name(css), width=round(100 * share, 2), height=10))
    return element("svg", *parts, class_="bar", viewBox="0 0 100 10", preserveAspectRatio="none", role="img")
