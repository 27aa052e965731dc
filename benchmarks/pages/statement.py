"""Parts of a page whose numbers are computed: find them in the page, compare them, and write them again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter

WORDS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip

_NUMBER = r"[+-]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:e-?\d+)?"
_WORD = "(?i:" + "|".join(WORDS) + ")"


class PageError(Exception):
    """A statement is not in its page, or more than once, or its rows are missing."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """A part of a page, with fields for its numbers.

    Attributes
    ----------
    text : str
        As in the page, except for line breaks; ``{name:format}`` stands for a number. The format is that of
        Python, or ``word`` and ``Word`` for numbers up to twenty in words.
    values : mapping of str to float
        Values of the fields.
    """

    text: str
    values: Mapping[str, float]

    def fields_in(self, page: str) -> list[tuple[re.Match[str], int, str]]:
        """Return, for every field, the match of the statement, the group of the field, and what it should be.

        Raises
        ------
        PageError
            If the statement is not in the page exactly once.
        """
        pattern, shown = "", []
        for literal, name, form, _ in Formatter().parse(self.text):
            pattern += r"\s+".join(map(re.escape, re.split(r"\s+", literal)))
            if name is not None:
                value = self.values[name]
                in_words = (form or "").lower() == "word"
                pattern += f"({_WORD if in_words else _NUMBER})"
                shown.append(_in_words(value, form or "") if in_words else format(value, form or ""))
        matches = list(re.finditer(pattern, page))
        if len(matches) != 1:
            raise PageError(f"{len(matches)} times in the page, expected once: {self.text!r}")
        return [(matches[0], i, text) for i, text in enumerate(shown, 1)]


def _in_words(value: float, form: str) -> str:
    text = WORDS[int(value)]
    return text.capitalize() if form[0] == "W" else text


@dataclass(frozen=True, kw_only=True)
class Body:
    """The rows of a table of a page.

    Attributes
    ----------
    header : str
        The line above the rule of the table.
    lines : sequence of str
        The rows below the rule.
    """

    header: str
    lines: tuple[str, ...]

    def place_in(self, page: str) -> tuple[int, int]:
        """Return the start and the end of the rows in the page.

        Raises
        ------
        PageError
            If the header is not in the page exactly once.
        """
        matches = list(re.finditer(rf"^{re.escape(self.header)}\n\|[-:| ]+\|\n((?:\|.*\n)*)", page, re.MULTILINE))
        if len(matches) != 1:
            raise PageError(f"{len(matches)} tables with the header {self.header!r}, expected one")
        return matches[0].span(1)


def row(*cells: str) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def signed(value: float, digits: int) -> str:
    """Return a number with its sign, zero without one."""
    text = f"{value:+.{digits}f}"
    return f"{0:.{digits}f}" if float(text) == 0 else text


def written(page: str, parts: tuple[Statement | Body, ...]) -> str:
    """Return the page with the computed numbers."""
    changes: list[tuple[int, int, str]] = []
    for part in parts:
        if isinstance(part, Body):
            changes.append((*part.place_in(page), "".join(f"{line}\n" for line in part.lines)))
        else:
            changes += [(*match.span(i), text) for match, i, text in part.fields_in(page)]
    for start, end, text in sorted(changes, reverse=True):
        page = page[:start] + text + page[end:]
    return page


def tables_by_hand(page: str, parts: tuple[Statement | Body, ...]) -> list[str]:
    """Return the headers of the tables of a page whose numbers no part computes; code and links do not count."""
    computed = {part.place_in(page) for part in parts if isinstance(part, Body)}
    tables = re.finditer(r"^(\|.*\|)\n\|[-:| ]+\|\n((?:\|.*\n)*)", page, re.MULTILINE)
    return [
        table[1]
        for table in tables
        if table.span(2) not in computed and re.search(r"\d", re.sub(r"`[^`]*`|\]\([^)]*\)", "", table[2]))
    ]


def unexplained(page: str, parts: tuple[Statement | Body, ...], given: tuple[str, ...]) -> list[str]:
    """Return the lines of a page with a number that no part computes and that is not given.

    Parameters
    ----------
    page : str
        Its text.
    parts : tuple
        What is computed.
    given : tuple of str
        Regular expressions of texts whose numbers are no results: settings, names, dates.
    """
    known: list[tuple[int, int]] = []
    for part in parts:
        if isinstance(part, Body):
            known.append(part.place_in(page))
        else:
            known += [match.span(i) for match, i, _ in part.fields_in(page)]
    for text in given:
        known += [match.span() for match in re.finditer(text, page)]
    found = []
    for number in re.finditer(r"\d[\d,.]*", page):
        if not any(start <= number.start() < end for start, end in known):
            line = page[page.rfind("\n", 0, number.start()) + 1 : page.find("\n", number.end())]
            found.append(f"{number[0]} in: {line}")
    return found
