"""Where a configuration came from, as a record; the text is written where it is shown."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self


class OriginKind(StrEnum):
    """How a configuration was chosen."""

    RANDOM = "random"
    REPEATED = "random (repeated)"
    """Drawn although it had been evaluated, because nothing new was left."""
    MODEL = "model"
    MUTATION = "mutation"
    RANKING = "ranking"
    """The next of a list learned from other tables."""
    START = "start"
    """One of the first configurations, placed by a strategy according to a plan."""
    WARM_START = "warm start"
    """Given by the user or by a portfolio."""
    LAST_SECONDS = "last seconds"
    """Chosen by the clock, to end before the budget does: the history alone does not explain it."""
    PROMOTED = "promoted"
    """Among the best on fewer rows."""
    OTHER = "other"
    """Reported as text by a custom strategy, or stored by an earlier version."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The part of the space whose turn it was, if a strategy divides the space.

    Attributes
    ----------
    subspace : str
        Name of the part.
    round : int or None
        Round of the contest; None if there are no rounds.
    """

    subspace: str
    round: int | None = None

    def __str__(self) -> str:
        return self.subspace if self.round is None else f"round {self.round} · {self.subspace}"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a configuration came from.

    Attributes
    ----------
    kind : OriginKind
        How it was chosen.
    detail : str
        Further details, such as the part of the space that a plan starts with; the whole text if the kind is other.
    turns : tuple of Turn
        The enclosing parts of the space, outermost first.

    Examples
    --------
    >>> str(Origin(OriginKind.MODEL).within("svm", round=2))
    'round 2 · svm · model'
    >>> Origin.parse('{"kind": "start", "detail": "smote"}').kind.value
    'start'
    """

    kind: OriginKind
    detail: str = ""
    turns: tuple[Turn, ...] = ()

    def __str__(self) -> str:
        if self.kind is OriginKind.OTHER:
            own = self.detail
        else:
            own = f"{self.kind.value}: {self.detail}" if self.detail else self.kind.value
        return " · ".join([*map(str, self.turns), own])

    @classmethod
    def other(cls, text: str) -> Self:
        """Return an origin known only as text."""
        return cls(OriginKind.OTHER, text)

    def within(self, subspace: str, *, round: int | None = None) -> Self:
        """Return the same origin inside a part of the space."""
        return replace(self, turns=(Turn(subspace, round), *self.turns))

    def to_json(self) -> str:
        """Return a text for `parse`."""
        data = {
            "kind": self.kind.value,
            "detail": self.detail,
            "turns": [{"subspace": turn.subspace, "round": turn.round} for turn in self.turns],
        }
        return json.dumps({name: value for name, value in data.items() if value}, ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return a stored origin.

        Earlier versions stored the result of `str`. Such a text is not parsed: it is one of the kinds, or other.
        """
        if text in set(OriginKind):
            return cls(OriginKind(text))
        try:
            data = json.loads(text)
            turns = tuple(Turn(str(turn["subspace"]), turn["round"]) for turn in data.get("turns", ()))
            return cls(OriginKind(data["kind"]), str(data.get("detail", "")), turns)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):  # whatever a forged text leads to
            return cls.other(text)
