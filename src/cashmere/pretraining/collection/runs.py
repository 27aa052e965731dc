"""Use earlier runs as observations."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cashmere.base.files import MOST_BYTES, failures_as, read_file
from cashmere.data.task import TaskType
from cashmere.exceptions import CorruptStoreError, RunDirectoryError
from cashmere.metalearning.observations import SourceObservations, SourceTable
from cashmere.pretraining.collection.configurations import configuration_text
from cashmere.pretraining.collection.descriptions import describe_run
from cashmere.pretraining.collection.journal import METRIC
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import read_description, stored_metric


def read_runs(folders: Iterable[str | Path], *, space: str) -> SourceObservations:
    """Return the trials of classification runs as observations, one table per run.

    Runs on the same training rows get the same origin. Trials that were stopped early or used a share of the rows are
    left out, because their losses are not comparable; a configuration tried twice counts with its first trial.

    Parameters
    ----------
    folders : iterable of path
        Run directories; they are only read, and a run may still be active.
    space : str
        Name of the space that every run must have searched.

    Raises
    ------
    RunDirectoryError
        If a folder is not a run directory, or its space or task differs.
    CorruptStoreError
        If a file is damaged.
    """
    configurations: dict[str, Mapping[str, Any]] = {}
    positions: dict[str, int] = {}
    tables = []
    for folder in map(Path, folders):
        run, schema = read_description(folder)
        settings, task = run.get("settings") or {}, (schema.get("target") or {}).get("task_type")
        searched = "a custom one" if "space" in settings.get("own_objects", ()) else repr(settings.get("space"))
        if searched != repr(space):
            raise RunDirectoryError(
                folder, f"searched another space ({searched}). Expected a run on the space {space!r}."
            )
        if task not in (TaskType.BINARY, TaskType.MULTICLASS):
            raise RunDirectoryError(
                folder, f"is a run of the task {task!r}. Observations are taken from classification runs only."
            )
        rows = folder / "table.npz"
        if not rows.exists():
            raise RunDirectoryError(
                folder, "holds no table.npz with the training rows. Expected a complete run directory."
            )
        metric = stored_metric(settings, task)
        with RunStore(folder, read_only=True) as store:
            trials = {
                configuration_text(row["configuration"]): row
                for row in reversed(store.rows())
                if row["status"] != "stopped" and row["fidelity"] == 1
            }
        ordered = sorted(trials.values(), key=lambda row: row["number"])
        for row in ordered:
            key = configuration_text(row["configuration"])
            positions.setdefault(key, len(configurations))
            configurations.setdefault(key, row["configuration"])
        tables.append(
            SourceTable(
                name=f"{folder.resolve().name}-{run.get('id', '')}",
                origin=f"run-{_checksum(rows):08x}",
                configurations=np.array(
                    [positions[configuration_text(row["configuration"])] for row in ordered], dtype=np.int64
                ),
                losses=np.array([np.nan if row["loss"] is None else row["loss"] for row in ordered], dtype=np.float64),
                seconds=np.array([row["duration_seconds"] for row in ordered], dtype=np.float64),
                metric="own" if metric is None else metric.name,
                meta_features=describe_run(folder, schema),
            )
        )
    return SourceObservations(
        space=space, metric=METRIC, configurations=tuple(configurations.values()), tables=tuple(tables)
    )


def _checksum(path: Path) -> int:
    with failures_as(CorruptStoreError, path, "Restore it from a copy."):
        return zlib.crc32(read_file(path, limit=MOST_BYTES))
