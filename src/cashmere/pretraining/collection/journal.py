"""The work folder of a collection: ``configurations.json``, and ``<name>.jsonl`` for each table.

The first line of a table's file holds the settings, every other line one evaluation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from cashmere.base.arrays import AnyArray
from cashmere.base.files import failures_as, read_file, write_atomically
from cashmere.base.json_files import Count, Finite, Positive, ShortText, checked, parse_json, read_json
from cashmere.exceptions import CorruptStoreError, InconsistentResumeError
from cashmere.metalearning.observations import SourceObservations, SourceTable
from cashmere.pretraining.collection.batches import OTHER_METRIC
from cashmere.pretraining.collection.configurations import REFERENCE, draw_configurations
from cashmere.records.space_names import present_space_name
from cashmere.space.named.registry import SpaceFactory, make_space

METRIC = "accuracy"

FORMAT = "cashmere source evaluations"
VERSION = 2


_MOST_BYTES = 2**30
"""Largest file of a table; an evaluation takes a hundred bytes."""


class _Header(TypedDict):
    format: ShortText
    version: Count
    settings: dict[str, Any]
    origin: ShortText


class _Record(TypedDict):
    number: Count
    status: ShortText
    seconds: Positive
    loss: NotRequired[Finite | None]
    log_loss: NotRequired[float | None]
    error: NotRequired[str]


class _Settings(TypedDict):
    space: ShortText
    per_algorithm: Count
    seed: Count


class _Configurations(TypedDict):
    format: ShortText
    version: Count
    settings: _Settings
    configurations: list[dict[ShortText, ShortText | bool | int | float]]


class Journal:
    """The file of one table, open for more evaluations.

    Parameters
    ----------
    path : Path
        The file; created if missing. A line cut short by a kill is removed.
    header : mapping
        The first line; its ``settings`` must be those of an existing file.

    Attributes
    ----------
    records : dict of int to dict
        Evaluations by number of the configuration.

    Raises
    ------
    InconsistentResumeError
        If the settings differ.
    CorruptStoreError
        If the file is foreign, of a newer version, or damaged before its last line.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self.records: dict[int, dict[str, Any]] = {}
        found = _read_journal(path)
        if found is None:
            write_atomically(path, json.dumps({"format": FORMAT, "version": VERSION, **header}).encode() + b"\n")
            return
        begun, self.records, length = found
        check_same(path, begun["settings"], header["settings"])
        with path.open("r+b") as file:
            file.truncate(length)  # a line cut short by a kill

    def add(self, records: Iterable[dict[str, Any]]) -> None:
        """Write records and remember them."""
        records = list(records)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        self.records |= {record["number"]: record for record in records}


def _read_journal(path: Path) -> tuple[dict[str, Any], dict[int, dict[str, Any]], int] | None:
    """Return header, records and the length of the complete lines; None if there is not even a header.

    Raises
    ------
    CorruptStoreError
        If the file is foreign, of a newer version, or damaged before its last line.
    """
    if not path.exists() and not path.is_symlink():
        return None
    with failures_as(CorruptStoreError, path, "Delete it to evaluate this table again."):
        content = read_file(path, limit=_MOST_BYTES)
        content = content[: content.rfind(b"\n") + 1]
        if not content:
            return None
        first, *lines = content.splitlines()
        header = checked(parse_json(first), dict[str, Any])
        described = checked(header, _Header)
        _check_kind(described["format"], described["version"])
        begun = header["settings"]
        begun["space"] = present_space_name(begun.get("space"), described["version"])
        records = checked([parse_json(line) for line in lines], list[_Record])
        return header, {record["number"]: {**record} for record in records}, len(content)


def _check_kind(kind: str, version: int) -> None:
    if kind != FORMAT or version > VERSION:
        raise ValueError(f"expected {FORMAT!r}, version {VERSION} at most")


def check_same(path: Path, begun: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Check that a file is continued with the settings it was begun with.

    Raises
    ------
    InconsistentResumeError
        If settings differ; the message names them, before and now.
    """
    differing = [name for name in asked if begun.get(name) != asked[name]]
    if differing:
        before = ", ".join(f"{name}={begun.get(name)!r}" for name in differing)
        now = ", ".join(f"{name}={asked[name]!r}" for name in differing)
        text = (
            f"was begun with {before} and cannot continue with {now}. Use the settings from before, or another folder."
        )
        raise InconsistentResumeError(path, text)


def settle_configurations(
    work: Path, space: str | SpaceFactory, n_configurations: int, seed: int
) -> tuple[str, list[dict[str, Any]]]:
    """Return the name of the space and the configurations the folder was begun with, or draw them."""
    path = work / "configurations.json"
    reference = make_space(space, REFERENCE)
    settings = {"space": reference.name, "per_algorithm": n_configurations, "seed": seed}
    if path.exists():
        stored = _read_configurations(path)
        check_same(path, stored["settings"], settings)
        return reference.name, stored["configurations"]
    configurations = draw_configurations(reference, n_configurations, seed)
    content = {"format": FORMAT, "version": VERSION, "settings": settings, "configurations": configurations}
    write_atomically(path, json.dumps(content, indent=1).encode())
    return reference.name, configurations


def _read_configurations(path: Path) -> _Configurations:
    with failures_as(CorruptStoreError, path, "Restore it, or take another folder."):
        content = read_json(path, _Configurations)
        _check_kind(content["format"], content["version"])
        content["settings"]["space"] = present_space_name(content["settings"]["space"], content["version"])
        return content


def read_work(work: str | Path, names: Sequence[str] | None = None) -> SourceObservations:
    """Return the observations of all complete tables of a work folder, even while a collection is running there.

    Parameters
    ----------
    work : path
        See `collect`.
    names : sequence of str, optional
        Tables to return, in this order; by default all, sorted by name.

    Raises
    ------
    CorruptStoreError
        If it is not a work folder, or a file is damaged.
    """
    work = Path(work)
    content = _read_configurations(work / "configurations.json")
    configurations = content["configurations"]
    tables = []
    for name in sorted(path.stem for path in work.glob("*.jsonl")) if names is None else names:
        found = _read_journal(work / f"{name}.jsonl")
        if found is not None and len(found[1]) == len(configurations):
            header, records, _ = found
            ordered = [records[number] for number in range(len(configurations))]

            def column(key: str, ordered: Sequence[Mapping[str, Any]] = ordered) -> AnyArray:
                return np.array([record.get(key, np.nan) for record in ordered], dtype=np.float64)

            tables.append(
                SourceTable(
                    name=name,
                    origin=header["origin"],
                    configurations=np.arange(len(configurations)),
                    losses=column("loss"),
                    seconds=column("seconds"),
                    metric=METRIC,
                    other_losses={OTHER_METRIC: column(OTHER_METRIC)},
                )
            )
    return SourceObservations(
        space=content["settings"]["space"], metric=METRIC, configurations=tuple(configurations), tables=tuple(tables)
    )
