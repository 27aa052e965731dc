"""Findings about a table to consider before a search."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cashmere.base.text import first_of


class FindingKind(StrEnum):
    """Kinds of findings; the first five are suspicions, each of which may spoil a model."""

    ALONE = "predicts alone"
    STRUCTURE = "structure of rows"
    CONTRADICTIONS = "contradictions"
    COPIES = "copies"
    DRIFT = "other new rows"
    TARGET = "target"
    DROPPED = "dropped"
    CONVERTED = "converted"
    UNREAD = "not understood"
    PLACEHOLDER = "placeholder"
    LEVELS = "many levels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding about a table.

    Attributes
    ----------
    kind : FindingKind
        Kind of the finding.
    columns : tuple of str
        Columns concerned; empty if it concerns rows.
    sentence : str
        What was found, and what to do.
    """

    kind: FindingKind
    columns: tuple[str, ...] = ()
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return {"kind": self.kind.value, "columns": list(self.columns), "sentence": self.sentence}


def named(columns: tuple[str, ...], *, most: int = 5) -> str:
    """Return names of columns for a sentence.

    Examples
    --------
    >>> named(("age",)), named(("a", "b", "c"), most=2)
    ("Column 'age'", "Columns 'a', 'b' and 1 more")
    """
    return f"Column{'s' if len(columns) > 1 else ''} {first_of(columns, most=most)}"
