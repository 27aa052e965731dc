"""Brackets: a contest as a figure, sub-spaces over rounds."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cashmere.base.text import clean_text
from cashmere.charts.shades import opacity, shade_scale
from cashmere.charts.svg import (
    CHARACTER,
    drawing,
    element,
    fitted_name,
    nothing_to_draw,
    svg_text,
    text_width,
    tooltip,
)

_DIGIT = 6.3
"""Mean width of a character in a cell."""

_WIDEST = 130.0
"""Largest width of a column."""

_PALEST = 0.08
"""Opacity of the worst cells."""

MAX_ROWS = 40
"""Largest number of sub-spaces drawn, to bound the size of a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A sub-space in a round.

    Attributes
    ----------
    loss : float or None
        Best loss up to the end of the round, finite; gives the shade. None without any.
    text : str
        How it is written.
    trials : int
        Trials made in this round.
    """

    loss: float | None
    text: str
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BracketRow:
    """A sub-space, one row of the picture.

    Attributes
    ----------
    name : str
        Its name; 40 characters are shown.
    cells : sequence of Cell
        One for each column, from the first to that at whose end it left.
    reason : str or None
        Why it left; None if it did not.
    """

    name: str
    cells: Sequence[Cell]
    reason: str | None = None


def bracket_chart(
    contenders: Sequence[BracketRow],
    *,
    rounds: Sequence[str],
    title: str,
    description: str,
    names_above: bool = False,
    width: int = 760,
    css: str = "",
) -> str:
    """Draw a contest: one bar per sub-space over the rounds it took part in, with a cross where it left.

    Every cell holds the best value and the number of trials, as far as there is room, and always as a tooltip; the
    better the value, the deeper the colour.

    Parameters
    ----------
    contenders : sequence of BracketRow
        Rows from top to bottom; the first 40 are drawn.
    rounds : sequence of str
        Heads of the columns.
    title : str
        What the picture shows, for those who cannot see it.
    description : str
        The same in more detail.
    names_above : bool
        Names above the bars instead of on their left, for narrow drawings.
    width : int
        Width of the drawing; it scales with the page.
    css : str
        Class of the drawing.

    Returns
    -------
    str
        An ``<svg>`` element, or a sentence in ``<p>`` if there is nothing to draw.
    """
    shown = contenders[:MAX_ROWS]
    if not rounds or not any(contender.cells for contender in shown):
        return nothing_to_draw(css)
    names = [fitted_name(contender.name) for contender in shown]
    bold = [1.1 if contender.reason is None else 1.0 for contender in shown]
    left = 10.0 if names_above else 18 + max(map(operator.mul, bold, map(text_width, names)))
    column = min(_WIDEST, (width - left - 12) / len(rounds))
    heads = [clean_text(head, 12) for head in rounds]
    top = 24.0
    pitch, bar = (52.0, 30.0) if names_above else (38.0, 34.0)
    bottom = top + pitch * len(shown)
    parts = _heads(heads, left, column, top, bottom, names_above=names_above)
    shades = _shades([cell.loss for contender in shown for cell in contender.cells if cell.loss is not None])
    for k, (contender, name) in enumerate(zip(shown, names, strict=True)):
        first = _Box(left, top + pitch * (k + 1) - bar - 2, column, bar)
        parts += _row(contender, name, first, heads, shades, name_above=names_above)
    parts += _legend(bottom + 16)
    rest = len(contenders) - len(shown)
    if rest:
        parts.append(element("text", f"… and {rest} more that left before", class_="tick", x=10, y=bottom + 46))
    height = int(bottom + (56 if rest else 34))
    return drawing(parts, width, height, title=title, css=css, description=description)


@dataclass(frozen=True, slots=True)
class _Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


def _heads(
    heads: Sequence[str], left: float, column: float, top: float, bottom: float, *, names_above: bool
) -> list[str]:
    """Draw the numbers of the rounds and thin lines between them."""
    parts = []
    if not names_above:
        parts.append(element("text", "round", class_="label", x=left - 10, y=top - 9, text_anchor="end"))
    free = 0.0
    for j, head in enumerate(heads):
        middle, half = left + column * (j + 0.5), CHARACTER * len(head) / 2
        if middle - half >= free:
            text = f"round {head}" if names_above and j == 0 and column > 60 else head
            parts.append(
                element("text", svg_text(text), class_="tick", x=f"{middle:.1f}", y=top - 9, text_anchor="middle")
            )
            free = middle + half + 4
    if not names_above:  # lines would cross the names
        lines = "".join(f"M{left + column * (j + 1) - 0.75:.1f} {top:g}V{bottom:g}" for j in range(len(heads)))
        parts.append(element("path", class_="grid", d=lines))
    return parts


def _row(
    contender: BracketRow,
    name: str,
    first: _Box,
    heads: Sequence[str],
    shades: Mapping[float | None, float],
    *,
    name_above: bool,
) -> list[str]:
    """Draw the name of a sub-space, its cells from the first on, and a cross where it left."""
    place: dict[str, float | str] = {"x": first.x, "y": first.y - 6}
    if not name_above:
        place = {"x": first.x - 10, "y": first.y + first.height / 2 + 4, "text_anchor": "end"}
    if contender.reason is None:
        place["font_weight"] = "600"
    parts = [element("text", svg_text(name), class_="name", **place)]
    for j, (cell, head) in enumerate(zip(contender.cells, heads, strict=False)):
        box = replace(first, x=first.x + first.width * j, width=first.width - 1.5)
        parts += _cell(cell, box, f"{name}, round {head}", shades.get(cell.loss, 0.0))
    if contender.reason is not None:
        parts.append(_cross(first.x + first.width * len(contender.cells), first.y, first.height, contender.reason))
    return parts


def _cell(cell: Cell, box: _Box, who: str, shade: float) -> list[str]:
    """Draw a cell, with its value and its number of trials where they fit."""
    trials = f"{cell.trials:,} trial{'' if cell.trials == 1 else 's'}"
    colour = (
        {"class_": "track"}
        if cell.loss is None
        else {"class_": "cell", "fill_opacity": f"{opacity(shade, _PALEST):.2f}"}
    )
    parts = [
        element(
            "rect", tooltip(f"{who}: {cell.text}, {trials}", 120), **colour,
            x=f"{box.x:.1f}", y=box.y, width=f"{box.width:.1f}", height=box.height,
        )
    ]  # fmt: skip
    short = trials if _DIGIT * len(trials) <= box.width - 4 else f"{cell.trials:,}"
    middle = f"{box.x + box.width / 2:.1f}"
    for text, share in ((cell.text, 0.44), (short, 0.86)):
        if _DIGIT * len(text) <= box.width - 2:
            y = f"{box.y + share * box.height - 1:.1f}"
            parts.append(element("text", svg_text(text, 20), class_="value", x=middle, text_anchor="middle", y=y))
    return parts


def _cross(x: float, y: float, height: float, reason: str) -> str:
    """Draw the line at which a sub-space left, with a cross."""
    middle = y + height / 2
    path = f"M{x:.1f} {y:g}v{height:g}M{x + 5:.1f} {middle - 4:g}l8 8m0 -8l-8 8"
    return element("path", tooltip(f"left: {clean_text(reason, 300)}", 320), class_="rug", d=path)


def _shades(losses: Sequence[float]) -> dict[float | None, float]:
    """Return the shade of each loss, in [0, 1].

    The palest shade is at twice the median distance from the best loss: with the worst loss there, a few very bad ones
    would squeeze the rest together.
    """
    if not losses:
        return {}
    best = min(losses)
    span = 2 * statistics.median(loss - best for loss in losses) or max(losses) - best or 1.0
    return {loss: max(0.0, 1 - (loss - best) / span) for loss in losses}


def _legend(y: float) -> list[str]:
    """Draw the legend of shades and crosses."""
    return [
        element("text", "worse", class_="tick", x=10, y=y + 9),
        *shade_scale(52, y, n=6, width=12, height=10, palest=_PALEST),
        element("text", "better", class_="tick", x=132, y=y + 9),
        element("path", class_="rug", d=f"M190 {y - 1:g}v12M195 {y + 1:g}l8 8m0 -8l-8 8"),
        element("text", "left the contest", class_="tick", x=210, y=y + 9),
    ]
