"""Legends: entries in rows."""

from __future__ import annotations

from collections.abc import Iterable


def legend_places(
    widths: Iterable[float], *, room: float, y: float, pitch: float, x: float = 8.0
) -> list[tuple[float, float]]:
    """Return where the entries of a legend start: one after another, in a new row if there is no room.

    Parameters
    ----------
    widths : iterable of float
        Of the entries, the gap behind each included.
    room : float
        Width of a row.
    x, y : float
        Where the first begins.
    pitch : float
        Distance of rows.

    Examples
    --------
    >>> legend_places([50, 60, 30], room=100, y=14, pitch=19)
    [(8.0, 14), (8.0, 33), (68.0, 33)]
    """
    places, start = [], x
    for width in widths:
        if x + width > room and x > start:
            x, y = start, y + pitch
        places.append((x, y))
        x += width
    return places
