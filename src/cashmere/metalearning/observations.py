"""Losses of many configurations on many tables, in one compact file.

The file is a zip of ``.npy`` arrays and ``description.json`` (`numpy.load` opens the arrays, any zip tool the rest).
The arrays of all tables are concatenated; losses and seconds are float32.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from cashmere.base.array_files import check_archive, open_arrays
from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.base.files import failures_as, read_file, remove_leftovers, write_atomically
from cashmere.base.json_files import Count, ShortText, checked, parse_json
from cashmere.exceptions import CashmereError, CorruptStoreError, ObservationsError, ShapeError
from cashmere.metalearning.meta_features import features_from_json, features_to_json
from cashmere.records.space_names import present_space_name

FORMAT = "cashmere source observations"
VERSION = 2

_DATE = (2026, 1, 1, 0, 0, 0)
"""Date of every part of the file, so that saving the same again gives the same bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceTable:
    """The losses of configurations on one table, and its meta-features.

    Attributes
    ----------
    name : str
        Name of the table, or of the run on it; unique among the tables.
    origin : str
        Tables with the same origin share raw data, so one must not be judged by what was learned on another.
    meta_features : mapping of str to float
        Numbers that describe the table; empty until they are computed.
    configurations : (n,) int array
        Positions in `SourceObservations.configurations`, each at most once.
    losses : (n,) array
        Smaller is better; NaN where the evaluation failed.
    seconds : (n,) array
        Durations of the evaluations.
    metric : str
        Name of the metric of `losses`.
    other_losses : mapping of str to (n,) arrays
        Losses of the same predictions under other metrics.
    """

    name: str
    origin: str
    meta_features: Mapping[str, float] = field(default_factory=dict)
    configurations: IntArray
    losses: FloatArray
    seconds: FloatArray
    metric: str = "accuracy"
    other_losses: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.configurations)
        parts = {"losses": self.losses, "seconds": self.seconds, **self.other_losses}
        for name, values in parts.items():
            if np.shape(values) != (n,):
                raise ShapeError(f"{name} of table {self.name!r}", np.shape(values), (n,))
        if len(np.unique(self.configurations)) != n:
            raise ObservationsError(
                f"configurations of table {self.name!r} must be distinct, but some positions are repeated. Keep one "
                "observation of each configuration.",
                table=self.name,
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceObservations:
    """Losses of configurations of one space on many tables.

    Attributes
    ----------
    space : str
        Name of the space.
    metric : str
        Metric of the collection; that of a single table may differ (`SourceTable.metric`).
    configurations : tuple of mappings
        Active values of each configuration, by name of the hyper-parameter.
    tables : tuple of SourceTable
        In the order of collection.

    Raises
    ------
    ObservationsError
        If tables share a name, or one refers to a missing configuration.

    Examples
    --------
    >>> table = SourceTable(
    ...     name="iris",
    ...     origin="iris",
    ...     configurations=np.array([1]),
    ...     losses=np.array([0.04]),
    ...     seconds=np.array([0.1]),
    ... )
    >>> knn = ({"algorithm": "knn", "knn:n_neighbors": k} for k in (1, 5))
    >>> SourceObservations(space="new", metric="accuracy", configurations=tuple(knn), tables=(table,)).loss_matrix()
    array([[ nan, 0.04]])
    """

    space: str
    metric: str
    configurations: tuple[Mapping[str, Any], ...]
    tables: tuple[SourceTable, ...]

    def __post_init__(self) -> None:
        names = [table.name for table in self.tables]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ObservationsError(
                f"Tables must have different names, but several are called {', '.join(repeated)}. Rename them.",
                table=repeated[0],
            )
        for table in self.tables:
            p = table.configurations
            if len(p) and not 0 <= p.min() <= p.max() < len(self.configurations):
                raise ObservationsError(
                    f"configurations of table {table.name!r} must lie within the {len(self.configurations)} that are "
                    f"listed; got positions from {p.min()} to {p.max()}.",
                    table=table.name,
                )

    def loss_matrix(self) -> Float64:
        """Return the losses of all tables and configurations.

        Returns
        -------
        (n_tables, n_configurations) array
            NaN where the evaluation failed or was never made.
        """
        matrix = np.full((len(self.tables), len(self.configurations)), np.nan)
        for row, table in zip(matrix, self.tables, strict=True):
            row[table.configurations] = table.losses
        return matrix

    def merged(self, other: SourceObservations) -> SourceObservations:
        """Return the tables of both, with each configuration listed once.

        Parameters
        ----------
        other : SourceObservations
            Observations of the same space; their tables come last.

        Raises
        ------
        ObservationsError
            If the spaces differ, or both have a table of the same name.
        """
        if other.space != self.space:
            raise ObservationsError(
                f"Observations of the space {other.space!r} cannot be added to those of {self.space!r}. Merge "
                "observations of one space only."
            )
        position = {_key(values): i for i, values in enumerate(self.configurations)}
        configurations = list(self.configurations)
        moved = np.empty(len(other.configurations), dtype=np.int64)
        for i, values in enumerate(other.configurations):
            moved[i] = position.setdefault(_key(values), len(configurations))
            if moved[i] == len(configurations):
                configurations.append(values)
        added = (_with_positions(table, moved[table.configurations]) for table in other.tables)
        return SourceObservations(
            space=self.space,
            metric=self.metric,
            configurations=tuple(configurations),
            tables=(*self.tables, *added),
        )

    def save(self, path: str | Path) -> None:
        """Write the file atomically; the same observations give the same bytes."""
        tables = self.tables
        others = sorted({name for table in tables for name in table.other_losses})
        description = {
            "format": FORMAT,
            "version": VERSION,
            "space": self.space,
            "metric": self.metric,
            "configurations": [dict(values) for values in self.configurations],
            "other_losses": others,
            "tables": [
                {
                    "name": table.name,
                    "origin": table.origin,
                    "metric": table.metric,
                    "n": len(table.configurations),
                    "meta_features": features_to_json(table.meta_features),
                }
                for table in tables
            ],
        }
        arrays = {
            "configurations": _joined([t.configurations for t in tables], np.uint32),
            "losses": _joined([t.losses for t in tables], np.float32),
            "seconds": _joined([t.seconds for t in tables], np.float32),
        }
        for name in others:
            missing = [np.full(len(t.configurations), np.nan) for t in tables]
            found = [t.other_losses.get(name, gap) for t, gap in zip(tables, missing, strict=True)]
            arrays[f"losses-{name}"] = _joined(found, np.float32)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            _add(archive, "description.json", json.dumps(description).encode())
            for name, array in arrays.items():
                content = io.BytesIO()
                np.save(content, array, allow_pickle=False)
                _add(archive, f"{name}.npy", content.getvalue())
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent, of=[path.name], older_than=_LEFTOVER_SECONDS)
        write_atomically(path, buffer.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> SourceObservations:
        """Read observations written by `save`; losses are returned as float64.

        Raises
        ------
        CorruptStoreError
            If the file is missing, damaged, of another kind or of a newer version.
        """
        path = Path(path)
        with failures_as(CorruptStoreError, path, "Restore it from a copy, or collect them again."):
            data = read_file(path, limit=_MOST_BYTES)
            if not zipfile.is_zipfile(io.BytesIO(data)):
                text = "holds no source observations. Expected the observations.npz that `cashmere pretrain` writes."
                raise CorruptStoreError(path, text)
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                check_archive(archive, limit=_MOST_BYTES, compressed=True)
                found = parse_json(archive.read("description.json"))
            head = checked(found, _Head)
            if head["format"] != FORMAT or head["version"] > VERSION:
                kind = f"{head['format']!r} of version {head['version']}"
                raise CorruptStoreError(
                    path, f"holds {kind}; this version reads {FORMAT!r} up to version {VERSION}. Upgrade cashmere."
                )
            content = checked(found, _Description)
            with open_arrays(data, limit=_MOST_BYTES, compressed=True) as opened:
                arrays = dict(opened)
            ends = np.cumsum([entry["n"] for entry in content["tables"]])
            if any(array.shape != (ends[-1] if len(ends) else 0,) for array in arrays.values()):
                raise ValueError("the arrays are not as long as the tables")
            if any(array.dtype.kind not in "uif" for array in arrays.values()):
                raise ValueError("the arrays do not hold numbers")
            tables = tuple(
                _table(entry, {name: array[end - entry["n"] : end] for name, array in arrays.items()})
                for entry, end in zip(content["tables"], ends.tolist(), strict=True)
            )
            try:
                return cls(
                    space=present_space_name(content["space"], head["version"]),
                    metric=content["metric"],
                    configurations=tuple(content["configurations"]),
                    tables=tables,
                )
            except CashmereError as error:
                raise ValueError(str(error)) from error


_MOST_BYTES = 2**30
"""Largest size of the file, and of its unpacked parts together; 45 tables and 1200 configurations take 1 MB."""

_LEFTOVER_SECONDS = 3600.0
"""Age from which no process is writing a temporary file any more."""


class _Head(TypedDict):
    format: ShortText
    version: Count


class _Entry(TypedDict):
    name: ShortText
    origin: ShortText
    metric: ShortText
    n: Count
    meta_features: dict[ShortText, float | None]


class _Description(TypedDict):
    space: ShortText
    metric: ShortText
    configurations: list[dict[ShortText, ShortText | bool | int | float]]
    tables: list[_Entry]


def _table(entry: _Entry, arrays: Mapping[str, NDArray[Any]]) -> SourceTable:
    prefix = "losses-"
    others = {
        name.removeprefix(prefix): values.astype(np.float64)
        for name, values in arrays.items()
        if name.startswith(prefix) and not np.isnan(values).all()
    }
    return SourceTable(
        name=entry["name"],
        origin=entry["origin"],
        metric=entry["metric"],
        meta_features=features_from_json(entry["meta_features"]),
        configurations=arrays["configurations"].astype(np.int64),
        losses=arrays["losses"].astype(np.float64),
        seconds=arrays["seconds"].astype(np.float64),
        other_losses=others,
    )


def _with_positions(table: SourceTable, positions: IntArray) -> SourceTable:
    return replace(table, configurations=positions)


def _key(values: Mapping[str, Any]) -> str:
    return json.dumps(dict(values), sort_keys=True)


def _joined(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.empty(0), *parts]).astype(dtype)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    information = zipfile.ZipInfo(name, date_time=_DATE)
    information.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(information, content, compresslevel=9)
