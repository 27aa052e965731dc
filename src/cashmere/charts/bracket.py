"""The picture of a contest, as SVG text like those of `cashmere.charts.charts`: sub-spaces over rounds."""

from __future__ import annotations

import html
import itertools
import operator
import statistics
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from cashmere.base.text import clean_text
from cashmere.charts.charts import svg_attribute, svg_element, svg_text

_CHARACTER = 6.8
"""Mean width of a character at the font size of 12, in units of the drawing."""

_DIGIT = 6.3
"""The same for numbers in cells, which are smaller."""

_WIDEST = 130.0
"""Largest width of a column."""

_WIDE = 12.5
"""Width of a capital W, or of a Chinese character."""

_NAME_LENGTH = 40
_NAME_WIDTH = 310.0

MAX_ROWS = 40
"""Sub-spaces drawn at most, to bound the size of a page."""


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
class Contender:
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
    contenders: Sequence[Contender],
    *,
    rounds: Sequence[str],
    title: str,
    description: str,
    names_above: bool = False,
    width: int = 760,
    css: str = "",
) -> str:
    """Draw a contest: a bar for each sub-space over the rounds it took part in, with a cross where it left.

    Every cell holds the best value and the number of trials, as far as there is room, and always as a tooltip; the
    better the value, the deeper the colour.

    Parameters
    ----------
    contenders : sequence of Contender
        Rows from top to bottom; the first 40 are drawn.
    rounds : sequence of str
        Heads of the columns.
    title : str
        What the picture shows, for those who cannot see it.
    description : str
        What is to be seen, for them as well.
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
        return f'<p class="empty {svg_attribute(css)}">Nothing to draw yet.</p>'
    names = [fitted_name(contender.name) for contender in shown]
    bold = [1.1 if contender.reason is None else 1.0 for contender in shown]
    left = 10.0 if names_above else 18 + max(map(operator.mul, bold, map(_width, names)))
    column = min(_WIDEST, (width - left - 12) / len(rounds))
    heads = [clean_text(head, 12) for head in rounds]
    top = 24.0
    pitch, bar = (52.0, 30.0) if names_above else (38.0, 34.0)
    bottom = top + pitch * len(shown)
    parts = _heads(heads, left, column, top, bottom, names_above=names_above)
    shades = _shades([cell.loss for contender in shown for cell in contender.cells if cell.loss is not None])
    for k, (contender, name) in enumerate(zip(shown, names, strict=True)):
        y = top + pitch * (k + 1) - bar - 2
        weight = ' font-weight="600"' if contender.reason is None else ""
        place = (
            f'x="{left:g}" y="{y - 6:g}"'
            if names_above
            else f'x="{left - 10:g}" y="{y + bar / 2 + 4:g}" text-anchor="end"'
        )
        parts.append(f'<text class="name" {place}{weight}>{html.escape(name)}</text>')
        for j, (cell, head) in enumerate(zip(contender.cells, heads, strict=False)):
            box = _Box(left + column * j, y, column - 1.5, bar)
            parts.append(_cell(cell, box, f"{name}, round {head}", shades.get(cell.loss, 0.0)))
        if contender.reason is not None:
            parts.append(_cross(left + column * len(contender.cells), y, bar, contender.reason))
    parts += _legend(bottom + 16)
    rest = len(contenders) - len(shown)
    if rest:
        parts.append(f'<text class="tick" x="10" y="{bottom + 46:g}">… and {rest} more that left before</text>')
    height = int(bottom + (56 if rest else 34))
    return svg_element(parts, width, height, title, css, description)


def fitted_name(name: str) -> str:
    """Return a name as pictures show it: clean, with at most 40 characters, fewer where these are wide.

    Examples
    --------
    >>> fitted_name("a name " * 10)
    'a name a name a name a name a name a na…'
    """
    name = clean_text(name, _NAME_LENGTH)
    room = next((n for n, width in enumerate(itertools.accumulate(map(_width, name))) if width > _NAME_WIDTH), None)
    return name if room is None else name[: room - 1] + "…"


def _width(text: str) -> float:
    """Estimate the width of a text in units of the drawing."""
    wide = sum(c in "WMwm@%—" or unicodedata.east_asian_width(c) in "WF" for c in text)
    return _WIDE * wide + _CHARACTER * (len(text) - wide)


@dataclass(frozen=True, slots=True)
class _Box:
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
        parts.append(f'<text class="label" x="{left - 10:g}" y="{top - 9:g}" text-anchor="end">round</text>')
    free = 0.0
    for j, head in enumerate(heads):
        middle, half = left + column * (j + 0.5), _CHARACTER * len(head) / 2
        if middle - half >= free:
            text = f"round {head}" if names_above and j == 0 and column > 60 else head
            parts.append(
                f'<text class="tick" x="{middle:.1f}" y="{top - 9:g}" text-anchor="middle">{html.escape(text)}</text>'
            )
            free = middle + half + 4
    if not names_above:  # lines would cross the names
        lines = "".join(f"M{left + column * (j + 1) - 0.75:.1f} {top:g}V{bottom:g}" for j in range(len(heads)))
        parts.append(f'<path class="grid" d="{lines}"/>')
    return parts


def _cell(cell: Cell, box: _Box, who: str, shade: float) -> str:
    trials = f"{cell.trials:,} trial{'' if cell.trials == 1 else 's'}"
    rectangle = f'x="{box.x:.1f}" y="{box.y:g}" width="{box.width:.1f}" height="{box.height:g}"'
    css = "track" if cell.loss is None else "cell"
    opacity = "" if cell.loss is None else f' fill-opacity="{_opacity(shade)}"'
    title = svg_text(f"{who}: {cell.text}, {trials}", 120)
    drawn = f'<rect class="{css}"{opacity} {rectangle}><title>{title}</title></rect>'
    short = trials if _DIGIT * len(trials) <= box.width - 4 else f"{cell.trials:,}"
    middle = f'x="{box.x + box.width / 2:.1f}" text-anchor="middle"'
    for text, share in ((cell.text, 0.44), (short, 0.86)):
        if _DIGIT * len(text) <= box.width - 2:
            y = box.y + share * box.height - 1
            drawn += f'<text class="value" {middle} y="{y:.1f}">{svg_text(text, 20)}</text>'
    return drawn


def _cross(x: float, y: float, height: float, reason: str) -> str:
    """Draw the line at which a sub-space left, with a cross."""
    middle = y + height / 2
    path = f"M{x:.1f} {y:g}v{height:g}M{x + 5:.1f} {middle - 4:g}l8 8m0 -8l-8 8"
    return f'<path class="rug" d="{path}"><title>left: {svg_text(reason, 300)}</title></path>'


def _shades(losses: Sequence[float]) -> dict[float | None, float]:
    """Return how deep each loss is coloured, in [0, 1].

    Losses are compared with twice the median distance to the best one: a few very bad ones would press the rest
    together.
    """
    if not losses:
        return {}
    best = min(losses)
    span = 2 * statistics.median(loss - best for loss in losses) or max(losses) - best or 1.0
    return {loss: max(0.0, 1 - (loss - best) / span) for loss in losses}


def _opacity(shade: float) -> str:
    return f"{0.08 + 0.92 * shade:.2f}"


def _legend(y: float) -> list[str]:
    parts = [f'<text class="tick" x="10" y="{y + 9:g}">worse</text>']
    for k in range(6):
        box = f'x="{52 + 12 * k}" y="{y:g}" width="12" height="10"'
        parts.append(f'<rect class="cell" fill-opacity="{_opacity(k / 5)}" {box}/>')
    parts.append(f'<text class="tick" x="132" y="{y + 9:g}">better</text>')
    parts.append(f'<path class="rug" d="M190 {y - 1:g}v12M195 {y + 1:g}l8 8m0 -8l-8 8"/>')
    parts.append(f'<text class="tick" x="210" y="{y + 9:g}">left the contest</text>')
    return parts
