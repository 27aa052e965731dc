"""The trials in the database of a run, checked when they are read."""

from __future__ import annotations

import sqlite3
from collections.abc import Sized
from typing import Annotated, Any, TypedDict

from msgspec import Meta

from cashmere.base.json_files import Count, Finite, Positive, Seconds, ShortText, checked, parse_json
from cashmere.records.added_features import AddedFeatures
from cashmere.records.cause import Cause
from cashmere.records.origin import Origin
from cashmere.records.path import FollowedPath
from cashmere.records.trial import TrialStatus

_MOST_TRIALS = 1_000_000

_MOST_CHARACTERS = 2**28
"""Limit of the text in all rows together; a trial has a few hundred characters."""

_Text = Annotated[str, Meta(max_length=2**24)]
"""Long enough for an error message with its traceback."""


class _Row(TypedDict):
    """A row of the table ``trials`` as SQLite returns it."""

    number: Annotated[int, Meta(ge=0, lt=10**9)]
    configuration: _Text
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    origin: _Text
    fidelity: Annotated[float, Meta(gt=0, le=1)]
    status: TrialStatus
    loss: Finite | None
    fold_losses: _Text
    duration_seconds: Seconds
    fit_seconds: Seconds
    predict_seconds: Seconds
    memory_mib: Positive | None
    error: _Text | None
    finished_at: Seconds
    predictions_crc: Annotated[int, Meta(ge=0, lt=2**32)] | None
    member_bytes: Count | None


class _PathRow(TypedDict):
    """A row of the table ``paths`` as SQLite returns it."""

    number: Annotated[int, Meta(ge=0, lt=10**9)]
    parameter: ShortText | None
    positions: _Text | None
    losses: _Text | None
    chosen: Finite | None
    cut_short: _Text | None


class _EpochRow(TypedDict):
    """A row of the table ``epochs`` as SQLite returns it."""

    number: Annotated[int, Meta(ge=0, lt=10**9)]
    epoch: Annotated[int, Meta(ge=2, lt=10**6)]


class _FeaturesRow(TypedDict):
    """A row of the table ``features`` as SQLite returns it."""

    number: Annotated[int, Meta(ge=0, lt=10**9)]
    columns: Count
    seconds: Seconds


_Values = dict[_Text, _Text | Finite | int | bool | None]
"""Active values of a configuration, by name."""

_Losses = Annotated[list[float], Meta(max_length=10_000)]


def read_trials(database: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return all trials as dictionaries by column, in the order of their numbers.

    ``origin`` is an `Origin`, ``error`` and ``cut_short`` a `Cause` or None, ``status`` a `TrialStatus`, ``path`` a
    `FollowedPath` or None, ``features`` `AddedFeatures` or None.

    Raises
    ------
    ValueError
        If a row holds an impossible value; the message names both.
    """
    cursor = database.execute(f"SELECT {', '.join(_Row.__annotations__)} FROM trials ORDER BY number")
    found, size = [], 0
    for row in cursor:
        found.append(dict(zip(_Row.__annotations__, row, strict=True)))
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > _MOST_CHARACTERS or len(found) > _MOST_TRIALS:
            raise ValueError(f"more than {_MOST_TRIALS} trials, or {_MOST_CHARACTERS} characters of text")
    rows: list[dict[str, Any]] = [dict(row) for row in checked(found, list[_Row])]
    for row in rows:
        try:
            row["configuration"] = checked(parse_json(row["configuration"]), _Values)
            row["fold_losses"] = checked(parse_json(row["fold_losses"]), _Losses)
            if row["status"] is TrialStatus.SUCCESS and row["loss"] is None:
                raise ValueError("it succeeded, but has no loss")
        except ValueError as error:
            raise ValueError(f"trial {row['number']}: {error}") from error
        row["origin"] = Origin.parse(row["origin"])
        row["error"] = None if row["error"] is None else Cause.parse(row["error"])
        row |= {"path": None, "cut_short": None, "features": None}
    _add_paths(database, rows)
    _add_features(database, rows)
    return rows


def _add_paths(database: sqlite3.Connection, rows: list[dict[str, Any]]) -> None:
    """Add the paths of trials, and what cut them short; stores of earlier versions have neither."""
    by_number = {row["number"]: row for row in rows}
    for path in checked(_rows_beside(database, "paths", _PathRow, by_number), list[_PathRow]):
        number = path["number"]
        if number not in by_number:
            raise ValueError(f"the path of trial {number}, which is missing")
        if path["cut_short"] is not None:
            by_number[number]["cut_short"] = Cause.parse(path["cut_short"])
        if path["parameter"] is not None:
            positions, losses = (
                tuple(checked(parse_json(path[name] or "[]"), _Losses)) for name in ("positions", "losses")
            )
            if path["chosen"] not in positions or len(positions) != len(losses):
                raise ValueError(f"trial {number}: a path whose positions and losses do not fit each other")
            by_number[number]["path"] = FollowedPath(
                parameter=path["parameter"], positions=positions, losses=losses, chosen=float(path["chosen"] or 0)
            )


def _add_features(database: sqlite3.Connection, rows: list[dict[str, Any]]) -> None:
    """Add what trials spent on columns that they added; stores of earlier versions do not have this."""
    by_number = {row["number"]: row for row in rows}
    for added in checked(_rows_beside(database, "features", _FeaturesRow, by_number), list[_FeaturesRow]):
        if added["number"] not in by_number:
            raise ValueError(f"the features of trial {added['number']}, which is missing")
        by_number[added["number"]]["features"] = AddedFeatures(columns=added["columns"], seconds=added["seconds"])


def read_epochs(database: sqlite3.Connection) -> dict[int, int]:
    """Return the epochs in which trials were stored, by number, except those of the first.

    Raises
    ------
    ValueError
        If a row holds an impossible value.
    """
    found = checked(_rows_beside(database, "epochs", _EpochRow, range(_MOST_TRIALS)), list[_EpochRow])
    return {row["number"]: row["epoch"] for row in found}


def _rows_beside(database: sqlite3.Connection, table: str, kind: type, by_number: Sized) -> list[dict[str, Any]]:
    """Read a table with at most one row per trial, unchecked; return no rows if the store predates the table."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        return []
    names = kind.__annotations__
    found = database.execute(f"SELECT {', '.join(names)} FROM {table} LIMIT {len(by_number) + 1}")
    return [dict(zip(names, row, strict=True)) for row in found]
