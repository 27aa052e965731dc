"""Signs that rows have an undeclared structure: dates, identifiers that several rows share, and row numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray
from cashmere.base.text import columns_hold
from cashmere.data.column import Column, ColumnKind
from cashmere.data.kind_hints import other_notation
from cashmere.data.schema import CodedTable

_IDENTIFIER_WORDS = frozenset({"id", "ids", "identifier", "uid", "uuid", "guid", "pid", "mrn"})
"""Words that mark a column as identifiers anywhere in its name."""

_OWNER_WORDS = frozenset(
    {"patient", "subject", "participant", "person", "user", "customer", "client", "member", "household", "family"}
    | {"session", "device", "machine", "vehicle", "account", "speaker", "student", "donor"}
)
"""Words that do so only at the end, and not after these: neither an account length nor the age of a patient identifies
one."""

_OF_OWNER = frozenset({"of", "per", "by"})

_NUMBERING_WORDS = frozenset({"number", "no", "nr", "num", "code", "key", "name"})
"""Words that may follow an owner: a speaker number identifies the speaker."""

_ROW_WORDS = _IDENTIFIER_WORDS | _NUMBERING_WORDS | {"unnamed", "index", "row", "rows", "record", "observation", "case"}
"""A column of which all words are among these may number the rows."""

_FIRST_ROWS = 1000

_LEAST_VALUES = 10
"""Fewest different identifiers in a column."""

_LEAST_CODES, _MOST_ROWS_OF_CODE = 50, 50
"""For columns with other names whose texts contain digits: fewest values, and most rows per value on average."""

_ROWS_OF_NUMBER, _SHARE_OF_ROWS, _LEAST_GAP = (2, 10), 0.75, 5
"""For whole numbers with other names: fewest and most rows of one, how many rows have such a one, and the gap between
neighbouring numbers (median). Measurements that occur as often leave no gaps, unless they are rounded."""

_MOST_ON_DIGIT, _LEAST_NARROW = 0.3, 0.1
"""Shares: most of the numbers that end in one digit, and fewest gaps below half of the usual one; others are prices, or
multiples of a unit."""


def structure_hint(coded: CodedTable, *, in_time: bool = False) -> str | None:
    """Return a warning about columns that hold dates, repeated identifiers or row numbers; None if there are none.

    Identifiers are categories or whole numbers with a telling name ("patient_id"), or texts with digits that are no
    numbers or dates. They have many values, and most rows share theirs with others. If there are none, whole numbers
    with any name count, of which nearly each is in a few rows and far from the next. Row numbers are consecutive whole
    numbers with a telling name ("Unnamed: 0", "id").

    Parameters
    ----------
    coded : CodedTable
        The training rows.
    in_time : bool
        Whether rows are known to be in order of time. Then only identifiers with a telling name are reported.
    """
    used = coded.schema.used
    dates = [column.name for column in used if column.kind is ColumnKind.DATE]
    position_of = {name: position for position, name in enumerate(coded.value_names)}
    identifiers = [
        column.name
        for column in used
        if column.kind in (ColumnKind.CATEGORICAL, ColumnKind.NUMERIC)
        and _is_repeated_identifier(column, coded.values[:, position_of[column.name]], only_named=in_time)
    ]
    identifiers.sort(key=lambda name: _IDENTIFIER_WORDS.isdisjoint(_words(name)))  # customer_id before subject
    numbers = [
        column.name
        for column in used
        if column.kind is ColumnKind.NUMERIC and _numbers_rows(column, coded.values[:, position_of[column.name]])
    ]
    if in_time:
        if not identifiers:
            return None
        return (
            f"{columns_hold(identifiers)} identifiers that several rows share, so models have seen earlier rows of the "
            "same ones. If rows with new ones are to be predicted, scores are too good: "
            f"leave {'it' if len(identifiers) == 1 else 'them'} out (--ignore), which helps in part, or give "
            f"groups={identifiers[0]!r} (--groups) instead of time."
        )
    what = "identifiers that several rows share"
    if not identifiers:
        identifiers = [
            column.name
            for column in used
            if column.kind is ColumnKind.NUMERIC
            and _look_like_identifiers(coded.values[:, position_of[column.name]], column.offset)
        ]
        what = "numbers that look like identifiers, each in a few rows"
    sentences = []
    if dates:
        # Dates of birth spread over a much longer time than the rows.
        nearest = min(dates, key=lambda name: _range(coded.values[:, position_of[f"{name}.days_since_1970"]]))
        those = "" if len(dates) == 1 else "the dates of the rows, perhaps "
        sentences.append(
            f"{columns_hold(dates)} dates. If later rows are to be predicted, random folds let models see the future, "
            f"and scores are too good: give {those}time={nearest!r} (--time). Only its parts that recur, such as the "
            "weekday, are then features; of a copy, all parts."
        )
    if identifiers:
        sentences.append(
            f"{columns_hold(identifiers)} {what}. If rows with new ones are to be predicted, random folds show models "
            "other rows of the same ones, and scores are too good: give "
            f"groups={identifiers[0]!r} (--groups)."
        )
        numeric = [column.name for column in used if column.kind is ColumnKind.NUMERIC and column.name in identifiers]
        if numeric:
            sentences.append(
                f"If new rows have the same ones, let {'it' if len(numeric) == 1 else 'them'} be categories "
                f"(--categorical {numeric[0]}; in Python, astype('category')): their order as numbers tells nothing."
            )
    if numbers:
        sentences.append(
            f"{columns_hold(numbers)} the numbers of the rows. New rows have numbers that no model has seen: remove "
            f"{'it' if len(numbers) == 1 else 'them'}, or, if rows are in order of time, give time={numbers[0]!r} "
            "(--time)."
        )
    return " ".join(sentences) or None


def _range(values: AnyArray) -> float:
    """Return how far numbers spread."""
    return float(np.nanmax(values) - np.nanmin(values))


def feature_that_is_the_groups(frame: pd.DataFrame, groups: Any) -> str | None:
    """Return a warning if values given as groups are still among the features, else None.

    Parameters
    ----------
    frame : DataFrame
        The features.
    groups : str, (n_rows,) array-like or None
        As for `take_structure`: the name of a column is taken out.

    Examples
    --------
    >>> visits = pd.DataFrame({"patient": ["a", "b", "a"], "dose": [1, 2, 3]})
    >>> feature_that_is_the_groups(visits, visits["patient"]).partition(",")[0]
    "The features contain the groups: column 'patient' has their values"
    """
    if groups is None or isinstance(groups, str):
        return None
    values = np.asarray(groups, dtype=object)
    same = [
        str(name)
        for name, column in frame.items()
        if all(
            np.array_equal(column.iloc[:n_rows].to_numpy(dtype=object), values[:n_rows])
            for n_rows in (_FIRST_ROWS, len(frame))  # the first rows suffice in most columns
        )
    ]
    if not same:
        return None
    return (
        f"The features contain the groups: column {same[0]!r} has their values, which new groups do not have, so "
        f"models learn what they cannot use. Give its name, which takes it out: groups={same[0]!r}."
    )


def _numbers_rows(column: Column, values: AnyArray) -> bool:
    """Return whether a column is named like row numbers or identifiers, and holds consecutive whole numbers."""
    words = _words(column.name)
    if not words or (not _ROW_WORDS.issuperset(words) and _IDENTIFIER_WORDS.isdisjoint(words)):
        return False
    ordered = np.sort(values)
    return len(ordered) >= _LEAST_VALUES and np.array_equal(ordered, ordered[0] + np.arange(len(ordered)))


def _is_repeated_identifier(column: Column, values: AnyArray, *, only_named: bool) -> bool:
    """Return whether a column looks like identifiers, most of which several rows share."""
    words = _words(column.name)
    owner = words[-2:-1] if words and words[-1] in _NUMBERING_WORDS else words[-1:]
    is_named = bool(_IDENTIFIER_WORDS.intersection(words)) or (
        not _OWNER_WORDS.isdisjoint(owner) and _OF_OWNER.isdisjoint(words)
    )
    if not is_named and (only_named or len(column.categories) < _LEAST_CODES):  # numbers have none
        return False
    values = values[~np.isnan(values)]
    if not is_named and not _are_codes(column.categories, len(values)):
        return False
    if np.any(values != np.floor(values)):
        return False
    counts = np.unique(values, return_counts=True)[1]
    return len(counts) >= _LEAST_VALUES and bool(2 * counts[counts > 1].sum() > len(values))


def _look_like_identifiers(values: AnyArray, offset: float) -> bool:
    """Return whether values are whole numbers, nearly each in a few rows and far from the next, and not rounded."""
    for part in (values[:_FIRST_ROWS], values):  # the first rows suffice in most columns
        known = part[~np.isnan(part)]
        if np.any(known != np.floor(known)):
            return False
    fewest, most = _ROWS_OF_NUMBER
    needed = max(_LEAST_CODES, len(known) // most)
    if len(known) < fewest * _LEAST_CODES or known.max() - known.min() < _LEAST_GAP * needed / 2:  # sorting takes long
        return False
    numbers, counts = np.unique(known.astype(np.float64) + offset, return_counts=True)
    is_shared = (counts >= fewest) & (counts <= most)
    if len(numbers) < _LEAST_CODES or numbers[0] < 0 or counts[is_shared].sum() < _SHARE_OF_ROWS * len(known):
        return False
    gaps = np.diff(numbers)
    usual = np.median(gaps)
    on_digit = np.bincount((numbers % 10).astype(np.int64)).max() / len(numbers)
    is_even = np.mean(gaps < usual / 2) < _LEAST_NARROW
    return bool(usual >= _LEAST_GAP and on_digit < _MOST_ON_DIGIT and not is_even)


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def _are_codes(categories: tuple[str, ...], n_rows: int) -> bool:
    with_digits = sum(any(letter.isdigit() for letter in category) for category in categories)
    if 2 * with_digits <= len(categories) or n_rows > _MOST_ROWS_OF_CODE * len(categories):
        return False
    return other_notation(pd.Series(categories, dtype=object)) is None
