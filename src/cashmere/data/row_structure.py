"""The structure of the rows: groups of rows that belong together, or an order in time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self, TypeGuard

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray, IntArray
from cashmere.base.text import counted, shown_spellings
from cashmere.data.other_columns import read_labels, read_times
from cashmere.exceptions import DataError, InvalidParameterError, UnknownNameError
from cashmere.records.budget import parse_seconds


class StructureKind(StrEnum):
    """What the numbers of a `RowStructure` mean."""

    GROUPS = "groups"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowStructure:
    """Which rows must not be separated, or which come first: all splits of rows derive from it.

    Attributes
    ----------
    kind : StructureKind
        What `codes` mean.
    codes : (n_rows,) array of int64
        The group of each row, or its moment, numbered in ascending order; rows of one moment stay together like those
        of a group. All numbers from 0 to the largest occur.
    name : str
        Name of the column, for messages.
    calendar : str
        Name of the column of dates that stays in the table, as parts of it may recur; ``""`` if there is none.
    known : (n_rows,) array of int64 or None
        With a gap in time: how many moments are known when a row is predicted; their numbers are below this one.
    digests : (n_groups,) array of int64 or None
        Of groups, see `group_digests`; earlier versions did not keep them.
    alike : str
        Groups that differ only in case or blanks, as a message shows them; ``""`` if there are none.

    Examples
    --------
    >>> RowStructure.from_values(["b", "a", "b"], StructureKind.GROUPS).codes
    array([1, 0, 1])
    >>> RowStructure.from_values(["2024-05-01", "2023-01-31", "2024-05-01"], StructureKind.TIME).codes
    array([1, 0, 1])
    """

    kind: StructureKind
    codes: IntArray
    name: str = ""
    calendar: str = ""
    known: IntArray | None = None
    digests: IntArray | None = None
    alike: str = ""

    @classmethod
    def from_values(
        cls, values: Any, kind: StructureKind, *, name: str | None = None, gap: float | str | None = None
    ) -> Self:
        """Read groups or moments.

        Parameters
        ----------
        values : (n_rows,) array-like
            Groups: texts, numbers, or anything else that a category may be; 1, 1.0 and "1" are the same. Moments:
            numbers, dates, or texts of dates. Dates are ordered in UTC, and count as such without an offset or a zone.
        kind : StructureKind
            How to read them.
        name : str, optional
            Name of the column; by default that of a pandas Series, or the kind.
        gap : float or str, optional
            Time after which a row is known, for moments: a number in their unit, or ``"28d"`` for dates.

        Raises
        ------
        DataError
            If values are missing or all the same, or if moments are neither numbers nor dates.
        InvalidParameterError
            If the gap is not of the kind of the moments, or longer than they span.
        """
        return cls._read(values, kind, name=name, gap=gap)[0]

    @classmethod
    def _read(cls, values: Any, kind: StructureKind, *, name: str | None, gap: float | str | None) -> tuple[Self, bool]:
        """Return the structure, and whether its moments are dates."""
        name = shown_name(values, kind) if name is None else name
        column = values if isinstance(values, pd.Series) else pd.Series(_one_dimensional(values, name))
        if kind is StructureKind.GROUPS:
            read = read_labels(column, name)
            missing = read == ""
        else:
            read = read_times(column, name)
            missing = pd.isna(read)
        what = "groups" if kind is StructureKind.GROUPS else "times"
        if missing.any():
            row = int(np.flatnonzero(missing)[0])
            raise DataError(
                f"The {what} in {name!r} are missing in {counted(int(missing.sum()), 'row')}, first in row "
                f"{row}. Every row needs one: fill them in, or leave these rows out.",
                column=name,
            )
        moments, codes = np.unique(read, return_inverse=True)
        codes = codes.astype(np.int64)
        if not codes.any():
            raise DataError(
                f"The {what} in {name!r} are the same in all rows, so that rows cannot be split by them. "
                f"Expected two or more different values; leave out {kind.value}= if there is no structure.",
                column=name,
            )
        known = None if gap is None or kind is StructureKind.GROUPS else _known_moments(moments, gap, name)[codes]
        digests, alike = None, ""
        if kind is StructureKind.GROUPS:
            digests = group_digests(moments)
            alike = "" if pd.api.types.is_numeric_dtype(column) else shown_spellings(moments.tolist())
        structure = cls(kind=kind, codes=codes, name=name, known=known, digests=digests, alike=alike)
        return structure, read.dtype.kind == "M"

    @property
    def known_moments(self) -> IntArray:
        """How many moments are known at each moment, shape ``(n_moments,)``, in ascending order."""
        n_values = int(self.codes.max(initial=-1)) + 1
        known = np.arange(n_values, dtype=np.int64)
        if self.known is not None:
            known[self.codes] = self.known
        return known

    @property
    def most_folds(self) -> int:
        """Largest possible number of folds: one per group if there are two, or per moment at which others are known."""
        if self.kind is StructureKind.TIME:
            return int(np.sum(self.known_moments > 0))
        n_values = int(self.codes.max(initial=-1)) + 1
        return n_values if n_values > 1 else 0

    @property
    def usual_folds(self) -> int:
        """Most folds that "auto" takes: in time, one per moment of the newer half of the rows, as the older trains.

        With a gap, the newer part is smaller, see `first_begin`.
        """
        if self.kind is not StructureKind.TIME:
            return self.most_folds
        if self.known is not None:
            return min(self.most_folds, int(self.codes.max()) + 1 - self.first_begin)
        older = np.partition(self.codes, len(self.codes) // 2)[len(self.codes) // 2]
        return min(self.most_folds, int(self.codes.max()) + 1 - int(older))

    @property
    def first_begin(self) -> int:
        """The first moment at which at least as many rows are known as have to be predicted from then on.

        From there on, folds in time validate. Without a gap, the newer half of the rows begins there.
        """
        rows_before = np.concatenate([[0], np.cumsum(np.bincount(self.codes))])
        left = rows_before[-1] - rows_before[:-1]
        moments = np.flatnonzero(rows_before[self.known_moments] >= left)
        return int(moments[0]) if len(moments) else len(left) - 1

    def equals(self, other: RowStructure) -> bool:
        """Return whether splits of another structure are the same."""
        return np.array_equal(self.codes, other.codes) and np.array_equal(self.known_moments, other.known_moments)

    def without_gap(self) -> RowStructure:
        """Return the same structure with all earlier moments known."""
        return replace(self, known=None)

    def take(self, rows: IntArray) -> RowStructure:
        """Return the structure of some rows, renumbered without gaps."""
        kept, codes = np.unique(self.codes[rows], return_inverse=True)
        known = None if self.known is None else np.searchsorted(kept, self.known[rows]).astype(np.int64)
        digests = None if self.digests is None else self.digests[kept]
        return replace(self, codes=codes.astype(np.int64), known=known, digests=digests)


def group_digests(names: AnyArray) -> IntArray:
    """Return a number for each name of a group, by which it is found again where the names are not kept.

    Parameters
    ----------
    names : (n_groups,) array of str

    Examples
    --------
    >>> group_digests(np.array(["ward 1", "ward 2"], dtype=object)) == group_digests(np.array(["ward 1"], dtype=object))
    array([ True, False])
    """
    hashes = pd.util.hash_array(names, categorize=False)  # they are different
    return hashes.view(np.int64)


def alike_groups_hint(structure: RowStructure | None) -> str | None:
    """Return a warning about groups that differ only in case or blanks; None if there are none."""
    if structure is None or not structure.alike:
        return None
    return (
        f"Column {structure.name!r} has groups that differ only in case or blanks ({structure.alike}): if they are the "
        "same group, write them alike, as their rows may be split between training and validation."
    )


_ULPS = 4
"""Rounding errors of a difference of numbers."""


def _known_moments(moments: AnyArray, gap: float | str, name: str) -> IntArray:
    """Return how many moments are known at each of them, which are distinct and ascend."""
    are_dates = moments.dtype.kind == "M"
    if are_dates != isinstance(gap, str):
        expected = "a time such as '28d' or '12h'" if are_dates else "a number in their unit (of durations, seconds)"
        kind = "dates" if are_dates else "numbers"
        raise InvalidParameterError("gap", gap, f"{expected}, because the times in {name!r} are {kind}")
    width = np.timedelta64(round(1e6 * parse_seconds(gap, "gap")), "us") if isinstance(gap, str) else gap
    latest: AnyArray = moments - width
    if not are_dates:
        latest = latest + _ULPS * np.finfo(np.float64).eps * np.maximum(np.abs(moments), width)
    known = np.searchsorted(moments, latest, side="right")
    known = np.minimum(known, np.arange(len(moments))).astype(np.int64)
    if not known.any():
        span = moments[-1] - moments[0]
        shown = str(pd.Timedelta(span)).removesuffix(" 00:00:00") if are_dates else f"{span:g}"
        raise InvalidParameterError("gap", gap, f"at most {shown}, the time from the first to the last of {name!r}")
    return known


def is_in_time(structure: RowStructure | None) -> TypeGuard[RowStructure]:
    """Return whether rows are ordered in time."""
    return structure is not None and structure.kind is StructureKind.TIME


def shown_name(given: Any, kind: StructureKind) -> str:
    """Return the name of groups or moments: that of the column or the Series, or else that of the kind."""
    return given if isinstance(given, str) else str(getattr(given, "name", None) or kind.value)


def structure_names(*, groups: Any, time: Any) -> dict[str, str]:
    """Return the names of groups or moments, see `shown_name`, by the kind."""
    given = {StructureKind.GROUPS: groups, StructureKind.TIME: time}
    return {kind.value: shown_name(values, kind) for kind, values in given.items() if values is not None}


def take_structure(
    frame: pd.DataFrame, *, groups: Any, time: Any, gap: float | str | None = None
) -> tuple[pd.DataFrame, RowStructure | None]:
    """Take the structure of the rows out of a table: it is not a feature, except for parts of dates that recur.

    Parameters
    ----------
    frame : DataFrame
        The features.
    groups, time : str, (n_rows,) array-like or None
        The name of a column, or the values themselves; at most one of the two.
    gap : float or str, optional
        See `RowStructure.from_values`.

    Returns
    -------
    frame : DataFrame
        The table without the column, if one was named; columns of dates stay, see `RowStructure.calendar`.
    structure : RowStructure or None

    Raises
    ------
    UnknownNameError
        If there is no such column.
    DataError
        If the values cannot be used, see `RowStructure.from_values`, or are not one per row.
    InvalidParameterError
        If the gap cannot be used.
    """
    given, kind = (groups, StructureKind.GROUPS) if time is None else (time, StructureKind.TIME)
    if given is None:
        return frame, None
    if isinstance(given, str):
        if given not in frame.columns:
            raise UnknownNameError("column", given, map(str, frame.columns))
        structure, are_dates = RowStructure._read(frame[given], kind, name=given, gap=gap)
        if are_dates:
            return frame, replace(structure, calendar=given)
        frame = frame.drop(columns=given)
        if frame.shape[1] == 0:
            raise DataError(f"There is no column beside {given!r}. Expected at least one feature.", column=given)
        return frame, structure
    if hasattr(given, "__len__") and len(given) != len(frame):
        text = f"{kind.value} must have one value for each of {len(frame)} rows; got {len(given)}."
        named = [name for name in given if isinstance(name, str) and name in frame.columns]
        raise DataError(
            text + (f" For the values of a column, pass its name: {kind.value}={named[0]!r}." if named else "")
        )
    return frame, RowStructure.from_values(given, kind, gap=gap)


def _one_dimensional(values: Any, name: str) -> AnyArray:
    try:
        array = np.asarray(values)
        if array.ndim == 1 and array.dtype.kind == "U":  # numpy has turned numbers beside texts into texts
            array = np.asarray(values, dtype=object)
    except ValueError as error:
        raise DataError(f"{name} must hold one value per row ({error}).") from error
    if array.ndim != 1:
        raise DataError(f"{name} must hold one value per row; got an array of shape {array.shape}.")
    return array
