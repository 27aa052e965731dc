"""Charts of a comparison: small multiples of curves with a band, as SVG that needs no other file."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from benchmarks.statistics import comparison
from cashmere.charts.ticks import nice_ticks, padded, tick_labels

COLOURS = ("#69635a", "#b8660b", "#0b6e69", "#6a4fa3", "#b0302a", "#3c78b4", "#7d8a12", "#c2508f")
"""Colours of the strategies in their order; later ones are dashed."""

STYLE = """
svg { font: 12px system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", "DejaVu Sans", sans-serif; }
svg .paper { fill: #fffefb; } svg text { fill: #69635a; font-variant-numeric: tabular-nums; }
svg text.name { fill: #23211d; } svg text.panel { fill: #23211d; font-weight: 600; }
svg .grid { stroke: #e3ded4; fill: none; } svg .axis { stroke: #69635a; fill: none; }
svg .line { fill: none; stroke-width: 1.9; stroke-linejoin: round; } svg .band { fill-opacity: .13; stroke: none; }
"""

WIDTH = 960
"""Width of a whole chart, in units of the drawing."""

_CHARACTER = 6.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A strategy's line.

    Attributes
    ----------
    label : str
        Name in the legend; equal labels have equal colours in all panels.
    x, y : list of float
        Points; those with missing y are skipped.
    error : list of float
        Half height of the band; missing where there is none.
    """

    label: str
    x: list[float]
    y: list[float]
    error: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One drawing of a chart: a title and curves."""

    title: str
    curves: list[Curve]


def loss_panels(runs: pd.DataFrame, part: comparison.Part) -> list[Panel]:
    """Return a panel per recording: mean loss over trials, the band is one standard error."""
    panels = []
    for recording, table in runs.groupby("recording"):
        curves = []
        for strategy in dict.fromkeys(runs["strategy"]):
            wide = table[table["strategy"] == strategy].pivot(index="trials", columns="seed", values=part).sort_index()
            mean = wide.mean(axis=1, skipna=False)
            error = wide.sem(axis=1, skipna=False)
            curves.append(Curve(label=strategy, x=[*mean.index], y=mean.tolist(), error=error.tolist()))
        metric = f", {table['metric'].iloc[0]}" if "metric" in table else ""
        panels.append(Panel(title=f"{recording}{metric}", curves=curves))
    return panels


def rank_panels(runs: pd.DataFrame) -> list[Panel]:
    """Return a panel for validation and one for test: average rank per seed over trials, band of one standard error.

    Ranks per seed, since those of means jump where two curves of one recording cross. The standard error takes pairs of
    recording and seed as independent: it speaks about these recordings, not about others.
    """
    panels = []
    for part in ("validation", "test"):
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in dict.fromkeys(runs["strategy"])}
        for trials in sorted(runs["trials"].unique()):
            ranks = comparison.ranks_per_seed(runs, int(trials), part)
            by_recording = ranks.groupby(level="recording")
            mean = by_recording.mean().mean()
            # The mean over recordings of means over seeds: variances add up.
            error = (by_recording.var() / by_recording.count()).sum(skipna=False) ** 0.5 / by_recording.ngroups
            for name, points in found.items():
                points.append((float(trials), float(mean[name]), float(error[name])))
        curves = [
            Curve(label=name, x=[p[0] for p in points], y=[p[1] for p in points], error=[p[2] for p in points])
            for name, points in found.items()
        ]
        panels.append(Panel(title=f"average rank, {part} loss", curves=curves))
    return panels


def small_multiples(
    panels: Sequence[Panel], *, title: str, x_label: str = "trials", n_columns: int = 3, order: Sequence[str] = ()
) -> str:
    """Draw panels in a grid with a common legend and x axis, each with its own y axis.

    Colours follow the labels in their `order`, so that charts can agree; by default they are in order of appearance.

    The first tenth of the x axis is not drawn, and the y axis fits what comes after the third: early losses are so
    large that all later ones would look the same. Curves are cut off where they leave the panel.

    Returns
    -------
    str
        An ``<svg>`` element with its own style.
    """
    drawn = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
    labels = list(dict.fromkeys([*order, *drawn]))
    n_columns = max(1, min(n_columns, len(panels)))
    width = WIDTH / n_columns
    height = 250.0 if n_columns == 3 else 300.0
    legend, top = _legend([(label, *_look(labels.index(label))) for label in drawn])
    parts = [legend]
    for i, panel in enumerate(panels):
        parts += _panel(panel, labels, width * (i % n_columns), top + height * (i // n_columns), width, height, x_label)
    total = top + height * math.ceil(len(panels) / n_columns)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total:g}" role="img">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style>"
        f'<rect class="paper" width="{WIDTH}" height="{total:g}"/>{"".join(parts)}</svg>'
    )


def _panel(
    panel: Panel, labels: Sequence[str], left: float, top: float, width: float, height: float, x_label: str
) -> list[str]:
    last = max(x for curve in panel.curves for x in curve.x)
    first = max(min(x for curve in panel.curves for x in curve.x), 0.1 * last)
    drawn = [_points(curve, first) for curve in panel.curves]
    edges = [edge for points in drawn for x, y, error in points if x >= 0.3 * last for edge in (y - error, y + error)]
    escaped = html.escape(panel.title)
    heading = f'<text class="panel" x="{left + 14:g}" y="{top + 16:g}">{escaped}</text>'
    if not edges:
        return [heading]
    low, high = padded(min(edges), max(edges), 0.04)
    ticks = nice_ticks(low, high, 5)
    texts = tick_labels(ticks)
    x0, x1 = left + 22 + _CHARACTER * max(map(len, texts)), left + width - 16
    y0, y1 = top + height - 42, top + 28

    def x_of(value: float) -> float:
        return x0 + (value - first) / max(last - first, 1) * (x1 - x0)

    def y_of(value: float) -> float:
        return y0 + (value - low) / (high - low) * (y1 - y0)

    parts = [heading]
    for tick, text in zip(ticks, texts, strict=True):
        parts.append(f'<path class="grid" d="M{x0:.1f} {y_of(tick):.1f}H{x1:.1f}"/>')
        parts.append(f'<text x="{x0 - 6:.1f}" y="{y_of(tick) + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<path class="axis" d="M{x0:.1f} {y0:.1f}H{x1:.1f}"/>')
    for tick in nice_ticks(first, last, 5):
        parts.append(f'<path class="axis" d="M{x_of(tick):.1f} {y0:.1f}v4"/>')
        parts.append(f'<text x="{x_of(tick):.1f}" y="{y0 + 17:.1f}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<text x="{(x0 + x1) / 2:.1f}" y="{y0 + 33:.1f}" text-anchor="middle">{html.escape(x_label)}</text>')
    bands, lines = [], []
    for curve, points in zip(panel.curves, drawn, strict=True):
        if not points:
            continue
        colour, dash = _look(labels.index(curve.label))
        upper = [f"{x_of(x):.1f} {y_of(y + error):.1f}" for x, y, error in points]
        lower = [f"{x_of(x):.1f} {y_of(y - error):.1f}" for x, y, error in reversed(points)]
        bands.append(f'<path class="band" fill="{colour}" d="M{"L".join(upper + lower)}Z"/>')
        path = "L".join(f"{x_of(x):.1f} {y_of(y):.1f}" for x, y, _ in points)
        lines.append(f'<path class="line" stroke="{colour}"{dash} d="M{path}"/>')
    # A nested drawing clips what leaves it.
    box = f"{x0:.1f} {y1:.1f} {x1 - x0:.1f} {y0 - y1:.1f}"
    place = 'x="{}" y="{}" width="{}" height="{}"'.format(*box.split())
    return [*parts, f'<svg {place} viewBox="{box}">', *bands, *lines, "</svg>"]


def _points(curve: Curve, first: float) -> list[tuple[float, float, float]]:
    rows = zip(curve.x, curve.y, curve.error, strict=True)
    return [(x, y, error if math.isfinite(error) else 0.0) for x, y, error in rows if x >= first and math.isfinite(y)]


def _look(i: int) -> tuple[str, str]:
    """Return the colour of the strategy at a place, and the attribute that dashes it."""
    dash = i // len(COLOURS)
    return COLOURS[i % len(COLOURS)], f' stroke-dasharray="{6 / dash:g} 3"' if dash else ""


def _legend(entries: Sequence[tuple[str, str, str]]) -> tuple[str, float]:
    """Return the legend of labels with colours and dashes, and its height."""
    parts, x, y = [], 14.0, 20.0
    for label, colour, dash in entries:
        text = label if len(label) <= 60 else label[:59] + "…"
        needed = 26 + _CHARACTER * len(text) + 16
        if x + needed > WIDTH and x > 14:
            x, y = 14.0, y + 20
        parts.append(f'<path class="line" stroke="{colour}"{dash} d="M{x:g} {y - 4:g}h20"/>')
        parts.append(f'<text class="name" x="{x + 26:g}" y="{y:g}">{html.escape(text)}</text>')
        x += needed
    return "".join(parts), y + 16
