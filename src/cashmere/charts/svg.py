"""SVG as text: elements, escaping, and the room that texts need."""

from __future__ import annotations

import html
import itertools
import unicodedata

from cashmere.base.text import clean_text

CHARACTER = 6.8
"""Mean width of a character at the charts' font size of 12, in units of the drawing."""

_WIDE = 12.5
"""Width of a capital W, or of a Chinese character."""

_WIDE_LETTERS = "WMwm@%—"

_NAME_LENGTH = 40
_NAME_WIDTH = 310.0


def element(tag: str, *content: str, **attributes: float | str) -> str:
    """Return an element as markup; one without content closes itself.

    Parameters
    ----------
    tag : str
        Its name.
    content : str
        Markup: other elements, or text escaped by `svg_text`.
    attributes : float or str
        Numbers are written with six digits at most, texts are escaped. An underscore stands for a hyphen; one at the
        end is dropped, as in ``class_``.

    Examples
    --------
    >>> element("text", "one", class_="tick", x=1.0, text_anchor="end")
    '<text class="tick" x="1" text-anchor="end">one</text>'
    >>> element("path", d="M0 0h18")
    '<path d="M0 0h18"/>'
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(value) if isinstance(value, str) else f"{value:g}"}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{written}>{''.join(content)}</{tag}>" if content else f"<{tag}{written}/>"


def drawing(parts: list[str], width: int, height: int, *, title: str, css: str, description: str = "") -> str:
    """Return a drawing of these parts, with its title and description for those who cannot see it."""
    told = [element("desc", svg_text(description, 600))] if description else []
    box = f"0 0 {width} {height}"
    return element("svg", tooltip(title, 300), *told, *parts, class_=f"chart {css_name(css)}", viewBox=box, role="img")


def nothing_to_draw(css: str) -> str:
    """Return the text that replaces a drawing without content."""
    return element("p", "Nothing to draw yet.", class_=f"empty {css_name(css)}")


def tooltip(text: str, limit: int = 80) -> str:
    """Return the ``<title>`` of an element: browsers show it as a tooltip, screen readers speak it."""
    return element("title", svg_text(text, limit))


def svg_text(text: str, limit: int = 80) -> str:
    """Clean, shorten and escape a text to put between tags."""
    return html.escape(clean_text(text, limit))


def css_name(text: str) -> str:
    """Return the class of an element, cleaned; `element` escapes it."""
    return clean_text(text, 80)


def text_width(text: str, character: float = CHARACTER, wide_letters: str = _WIDE_LETTERS) -> float:
    """Estimate the width of a text in units of the drawing."""
    wide = sum(c in wide_letters or unicodedata.east_asian_width(c) in "WF" for c in text)
    return _WIDE * wide + character * (len(text) - wide)


def fitted_name(name: str) -> str:
    """Return a name as pictures show it: clean, with at most 40 characters, fewer where these are wide.

    Examples
    --------
    >>> fitted_name("a name " * 10)
    'a name a name a name a name a name a na…'
    """
    name = clean_text(name, _NAME_LENGTH)
    widths = itertools.accumulate(map(text_width, name))
    room = next((n for n, width in enumerate(widths) if width > _NAME_WIDTH), None)
    return name if room is None else name[: room - 1] + "…"
