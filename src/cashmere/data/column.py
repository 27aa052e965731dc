"""A column of a table, as a model understands it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from cashmere.data.amounts import Amounts
from cashmere.data.calendar import DATE_PARTS
from cashmere.data.dates import DateNotation

ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,31}(?:/[A-Za-z0-9_+-]{1,32}){0,3}")
"""What names of time zones look like: no path to another file."""


class ColumnKind(StrEnum):
    """How the values of a column are understood."""

    NUMERIC = "numeric"
    BOOLEAN = "boolean"
    CATEGORICAL = "categorical"
    DATE = "date"
    TEXT = "text"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of the table.

    Attributes
    ----------
    name : str
        Its name.
    kind : ColumnKind
        How its values are understood.
    categories : tuple of str
        Levels of a categorical column, in code order; sorted, or in the given order of an ordered categorical.
    with_time : bool
        Whether a date column has a time of day in training, and so an ``hour``.
    parts : tuple of str
        The parts of a date column that are features, if not all of them: those that recur, where its dates put the rows
        in order.
    notation : DateNotation
        What comes first in the dates of a column of texts, such as ``"1/2/2024"``.
    years : (int, int) or None
        The first and the last year of a date column in training: later years of two digits are of the nearest century.
        None in models of earlier versions.
    zone : str
        Time zone of a date column in training, such as ``"Europe/Berlin"``; later values of another zone are converted.
        Empty if it had none, or none with a name.
    missing_texts : tuple of str
        Texts among the numbers of a numeric column, such as ``"unknown"``, that are read as missing values.
    in_seconds : bool
        Whether a numeric column held durations or times of day, which are read as seconds.
    amounts : Amounts or None
        How the numbers of a numeric column are written, if not as plain numbers.
    offset : float
        Subtracted from the numbers of a numeric column before they become float32, which would merge many of them: the
        smallest number in training, or 0 where nothing would be lost.
    lowest, highest : float or None
        Smallest and largest number of a numeric column in training; None in models of earlier versions.
    missing : float or None
        Share of the training rows without a value; None in models of earlier versions.
    dropped : str or None
        Why the column is not used: ``"constant"``, ``"all missing"``, ``"duplicate of 'x'"``,
        ``"identifier: every value differs"``, or that it puts the rows in order and no part of it recurs.
    """

    name: str
    kind: ColumnKind
    categories: tuple[str, ...] = ()
    with_time: bool = False
    parts: tuple[str, ...] = ()
    notation: DateNotation = DateNotation.YEAR_FIRST
    years: tuple[int, int] | None = None
    zone: str = ""
    missing_texts: tuple[str, ...] = ()
    in_seconds: bool = False
    amounts: Amounts | None = None
    offset: float = 0.0
    lowest: float | None = None
    highest: float | None = None
    missing: float | None = None
    dropped: str | None = None

    @property
    def value_names(self) -> tuple[str, ...]:
        """Names of the number columns this column is coded into."""
        if self.dropped is not None or self.kind is ColumnKind.TEXT:
            return ()
        if self.kind is ColumnKind.DATE:
            return tuple(f"{self.name}.{part}" for part in self.date_parts)
        return (self.name,)

    @property
    def date_parts(self) -> tuple[str, ...]:
        """The parts of a date column that are features, in the order of `value_names`."""
        return self.parts or (DATE_PARTS if self.with_time else DATE_PARTS[:-1])
