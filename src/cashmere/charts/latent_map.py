"""Latent maps: the trials of a run in a latent space, one letter each."""

from __future__ import annotations

import itertools
import math
import re
import statistics
import string
from collections.abc import Sequence
from dataclasses import dataclass

from cashmere.base.text import clean_text
from cashmere.charts.legends import legend_places
from cashmere.charts.shades import opacity, shade_scale
from cashmere.charts.svg import drawing, element, fitted_name, nothing_to_draw, svg_text, text_width, tooltip

MAX_MARKS = 600
"""Largest number of trials drawn, to bound the size of a page; it includes all that were the best so far."""

_RADIUS = 8.0
_MARGIN = 30.0
"""Between marks and frame, so that labels have room."""

_SYMBOLS = string.ascii_uppercase + string.digits[1:]
_OTHER = "·"
"""Symbol of algorithms for which no letter or digit is left."""

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
    """Draw trials as letters on discs, deeper for better trials, and a line through those that were the best so far.

    Parameters
    ----------
    places : sequence of Place
        In any order; those that are not finite are left out.
    title : str
        What the picture shows, for those who cannot see it.
    description : str
        The same in more detail.
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
        return nothing_to_draw(css)
    others, best = _shown(known)
    symbols = algorithm_symbols([p.algorithm for p in known])
    parts, top = _legend(symbols, centre_label if centre is not None else "", width)
    side = min(width - 16.0, 500.0)
    parts.append(element("rect", class_="grid", x=8, y=top, width=width - 16, height=side, rx=6))
    to = _Map.around([(p.x, p.y) for p in [*others, *best]] + ([centre] if centre else []), width, top, side)
    if centre is not None:
        parts.append(_centre(*to(*centre), centre_label))
    shades = _Shades.of(known)
    marks, stations = ([to(p.x, p.y) for p in group] for group in (others, best))
    parts += [_mark(p, at, symbols[p.algorithm], shades) for p, at in zip(others, marks, strict=True)]
    parts += _path(stations)
    parts += [_mark(p, at, symbols[p.algorithm], shades, is_best=True) for p, at in zip(best, stations, strict=True)]
    parts += _ends(stations, [*marks, *stations], width, top + side)
    parts += shades.bar(top + side + 14, legend)
    return drawing(parts, width, int(top + side + 34), title=title, css=css, description=description)


def _shown(places: Sequence[Place]) -> tuple[list[Place], list[Place]]:
    """Choose the trials to draw: those that were the best so far, and others, ordered so that better ones are on top.

    Returns
    -------
    others, best : list of Place
    """
    best = incumbents(places)
    chosen = {p.trial for p in best}
    others = [p for p in places if p.trial not in chosen]
    best = best[-MAX_MARKS:]
    room = MAX_MARKS - len(best)
    others = others[:: max(1, math.ceil(len(others) / room))] if room else []
    return sorted(others, key=lambda p: (-p.loss, p.trial)), best


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
    """A map from the latent space to the drawing."""

    x: float
    y: float
    scale: float
    middle: tuple[float, float]

    @classmethod
    def around(cls, points: Sequence[tuple[float, float]], width: float, top: float, side: float) -> _Map:
        scales, centre, is_wide = [], [], False
        for axis, length in zip(zip(*points, strict=True), (width - 16, side), strict=True):
            low, high = min(axis) / 2, max(axis) / 2  # halves, so that a range of nearly all floats does not overflow
            centre.append(low + high)
            if high > low:
                scales.append((length / 2 - _MARGIN) / (high - low))
            is_wide |= high - low > 1e-12 * max(abs(low), abs(high), 1e-200)
        x, y = centre
        scale = min(scales if is_wide else [*scales, 1.0])  # differences from rounding are not enlarged
        return cls(x, y, scale, (width / 2, top + side / 2))

    def __call__(self, x: float, y: float) -> tuple[float, float]:
        right, up = (x / 2 - self.x / 2) * self.scale, (y / 2 - self.y / 2) * self.scale
        return round(self.middle[0] + 2 * right, 1), round(self.middle[1] - 2 * up, 1)


@dataclass(frozen=True, slots=True)
class _Shades:
    """Shades of losses: the best is the deepest.

    The palest is at twice the distance of the median from the best: with the worst loss there, a few very bad ones
    would squeeze the rest together.
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
        return round(opacity(1 - share), 2)

    def bar(self, y: float, legend: str) -> list[str]:
        """Draw the scale with its two ends."""
        worst = clean_text(self.worst.text, 20) + (" or worse" if self.has_outliers else "")
        best = clean_text(self.best.text, 20)
        start = 16 + _width(worst)
        end = start + 10 * _SHADES + 6
        return [
            element("text", svg_text(worst), class_="tick", x=8, y=y + 10),
            *shade_scale(start, y, n=_SHADES, width=10, height=11),
            element("text", svg_text(best), class_="tick", x=end, y=y + 10),
            element("text", svg_text(legend, 40), class_="label", x=end + 14 + _width(best), y=y + 10),
        ]


def _mark(place: Place, at: tuple[float, float], symbol: str, shades: _Shades, *, is_best: bool = False) -> str:
    x, y = at
    so_far = ", the best so far" if is_best else ""
    tip = f"trial {place.trial}: {fitted_name(place.algorithm)}, {clean_text(place.text, 20)}{so_far}"
    return element(
        "g",
        tooltip(tip, 120),
        element("circle", class_="under", cx=x, cy=y, r=_RADIUS),
        element("circle", class_="cell", fill_opacity=shades(place.loss), cx=x, cy=y, r=_RADIUS),
        element("text", symbol, class_="value", x=x, y=y + 3.8, text_anchor="middle"),
        class_="mark best" if is_best else "mark",
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
    return [element("path", class_="step s2", d=line + arrows)]


def _ends(
    stations: Sequence[tuple[float, float]], marks: Sequence[tuple[float, float]], width: float, bottom: float
) -> list[str]:
    """Label the first and the last of the best, each on the side where the label covers the fewest marks."""
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
        parts.append(element("text", text, class_="name halo", x=spot[0], y=spot[1] + 4, text_anchor="middle"))
    return parts


def _centre(x: float, y: float, label: str) -> str:
    cross = f"M{x - 11:g} {y:g}h22M{x:g} {y - 11:g}v22"
    return element("path", tooltip(label, 120), class_="median", d=cross)


def _legend(symbols: dict[str, str], centre: str, width: int) -> tuple[list[str], float]:
    """Return the legend and the height it takes."""
    entries = [(symbol, fitted_name(name)) for name, symbol in symbols.items() if symbol != _OTHER]
    if rest := len(symbols) - len(entries):
        entries.append((_OTHER, f"{rest} more algorithms"))
    entries.append(("", "best so far"))
    if centre:
        entries.append(("+", clean_text(centre, 60)))
    places = legend_places((22 + _width(text) + 14 for _, text in entries), room=width, y=16.0, pitch=22)
    parts = []
    for (symbol, text), (x, y) in zip(entries, places, strict=True):
        parts.append(_sample(symbol, x, y))
        parts.append(element("text", svg_text(text), class_="legend", x=x + 22, y=y))
    return parts, places[-1][1] + 12


def _sample(symbol: str, x: float, y: float) -> str:
    """Draw the symbol of a legend entry: the centre, a mark or the line through the best."""
    if symbol == "+":
        return element("path", class_="median", d=f"M{x + 2:g} {y - 4:g}h14M{x + 9:g} {y - 11:g}v14")
    if not symbol:
        return element("path", class_="step s2", d=f"M{x:g} {y - 4:g}h18")
    disc = element("circle", class_="under", cx=x + 9, cy=y - 4, r=_RADIUS)
    letter = element("text", symbol, class_="value", x=x + 9, y=y - 0.2, text_anchor="middle")
    return element("g", disc, letter, class_="mark")


def _width(text: str) -> float:
    """Estimate the width of a text, generously: names must not touch their neighbours."""
    return text_width(text, 7.0, wide_letters="")
