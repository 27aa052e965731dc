"""Files of a run directory that are written once, at the start."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

import numpy as np
from msgspec import Meta

from cashmere.base import json_files
from cashmere.base.array_files import map_archived, open_arrays, write_arrays
from cashmere.base.arrays import AnyArray, Float64, FloatArray, IntArray
from cashmere.base.files import MOST_BYTES, check_folder, failures_as, reason, writing, written_name
from cashmere.base.json_files import Count, Finite, Kind, ShortText, checked
from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.data.schema import TableSchema
from cashmere.data.target import TargetCoding
from cashmere.data.texts import PackedTexts, map_texts
from cashmere.exceptions import CorruptStoreError, RunDirectoryError
from cashmere.records.space_names import present_space_name
from cashmere.storage.epochs import epoch_of_file

RUN_VERSION = 3
RESTORE = "Restore it from a copy, or start a new run in another directory."

SUB_FOLDERS = ("predictions", "members", "logs", "prepared", "model")
"""Folders in a run directory; none may be a link."""

_FIRST_FOLDERS = {"predictions", "members", "logs"}

EXPLANATION = "explanations.json"
"""What `cashmere explain` writes into a finished run."""

FILES = {"run.json", "schema.json", "table.npz", "sample.parquet"}
"""Files beside those of epochs, see `cashmere.storage.epochs`."""

_LongText = Annotated[str, Meta(max_length=2**20)]
"""A setting, or the description of a custom object."""


class TableSize(TypedDict, total=False):
    """Size of the table: as given, and the rows to train on."""

    rows: Count
    columns: Count
    training_rows: Count


class RunDescription(TypedDict, total=False):
    """Contents of ``run.json``; a report needs few of them."""

    format: ShortText
    version: Count
    id: _LongText
    created: _LongText
    store: ShortText
    settings: dict[ShortText, Any]
    table: TableSize
    versions: dict[_LongText, _LongText]


_Settings = dict[ShortText, _LongText | Finite | int | bool | list[ShortText] | None]


class _KnownSettings(TypedDict, total=False):
    """The settings that reports read; `RunSettings.from_json` checks all."""

    metric: _LongText | None
    resampling: _LongText
    seed: Count
    target_name: _LongText | None
    own_objects: list[ShortText] | None
    metric_name: _LongText
    metric_greater_is_better: bool


class _Columns(TypedDict, total=False):
    named: bool
    decimal: ShortText
    columns: list[dict[str, Any]]


class _Target(TypedDict, total=False):
    task_type: ShortText
    classes: list[str | bool | int | float]
    dtype: ShortText
    positive: int


class SchemaDescription(TypedDict, total=False):
    """Contents of ``schema.json``; `TableSchema.from_json` and `TargetCoding.from_json` check the rest."""

    columns: _Columns
    target: _Target


def check_new(folder: Path) -> None:
    """Raise if a folder holds anything other than a new run.

    Files of a run that was killed before it wrote ``run.json`` are overwritten.

    Raises
    ------
    RunDirectoryError
        If the folder holds another run, is a file, or holds anything foreign.
    """
    if (folder / "run.json").exists():
        raise RunDirectoryError(
            folder,
            f"holds a run already. Continue it with `cashmere resume {folder}` or resume=True, or choose another "
            "directory.",
        )
    if folder.is_file():
        raise RunDirectoryError(folder, "is a file; expected a directory that is new or empty.")
    for path in (folder / "predictions", folder / "members"):
        if path.is_dir() and (foreign := sorted(p.name for p in path.iterdir() if written_name(p.name) is None)):
            raise RunDirectoryError(path, f"is not empty (it holds {foreign[0]}). Choose a new directory for the run.")
    if folder.exists() and (foreign := sorted(p.name for p in folder.iterdir() if not _left_by_kill(p.name))):
        raise RunDirectoryError(
            folder, f"is not empty (it holds {', '.join(foreign[:3])}). Choose a new directory for the run."
        )


def _left_by_kill(name: str) -> bool:
    """Return whether a run that was killed before it wrote ``run.json`` may have left a file or folder of this name."""
    return name in _FIRST_FOLDERS or _is_file(name)


def _is_file(name: str) -> bool:
    """Return whether a run has a file of this name, or writes one under this name before renaming it."""
    names = (name, written_name(name) or "")
    return any(each in FILES or epoch_of_file(each) is not None for each in names)


def remove_run(folder: Path, *, with_folder: bool) -> None:
    """Remove the files of a run with nothing worth keeping, so that the folder can be used again.

    Parameters
    ----------
    folder : Path
        The run directory, within `RunStore.closed_to_remove`.
    with_folder : bool
        Whether to remove the folder as well, with everything in it.
    """
    (folder / "run.json").unlink(missing_ok=True)  # first: without it the folder is no run
    for path in sorted(folder.iterdir(), key=_removed_late):
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder and (with_folder or path.name in SUB_FOLDERS):
            shutil.rmtree(path, ignore_errors=True)
        elif not is_folder and (with_folder or _is_file(path.name)):
            path.unlink(missing_ok=True)
    if with_folder:
        with contextlib.suppress(OSError):  # another process may have just begun a run in it
            folder.rmdir()


def _removed_late(path: Path) -> tuple[bool, int]:
    """Order locks last, that of the first epoch at the end: without them, another process may begin a run."""
    return path.name.startswith("lock"), -(epoch_of_file(path.name) or 0)


def check_sub_folders(folder: Path) -> None:
    """Raise if a sub-folder of a run directory is a link: it may lead to somebody else's files.

    Raises
    ------
    RunDirectoryError
        If one is a link; the error names it.
    """
    for name in SUB_FOLDERS:
        try:
            check_folder(folder / name)
        except FileNotFoundError:
            continue
        except OSError as error:
            text = f"cannot be used ({reason(error)}). Replace it by a folder, or start a new run in another directory."
            raise RunDirectoryError(folder / name, text) from error


def read_run_json(folder: Path) -> RunDescription:
    """Read ``run.json`` of a run directory; a space that was renamed since gets its present name.

    Raises
    ------
    RunDirectoryError
        If the directory does not exist or is not a run directory.
    CorruptStoreError
        If the file is damaged, or holds impossible values.
    """
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "does not exist"
        raise RunDirectoryError(folder, f"{problem}. Expected the directory given to `cashmere fit --out`.")
    path = folder / "run.json"
    if not path.exists() and not path.is_symlink():
        raise RunDirectoryError(
            folder,
            "holds no run.json: it is not the directory of a cashmere run, or the run was killed before it began.",
        )
    content = read_json(path, RunDescription)
    with failures_as(CorruptStoreError, path, RESTORE):
        checked(checked(content.get("settings", {}), _Settings), _KnownSettings)
    if content.get("format") != "cashmere run":
        raise RunDirectoryError(
            folder, "holds the run.json of another program. Expected the directory given to `cashmere fit --out`."
        )
    if content.get("version", 0) > RUN_VERSION:
        raise RunDirectoryError(
            folder, f"was written by a newer cashmere (version {content['version']}). Upgrade cashmere."
        )
    check_sub_folders(folder)
    settings = content.get("settings", {})
    if "space" in settings:
        settings["space"] = present_space_name(settings["space"], content.get("version", 0))
    if content.get("version", 0) < 3 and str(settings.get("metric")).strip().lower() == "f1":
        settings["metric"] = "f1_macro"  # which was the meaning of f1 until version 2
    return content


def read_schema_json(folder: Path) -> SchemaDescription:
    """Read ``schema.json`` of a run directory, whole; a damaged file raises `CorruptStoreError`.

    Keys that `SchemaDescription` does not name are kept: what reads columns and target in full may know them.
    """
    content = read_json(folder / "schema.json", dict[str, Any])
    with failures_as(CorruptStoreError, folder / "schema.json", RESTORE):
        checked(content, SchemaDescription)
    return cast(SchemaDescription, content)


def read_schema(folder: Path) -> tuple[TableSchema, TargetCoding]:
    """Return the columns and the target in ``schema.json``; a damaged file raises `CorruptStoreError`."""
    described = read_schema_json(folder)
    with failures_as(CorruptStoreError, folder / "schema.json", RESTORE):
        return TableSchema.from_json(described["columns"]), TargetCoding.from_json(described["target"])


def read_json(path: Path, kind: type[Kind]) -> Kind:
    """Read a JSON file as `kind`, see `cashmere.base.json_files.checked`; a damaged file raises `CorruptStoreError`."""
    with failures_as(CorruptStoreError, path, RESTORE):
        return json_files.read_json(path, kind)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file atomically; one too large to be read again raises `RunDirectoryError`."""
    try:
        json_files.write_json(path, content)
    except ValueError as error:
        raise RunDirectoryError(
            path, f"cannot be written: {error}. Leave out columns with very many levels."
        ) from error


_TEXT_NAME = r"text(\d{1,6})(?:\.content)?"
"""Names of the texts of a column, with an ending if they are packed, which they were not in earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows:
    """The coded training rows as kept in ``table.npz``: everything a resume needs, without pickle.

    Attributes
    ----------
    values, texts
        As in `cashmere.data.schema.CodedTable`.
    y, weight, structure, source
        As in `cashmere.data.rows.CanonicalRows`; earlier versions did not keep the source.
    """

    values: FloatArray
    texts: tuple[AnyArray | PackedTexts, ...]
    y: AnyArray
    weight: Float64 | None
    structure: RowStructure | None = None
    source: IntArray | None = None

    def save(self, path: Path) -> None:
        """Write the rows atomically."""
        texts: dict[str, AnyArray] = {}
        for i, text in enumerate(self.texts):
            packed = text if isinstance(text, PackedTexts) else PackedTexts.pack(text)
            texts |= {f"text{i}.{part}": getattr(packed, part) for part in ("content", "ends")}
        weight = {} if self.weight is None else {"weight": self.weight}
        structure = {} if self.structure is None else {self.structure.kind.value: self.structure.codes}
        if self.structure is not None and self.structure.known is not None:
            structure["known"] = self.structure.known
        if self.structure is not None and self.structure.digests is not None:
            structure["group_digests"] = self.structure.digests
        with writing(path) as file:
            source = {} if self.source is None else {"source": self.source}
            write_arrays(file, {"values": self.values, "y": self.y, **texts, **weight, **structure, **source})

    @property
    def are_compact(self) -> bool:
        """Whether values are float32, as in a large table; see `TableSchema.code`."""
        return self.values.dtype == np.float32

    def mapped_from(self, path: Path) -> TrainingRows:
        """Return the same rows with values and texts mapped from the file that they were saved in or read from."""
        with failures_as(CorruptStoreError, path, RESTORE):
            texts = tuple(map_texts(path, i) for i in range(len(self.texts)))
            return replace(self, values=map_archived(path, "values"), texts=texts)

    @classmethod
    def read(cls, path: Path, *, mapped: bool = False) -> TrainingRows:
        """Read the rows; a damaged file raises `CorruptStoreError`.

        Parameters
        ----------
        path : Path
            The file.
        mapped : bool
            Whether values and texts stay in the file, which saves time and memory where few rows are needed. Their
            checksums are then not verified.
        """
        with failures_as(CorruptStoreError, path, RESTORE), open_arrays(path, limit=MOST_BYTES) as arrays:
            numbers = sorted({int(found[1]) for name in arrays if (found := re.fullmatch(_TEXT_NAME, name))})
            rows = cls(
                values=map_archived(path, "values") if mapped else arrays["values"],
                texts=tuple(_map_texts(arrays, path, i) if mapped else _read_texts(arrays, i) for i in numbers),
                y=arrays["y"],
                weight=arrays.get("weight"),
                structure=_read_structure(arrays),
                source=_read_source(arrays),
            )
            rows._check()
            return rows

    def _check(self) -> None:
        n_rows = self.y.shape[0] if self.y.ndim == 1 else -1
        weight = np.ones(n_rows) if self.weight is None else self.weight
        codes = np.zeros(n_rows, dtype=np.int64) if self.structure is None else self.structure.codes
        if not (
            self.values.ndim == 2
            and self.values.dtype in (np.float64, np.float32)
            and self.y.dtype.kind in "if"
            and weight.dtype.kind in "if"
            and len(self.values) == n_rows > 0
            and weight.shape == (n_rows,)
            and codes.shape == (n_rows,)
            and (self.source is None or self.source.shape == (n_rows,))
            and all(len(text) == n_rows and isinstance(text[:1][0], str) for text in self.texts)
            and bool(np.isfinite(self.y).all() and np.isfinite(weight).all())
        ):
            raise ValueError("its arrays are not those of a coded table, or not of the same length")


def _read_texts(arrays: Mapping[str, AnyArray], i: int) -> AnyArray:
    if f"text{i}" in arrays:
        return arrays[f"text{i}"].astype(object)
    return PackedTexts(content=arrays[f"text{i}.content"], ends=arrays[f"text{i}.ends"])[:]


def _map_texts(arrays: Mapping[str, AnyArray], path: Path, i: int) -> AnyArray | PackedTexts:
    return map_archived(path, f"text{i}") if f"text{i}" in arrays else map_texts(path, i)


def _read_structure(arrays: Mapping[str, AnyArray]) -> RowStructure | None:
    """Return the groups of the rows or their points in time, if there are any."""
    for kind in StructureKind:
        if kind.value in arrays:
            codes = arrays[kind.value]
            if (
                codes.dtype != np.int64
                or codes.ndim != 1
                or not np.array_equal(np.unique(codes), np.arange(1 + max(codes, default=0)))
            ):
                raise ValueError(f"its {kind.value} are not numbered from 0 on")
            known = arrays.get("known") if kind is StructureKind.TIME else None
            if known is not None and (
                known.dtype != np.int64 or known.shape != codes.shape or bool(np.any((known < 0) | (known > codes)))
            ):
                raise ValueError("its known moments are not before the others")
            digests = arrays.get("group_digests") if kind is StructureKind.GROUPS else None
            if digests is not None and (digests.dtype != np.int64 or digests.shape != (1 + max(codes, default=0),)):
                raise ValueError("its digests are not one for each group")
            return RowStructure(kind=kind, codes=codes, known=known, digests=digests)
    return None


def _read_source(arrays: Mapping[str, AnyArray]) -> IntArray | None:
    source = arrays.get("source")
    if source is not None and not (source.dtype == np.int64 and source.ndim == 1 and source.min(initial=0) >= 0):
        raise ValueError("its numbers of rows are none")
    return source


def read_source(path: Path) -> IntArray | None:
    """Return the row numbers in ``table.npz`` without its other arrays; errors as for `TrainingRows`."""
    with failures_as(CorruptStoreError, path, RESTORE), open_arrays(path, limit=MOST_BYTES) as arrays:
        return _read_source(arrays)


def read_structure(path: Path) -> RowStructure | None:
    """Return the structure of the rows in ``table.npz`` without its other arrays; errors as for `TrainingRows`."""
    with failures_as(CorruptStoreError, path, RESTORE), open_arrays(path, limit=MOST_BYTES) as arrays:
        return _read_structure(arrays)


def read_targets(path: Path) -> tuple[AnyArray, AnyArray | None]:
    """Return the targets and the weights in ``table.npz`` without its other arrays; errors as for `TrainingRows`."""
    with failures_as(CorruptStoreError, path, RESTORE), open_arrays(path, limit=MOST_BYTES) as arrays:
        return arrays["y"], arrays.get("weight")
