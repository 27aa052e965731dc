"""Shades: how deep a cell is coloured, and the scale that explains it."""

from __future__ import annotations

from cashmere.charts.svg import element

PALEST = 0.05
"""Opacity of the lowest shade: enough to stand out from the background."""


def opacity(share: float, palest: float = PALEST) -> float:
    """Return the opacity of a shade, from the palest at 0 to 1 at 1; shares outside are moved to the ends.

    Examples
    --------
    >>> [opacity(share) for share in (-1.0, 0.0, 1.0)]
    [0.05, 0.05, 1.0]
    """
    return palest + (1 - palest) * min(max(share, 0.0), 1.0)


def shade_scale(x: float, y: float | str, *, n: int, width: float, height: float, palest: float = PALEST) -> list[str]:
    """Draw boxes in a row from the palest to the deepest shade.

    Parameters
    ----------
    x, y : float or str
        Upper left corner.
    n : int
        Number of shades.
    width, height : float
        Size of each box.
    palest : float
        Opacity of the first.
    """
    return [
        element(
            "rect", class_="cell", fill_opacity=f"{opacity(k / (n - 1), palest):.2f}",
            x=x + width * k, y=y, width=width, height=height,
        )
        for k in range(n)
    ]  # fmt: skip
