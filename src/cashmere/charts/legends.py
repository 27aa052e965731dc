"""Legends: entries in rows."""

from __future__ import annotations

from collections.abc import Iterable

_START = 8.0


def legend_places(widths: Iterable[float], *, room: float, y: float, pitch: float) -> list[tuple[float, float]]:
    """Return where the entries of a legend start: one after another, in a new row if there is no room.

    Parameters
    ----------
    widths : iterable of float
        Of the entries, the gap behind each included.
    room : float
        Width of a row.
    y : float
        Height of the first row.
    pitch : float
        Distance of rows.

    Examples
    --------
    >>> legend_places([50, 60, 30], room=100, y=14, pitch=19)
    [(8.0, 14), (8.0, 33), (68.0, 33)]
    """
    places, x = [], _START
    for width in widths:
        if x + width > room and x > _START:
            x, y = _START, y + pitch
        places.append((x, y))
        x += width
    return places
