"""The map of a latent space, as SVG text like the charts of `cashmere.charts.charts`: a letter for every trial."""

from __future__ import annotations

import html
import itertools
import math
import re
import statistics
import string
from collections.abc import Sequence
from dataclasses import dataclass

from cashmere.base.text import clean_text
from cashmere.charts.bracket import fitted_name
from cashmere.charts.charts import svg_attribute, svg_element, svg_text

MAX_MARKS = 600
"""Trials drawn at most, to bound the size of a page; all that were the best so far are among them."""

_RADIUS = 8.0
_MARGIN = 30.0
"""Between marks and frame, so that labels have room."""

_SYMBOLS = string.ascii_uppercase + string.digits[1:]
_OTHER = "·"
"""For the algorithms after the last symbol."""

_SHADES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A trial in the latent space.

    Attributes
    ----------
    trial : int
        Its number.
    algorithm : str
        Name of the algorithm; each has its letter.
    x, y : float
        Where it is. Both axes have the same scale.
    loss : float
        Gives the shade.
    text : str
        How the loss is written.
    """

    trial: int
    algorithm: str
    x: float
    y: float
    loss: float
    text: str


def latent_chart(
    places: Sequence[Place],
    *,
    title: str,
    description: str,
    legend: str,
    centre: tuple[float, float] | None = None,
    centre_label: str = "",
    width: int = 760,
    css: str = "",
) -> str:
    """Draw trials as letters on discs, the better the deeper, and a line through those that were the best so far.

    Parameters
    ----------
    places : sequence of Place
        In any order; those that are not finite are left out.
    title : str
        What the picture shows, for those who cannot see it.
    description : str
        What is to be seen, for them as well.
    legend : str
        What the shades mean.
    centre : (x, y), optional
        A point to mark.
    centre_label : str
        What it is.
    width : int
        Width of the drawing; it scales with the page.
    css : str
        Class of the drawing.

    Returns
    -------
    str
        An ``<svg>`` element, or a sentence in ``<p>`` if there is nothing to draw.
    """
    known = [p for p in sorted(places, key=lambda p: p.trial) if all(map(math.isfinite, (p.x, p.y, p.loss)))]
    if not known:
        return f'<p class="empty {svg_attribute(css)}">Nothing to draw yet.</p>'
    best = incumbents(known)
    chosen = {p.trial for p in best}
    others = [p for p in known if p.trial not in chosen]
    best = best[-MAX_MARKS:]
    room = MAX_MARKS - len(best)
    others = others[:: max(1, math.ceil(len(others) / room))] if room else []
    symbols = algorithm_symbols([p.algorithm for p in known])
    parts, top = _legend(symbols, centre_label if centre is not None else "", width)
    side = min(width - 16.0, 500.0)
    frame = f'x="8" y="{top:g}" width="{width - 16}" height="{side:g}" rx="6"'
    parts.append(f'<rect class="grid" {frame}/>')
    to = _Map.around([(p.x, p.y) for p in [*others, *best]] + ([centre] if centre else []), width, top, side)
    if centre is not None:
        parts.append(_centre(*to(*centre), centre_label))
    shades = _Shades.of(known)
    others = sorted(others, key=lambda p: (-p.loss, p.trial))  # better ones lie above worse ones
    marks, stations = ([to(p.x, p.y) for p in group] for group in (others, best))
    parts += [_mark(p, at, symbols[p.algorithm], shades) for p, at in zip(others, marks, strict=True)]
    parts += _path(stations)
    parts += [_mark(p, at, symbols[p.algorithm], shades, is_best=True) for p, at in zip(best, stations, strict=True)]
    parts += _ends(stations, [*marks, *stations], width, top + side)
    parts += shades.bar(top + side + 14, legend)
    return svg_element(parts, width, int(top + side + 34), title, css, description)


def incumbents(places: Sequence[Place]) -> list[Place]:
    """Return the trials that were better than all before them, given in order."""
    losses = [math.inf, *itertools.accumulate((p.loss for p in places), min)]
    return [p for p, before in zip(places, losses, strict=False) if p.loss < before]


def algorithm_symbols(names: Sequence[str]) -> dict[str, str]:
    """Return a letter or digit for every algorithm, in the order of names: if possible the initial of a word of it.

    Examples
    --------
    >>> algorithm_symbols(["knn", "svc", "ridge", "adaboost", "random_forest", "svm", "knn"])
    {'adaboost': 'A', 'knn': 'K', 'random_forest': 'R', 'ridge': 'I', 'svc': 'S', 'svm': 'V'}
    """
    found: dict[str, str] = {}
    for name in sorted(set(names)):
        initials = [word[0] for word in re.split(r"\W|_", name[:40].upper()) if word]
        free = [c for c in (*initials, *name[:40].upper(), *_SYMBOLS) if c in _SYMBOLS and c not in found.values()]
        found[name] = free[0] if free else _OTHER
    return found


@dataclass(frozen=True, slots=True)
class _Map:
    """From the latent space to the drawing."""

    x: float
    y: float
    scale: float
    middle: tuple[float, float]

    @classmethod
    def around(cls, points: Sequence[tuple[float, float]], width: float, top: float, side: float) -> _Map:
        scales, centre = [], []
        for axis, length in zip(zip(*points, strict=True), (width - 16, side), strict=True):
            low, high = min(axis) / 2, max(axis) / 2  # halves, so that a range of nearly all floats does not overflow
            centre.append(low + high)
            if high - low > 1e-12 * max(abs(low), abs(high), 1e-200):
                scales.append((length / 2 - _MARGIN) / (high - low))
        x, y = centre
        return cls(x, y, min(scales, default=1.0), (width / 2, top + side / 2))

    def __call__(self, x: float, y: float) -> tuple[float, float]:
        right, up = (x / 2 - self.x / 2) * self.scale, (y / 2 - self.y / 2) * self.scale
        return round(self.middle[0] + 2 * right, 1), round(self.middle[1] - 2 * up, 1)


@dataclass(frozen=True, slots=True)
class _Shades:
    """How deep losses are coloured: the best is the deepest.

    The palest is twice as far from it as the median: a few very bad losses would press the rest together.
    """

    best: Place
    worst: Place
    has_outliers: bool

    @classmethod
    def of(cls, places: Sequence[Place]) -> _Shades:
        ordered = sorted(places, key=lambda p: p.loss)
        best, middle = ordered[0].loss, statistics.median_low(p.loss for p in ordered)
        inside = [p for p in ordered if p.loss / 2 - middle / 2 <= middle / 2 - best / 2] if middle > best else ordered
        return cls(ordered[0], inside[-1], len(inside) < len(ordered))

    def __call__(self, loss: float) -> float:
        span = self.worst.loss / 2 - self.best.loss / 2
        share = (loss / 2 - self.best.loss / 2) / span if span > 0 else 0.0
        return round(0.05 + 0.95 * (1 - min(share, 1.0)), 2)

    def bar(self, y: float, legend: str) -> list[str]:
        """Draw the scale with its two ends."""
        worst = clean_text(self.worst.text, 20) + (" or worse" if self.has_outliers else "")
        start = 16 + _width(worst)
        parts = [f'<text class="tick" x="8" y="{y + 10:g}">{html.escape(worst)}</text>']
        for k in range(_SHADES):
            opacity = f"{0.05 + 0.95 * k / (_SHADES - 1):.2f}"
            parts.append(
                f'<rect class="cell" fill-opacity="{opacity}" x="{start + 10 * k:g}" y="{y:g}" width="10" height="11"/>'
            )
        best = clean_text(self.best.text, 20)
        end = start + 10 * _SHADES + 6
        parts.append(f'<text class="tick" x="{end:g}" y="{y + 10:g}">{html.escape(best)}</text>')
        parts.append(
            f'<text class="label" x="{end + 14 + _width(best):g}" y="{y + 10:g}">{svg_text(legend, 40)}</text>'
        )
        return parts


def _mark(place: Place, at: tuple[float, float], symbol: str, shades: _Shades, *, is_best: bool = False) -> str:
    x, y = at
    circle = f'cx="{x:g}" cy="{y:g}" r="{_RADIUS:g}"'
    so_far = ", the best so far" if is_best else ""
    tip = svg_text(f"trial {place.trial}: {fitted_name(place.algorithm)}, {clean_text(place.text, 20)}{so_far}", 120)
    return (
        f'<g class="mark{" best" if is_best else ""}"><title>{tip}</title><circle class="under" {circle}/>'
        f'<circle class="cell" fill-opacity="{shades(place.loss):g}" {circle}/>'
        f'<text class="value" x="{x:g}" y="{y + 3.8:g}" text-anchor="middle">{symbol}</text></g>'
    )


def _path(stations: Sequence[tuple[float, float]]) -> list[str]:
    """Draw the line through the best trials, with a small arrow in the middle of each long part."""
    if len(stations) < 2:
        return []
    line = "M" + "L".join(f"{x:g} {y:g}" for x, y in stations)
    arrows = ""
    for (x, y), (to_x, to_y) in itertools.pairwise(stations):
        length = math.hypot(to_x - x, to_y - y)
        if length > 5 * _RADIUS:
            dx, dy = 5 * (to_x - x) / length, 5 * (to_y - y) / length
            tip_x, tip_y = (x + to_x) / 2 + dx / 2, (y + to_y) / 2 + dy / 2
            arrows += (
                f"M{tip_x - dx - dy:.1f} {tip_y - dy + dx:.1f}L{tip_x:.1f} {tip_y:.1f}"
                f"L{tip_x - dx + dy:.1f} {tip_y - dy - dx:.1f}"
            )
    return [f'<path class="step s2" d="{line}{arrows}"/>']


def _ends(
    stations: Sequence[tuple[float, float]], marks: Sequence[tuple[float, float]], width: float, bottom: float
) -> list[str]:
    """Name the first and the last of the best, each on the side where it covers the fewest marks."""
    named = [(stations[-1], "best"), *([(stations[0], "first")] if len(stations) > 1 else [])]
    parts: list[str] = []
    taken = list(marks)
    for (x, y), text in named:
        half = _width(text) / 2
        spots = [(x, y - 17), (x, y + 17), (x - half - 13, y), (x + half + 13, y)]

        def cost(spot: tuple[float, float], half: float = half) -> float:
            is_out = not (half < spot[0] < width - half and spot[1] < bottom - 6)
            covered = sum(abs(a - spot[0]) < half + _RADIUS and abs(b - spot[1]) < 6 + _RADIUS for a, b in taken)
            return covered + len(taken) * is_out

        spot = min(spots, key=cost)  # the first of equals
        taken.append(spot)
        place = f'x="{spot[0]:g}" y="{spot[1] + 4:g}" text-anchor="middle"'
        parts.append(f'<text class="name halo" {place}>{text}</text>')
    return parts


def _centre(x: float, y: float, label: str) -> str:
    cross = f"M{x - 11:g} {y:g}h22M{x:g} {y - 11:g}v22"
    return f'<path class="median" d="{cross}"><title>{svg_text(label, 120)}</title></path>'


def _legend(symbols: dict[str, str], centre: str, width: int) -> tuple[list[str], float]:
    """Return the legend and the height it takes."""
    entries = [(symbol, fitted_name(name)) for name, symbol in symbols.items() if symbol != _OTHER]
    if rest := len(symbols) - len(entries):
        entries.append((_OTHER, f"{rest} more algorithms"))
    entries.append(("", "best so far"))
    if centre:
        entries.append(("+", clean_text(centre, 60)))
    parts, x, y = [], 8.0, 16.0
    for symbol, text in entries:
        needed = 22 + _width(text) + 14
        if x + needed > width and x > 8:
            x, y = 8.0, y + 22
        if symbol == "+":
            parts.append(f'<path class="median" d="M{x + 2:g} {y - 4:g}h14M{x + 9:g} {y - 11:g}v14"/>')
        elif symbol:
            parts.append(
                f'<g class="mark"><circle class="under" cx="{x + 9:g}" cy="{y - 4:g}" r="{_RADIUS:g}"/>'
                f'<text class="value" x="{x + 9:g}" y="{y - 0.2:g}" text-anchor="middle">{symbol}</text></g>'
            )
        else:
            parts.append(f'<path class="step s2" d="M{x:g} {y - 4:g}h18"/>')
        parts.append(f'<text class="legend" x="{x + 22:g}" y="{y:g}">{html.escape(text)}</text>')
        x += needed
    return parts, y + 12


def _width(text: str) -> float:
    """Estimate the width of a text in units of the drawing; Chinese characters are wide."""
    return sum(12.5 if ord(character) > 0x2E7F else 7.0 for character in text)
