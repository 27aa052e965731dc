"""Choose an opening from what earlier runs know about the configurations that they tried."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ConfigSpace import Configuration

from cashmere.base.arrays import FloatArray
from cashmere.base.files import MOST_BYTES, read_file
from cashmere.base.versions import versions
from cashmere.data.fold import validation_rows
from cashmere.exceptions import RunDirectoryError
from cashmere.metalearning.opening import Opening, OpeningStep
from cashmere.pretraining.opening_choice import OpeningSource, choose_opening
from cashmere.run.run_directory import RunDirectory
from cashmere.space.space import ALGORITHM, Space
from cashmere.storage.store import plain_values


def opening_of_runs(folders: Iterable[str | Path], *, space: str, most_steps: int = 40) -> Opening:
    """Choose an opening from the trials of finished runs.

    It begins with the defaults and variants that the runs have tried. A configuration is known by the values that
    differ from the defaults on its table; one that a run began with in haste counts as what it is without haste, with
    the seconds that it would have taken. One that a run has not tried counts as without gain there, so runs should have
    some in common, as they have if they began in the same way.

    Parameters
    ----------
    folders : iterable of path
        Run directories that no process is using.
    space : str
        Name of the space that every run must have searched.
    most_steps : int
        Largest number of configurations after these.

    Raises
    ------
    RunDirectoryError
        If a folder is not a run directory, or its run searched another space.
    CorruptStoreError
        If a file is damaged.
    """
    numbers: dict[str, int] = {}
    begun: set[str] = set()
    sources: list[OpeningSource] = []
    tables: list[dict[str, Any]] = []
    offered: list[set[str]] = []
    for folder in map(Path, folders):
        with RunDirectory.open(folder, searches=False) as run:
            if run.space.name != space or "space" in run.settings.own_objects:
                raise RunDirectoryError(
                    folder, f"searched the space {run.space.name!r}. Expected a run on the space {space!r}."
                )
            sources.append(_source(run, numbers))
            tables.append(_description(run, sources[-1]))
            offered.append({algorithm.name for algorithm in run.space.algorithms})
            begun |= {_name(configuration, run.space) for configuration in run.space.first_configurations()}
    values = [json.loads(text) for text in numbers]
    sources = [
        replace(source, same_as={n: n for n, each in enumerate(values) if each[ALGORITHM] in names})
        for source, names in zip(sources, offered, strict=True)
    ]
    first = [number for name, number in numbers.items() if name in begun]
    chosen = choose_opening(sources, range(len(values)), first=first, most_steps=most_steps)
    return Opening(
        space=space,
        first_gain=chosen[0].gain if chosen else 1.0,
        steps=tuple(
            OpeningStep(values=values[step.candidate], gain=step.gain, seconds=step.seconds)
            for step in chosen
            if step.candidate not in first
        ),
        sources=tuple(tables),
        notes={"candidates": len(values), "versions": versions()},
    )


def _description(run: RunDirectory, source: OpeningSource) -> dict[str, Any]:
    profile = run.profile
    return {
        "name": source.name,
        "origin": source.origin,
        "task": str(profile.task_type),
        "n_rows": profile.n_rows,
        "n_columns": profile.n_columns,
        "n_classes": profile.n_classes,
    }


def _source(run: RunDirectory, numbers: dict[str, int]) -> OpeningSource:
    """Return what a run knows; new configurations get the next numbers."""
    rows = validation_rows(run.splits)
    predictions: dict[int, FloatArray] = {}
    seconds: dict[int, float] = {}
    at_usual_pace = run.at_usual_pace()
    for observation in run.store.load(run.space.configuration_space).values():
        trial = observation.trial
        if trial.fidelity < 1:
            continue  # if promoted, it was tried again
        configuration, factor = at_usual_pace.get(trial.configuration, (trial.configuration, 1.0))
        number = numbers.setdefault(_name(configuration, run.space), len(numbers))
        seconds.setdefault(number, observation.duration_seconds * factor)
        if observation.predictions is not None:
            predictions.setdefault(number, observation.predictions)
    weight = run.rows.weight
    return OpeningSource(
        name=run.folder.resolve().name,
        origin=f"run-{zlib.crc32(read_file(run.folder / 'table.npz', limit=MOST_BYTES)):08x}",
        y=run.rows.y[rows],
        metric=run.metric,
        predictions=predictions,
        seconds=seconds,
        same_as={},
        weight=None if weight is None else weight[rows],
    )


def _name(configuration: Configuration, space: Space) -> str:
    """Return the values that differ from the defaults on this table, as text."""
    values = plain_values(configuration)
    defaults = plain_values(space.completed({ALGORITHM: configuration[ALGORITHM]}))
    changed = {name: value for name, value in values.items() if name == ALGORITHM or defaults.get(name) != value}
    return json.dumps(changed, sort_keys=True)
