"""The critical-difference diagram: average ranks on an axis, and bars over methods that cannot be distinguished.

An SVG that needs no other file. Within a page it takes the colour of the text around it; on its own it is light or dark
as the reader prefers.

References
----------
Demšar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7, section 3.2.4. His axis has the
best method on the right, ours on the left, where reading begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cashmere.base.text import clean_text
from cashmere.charts.svg import drawing, svg_text
from cashmere.exceptions import ArrayError

WIDTH = 960
"""Width of the drawing."""

STYLE = """
svg.cd:root { color: #23211d; background: #fffefb; }
@media (prefers-color-scheme: dark) { svg.cd:root { color: #ece7dd; background: #1d1b18; } }
svg.cd text { fill: currentColor; font: 13px system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans",
  "DejaVu Sans", sans-serif; font-variant-numeric: tabular-nums; }
svg.cd .muted { fill-opacity: .7; } svg.cd path { stroke: currentColor; fill: none; }
svg.cd .leader { stroke-opacity: .45; } svg.cd .group { stroke-width: 5; stroke-linecap: round; }
"""

_CHARACTER = 7.4
_LONGEST_NAME = 32
_AXIS = 62.0
_LANE = 11.0
_CLEAR = 12.0
_ROW = 22.0


def indistinct_groups(ranks: Sequence[float], critical_difference: float) -> list[tuple[int, int]]:
    """Return the largest groups of neighbours whose ranks are less than the critical difference apart.

    Parameters
    ----------
    ranks : (k,) sequence of float
        Average ranks in ascending order.
    critical_difference : float
        Ranks that are this far apart, or farther, differ.

    Returns
    -------
    list of (int, int)
        First and last member of each group of two or more; no group lies within another.

    Examples
    --------
    >>> indistinct_groups([1.0, 1.5, 2.25, 4.0], 1.0)
    [(0, 1), (1, 2)]
    """
    ends = [max(j for j in range(i, len(ranks)) if j == i or ranks[j] - ranks[i] < critical_difference)
            for i in range(len(ranks))]  # fmt: skip
    return [(i, end) for i, end in enumerate(ends) if end > i and (i == 0 or end > ends[i - 1])]


def critical_difference_diagram(
    ranks: Mapping[str, float], critical_difference: float, *, title: str = "Average ranks and critical difference"
) -> str:
    """Draw average ranks and join those too close to differ.

    Parameters
    ----------
    ranks : mapping of str to float
        Average rank of each method, 1 is best; at least two. A Series works, too.
    critical_difference : float
        From `benchmarks.statistics.ranks_and_tests.nemenyi_critical_difference`, for as many methods.
    title : str
        Text alternative; ranks and groups follow in words.

    Returns
    -------
    str
        An ``<svg>`` element.

    Raises
    ------
    ArrayError
        If there are fewer than two methods, or a number is missing.
    """
    names = sorted(ranks.keys(), key=lambda name: ranks[name])
    values = [float(ranks[name]) for name in names]
    if len(names) < 2 or not np.isfinite([*values, critical_difference]).all():
        raise ArrayError(
            "ranks", f"ranks and critical_difference must be finite, for two or more methods; got {ranks}."
        )
    labels = [clean_text(name, _LONGEST_NAME) for name in names]
    n_left = (len(names) + 1) // 2
    # Room for a name and its rank on either side of the axis.
    left, right = (60 + _CHARACTER * max(map(len, side)) for side in (labels[:n_left], labels[n_left:]))
    start, end = left + 14, WIDTH - right - 14
    scale = (end - start) / (len(names) - 1)
    places = [start + scale * (value - 1) for value in values]

    groups = indistinct_groups(values, critical_difference)
    bars = [(places[first] - 3, places[last] + 3) for first, last in groups]
    lanes = _lanes(bars)
    first_row = _AXIS + 22 + _LANE * (max(lanes, default=-1) + 1)
    parts = [
        f"<style>{STYLE}</style>",
        *_axis(len(names), start, scale),
        *_ruler(critical_difference, start, scale, end),
    ]
    for i, (label, value, place) in enumerate(zip(labels, values, places, strict=True)):
        is_left = i < n_left
        y = first_row + _ROW * (i if is_left else len(names) - 1 - i)
        parts += _method(label, value, place, y, left if is_left else WIDTH - right, is_left=is_left)
    for (low, high), lane in zip(bars, lanes, strict=True):
        parts.append(f'<path class="group" d="M{low:.1f} {_AXIS + 14 + _LANE * lane:g}H{high:.1f}"/>')
    height = first_row + _ROW * (n_left - 1) + 18
    told = _in_words(names, values, groups, critical_difference)
    svg = drawing(parts, WIDTH, int(height), title=title, css="cd", description=told)
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def _method(label: str, rank: float, place: float, y: float, edge: float, *, is_left: bool) -> list[str]:
    """Return a dot on the axis, and the line that leads from it to name and rank beside the axis."""
    anchor = "end" if is_left else "start"
    text = [f"<tspan>{svg_text(label)}</tspan>", f'<tspan class="muted">{rank:.2f}</tspan>']
    return [
        f'<path class="leader" d="M{place:.1f} {_AXIS:g}V{y:.1f}H{edge:.1f}"/>',
        f'<circle cx="{place:.1f}" cy="{_AXIS:g}" r="3" fill="currentColor"/>',
        f'<text x="{edge + (-7 if is_left else 7):.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">'
        f"{' '.join(text if is_left else reversed(text))}</text>",
    ]


def _axis(n_methods: int, start: float, scale: float) -> list[str]:
    parts = [f'<path d="M{start:.1f} {_AXIS:g}h{scale * (n_methods - 1):.1f}"/>']
    for rank in range(1, n_methods + 1):
        x = start + scale * (rank - 1)
        parts.append(f'<path d="M{x:.1f} {_AXIS:g}v-6"/>')
        parts.append(f'<text class="muted" x="{x:.1f}" y="{_AXIS - 11:g}" text-anchor="middle">{rank}</text>')
    return parts


def _ruler(critical_difference: float, start: float, scale: float, end: float) -> list[str]:
    """Return the critical difference as a length above the axis, if the axis is that long."""
    text = f"critical difference {critical_difference:.2f}"
    x = start + scale * critical_difference
    if x > end:
        return [f'<text x="{start:.1f}" y="20">{text}: ranks cannot be so far apart</text>']
    ruler = f'<path stroke-width="1.5" d="M{start:.1f} 12v8m0 -4H{x:.1f}m0 -4v8"/>'
    return [ruler, f'<text x="{x + 9:.1f}" y="20">{text}</text>']


def _lanes(bars: Sequence[tuple[float, float]]) -> list[int]:
    """Return for each bar, in the order of their beginnings, the first lane in which it touches no other."""
    ends: list[float] = []
    lanes = []
    for low, high in bars:
        lane = next((i for i, end in enumerate(ends) if end + _CLEAR < low), len(ends))
        ends[lane : lane + 1] = [high]
        lanes.append(lane)
    return lanes


def _in_words(
    names: Sequence[str], values: Sequence[float], groups: Sequence[tuple[int, int]], critical_difference: float
) -> str:
    ranks = ", ".join(f"{clean_text(name, 24)} {value:.2f}" for name, value in zip(names, values, strict=True))
    alike = "; ".join(f"{clean_text(names[i], 24)} to {clean_text(names[j], 24)}" for i, j in groups) or "none"
    return f"Indistinct by the critical difference {critical_difference:.2f}: {alike}. Ranks, 1 is best: {ranks}."
