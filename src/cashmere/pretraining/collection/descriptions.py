"""Meta-features of the tables of a collection, and of the tables of runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

from cashmere.base.files import failures_as, write_atomically
from cashmere.base.json_files import read_json
from cashmere.data.schema import CodedTable, TableSchema
from cashmere.data.task import TaskType
from cashmere.exceptions import CorruptStoreError
from cashmere.metalearning.meta_features import describe_frame, features_from_json, features_to_json, meta_features
from cashmere.metalearning.observations import SourceObservations
from cashmere.pretraining.collection.tables import SourceFile
from cashmere.storage.directory import RESTORE, TrainingRows

_FILE = "meta_features.json"


class _Description(TypedDict):
    """The meta-features of a table, and the checksum of its file."""

    content: str
    features: dict[str, float | None]


def describe_tables(
    observations: SourceObservations,
    files: Sequence[SourceFile],
    *,
    work: Path,
    progress: Callable[[str], None] = lambda text: None,
) -> SourceObservations:
    """Add the meta-features of the tables to observations, computed from all rows.

    Parameters
    ----------
    observations : SourceObservations
        From `collect`.
    files : sequence of SourceFile
        Where the tables are; tables not among them are left unchanged.
    work : Path
        Folder of work in progress; meta-features found there are not computed again.
    progress : callable, optional
        Called with a line of text if there is something to compute.

    Raises
    ------
    DataError
        If a table cannot be read.
    CorruptStoreError
        If the file of an earlier call is damaged.
    """
    path = work / _FILE
    known = {}
    if path.exists():
        with failures_as(CorruptStoreError, path, "Delete it, and it will be made again."):
            known = read_json(path, dict[str, _Description])
    by_name = {file.name: file for file in files}
    stamps = {table.name: by_name[table.name].checksum() for table in observations.tables if table.name in by_name}
    missing = [name for name, stamp in stamps.items() if name not in known or known[name]["content"] != stamp]
    if missing:
        progress(f"Describing {len(missing)} tables")
    for name in missing:
        features = describe_frame(*by_name[name].read(), "classification")
        known[name] = {"content": stamps[name], "features": features_to_json(features)}
        write_atomically(path, json.dumps(known).encode())
    tables = tuple(
        replace(table, meta_features=features_from_json(known[table.name]["features"]))
        if table.name in stamps
        else table
        for table in observations.tables
    )
    return replace(observations, tables=tables)


def describe_run(folder: Path, schema: Mapping[str, Any]) -> dict[str, float]:
    """Return the meta-features of the training rows of a run.

    Parameters
    ----------
    folder : Path
        The run directory.
    schema : mapping
        Contents of its ``schema.json``.

    Raises
    ------
    CorruptStoreError
        If ``table.npz`` is damaged.
    """
    rows = TrainingRows.read(folder / "table.npz")
    with failures_as(CorruptStoreError, folder / "schema.json", RESTORE):
        columns, task_type = TableSchema.from_json(schema["columns"]), TaskType(schema["target"]["task_type"])
    coded = CodedTable(values=rows.values, texts=rows.texts, schema=columns)
    return meta_features(coded.values, rows.y, categorical=coded.categorical, task_type=task_type)
