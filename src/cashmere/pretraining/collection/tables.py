"""Find the tables of a collection, and choose which of their rows train and validate."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cashmere.base.arrays import AnyArray, IntArray
from cashmere.base.files import MOST_BYTES, read_file, reason
from cashmere.base.json_files import read_json
from cashmere.data.fold import Fold
from cashmere.data.frames import to_frame
from cashmere.data.reading import read_table
from cashmere.data.target import TargetCoding
from cashmere.data.task import TaskType
from cashmere.exceptions import DataError, UnknownNameError

TRAINING_SHARE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A table in a file.

    Attributes
    ----------
    name : str
        Its name in results and in the work folder.
    path : Path
        File for `cashmere.data.reading.read_table`.
    origin : str
        Tables with the same origin share raw data.
    task_type : TaskType or None
        Kind of target, where known.
    target : str
        Name of the column to predict.
    """

    name: str
    path: Path
    origin: str
    task_type: TaskType | None = None
    target: str = "target"

    def read(self) -> tuple[pd.DataFrame, AnyArray]:
        """Return features and labels.

        Raises
        ------
        DataError
            If the file cannot be read, has no such column or no other, or is not a classification.
        """
        if self.task_type is TaskType.REGRESSION:
            raise DataError(
                f"{self.path}: the manifest calls it a regression. Expected a classification, with classes in the "
                f"column {self.target!r}."
            )
        frame = read_table(self.path)
        if self.target not in frame.columns:
            columns = ", ".join(map(str, frame.columns[:10]))
            raise DataError(f"{self.path}: there is no column {self.target!r} to predict. The columns are {columns}.")
        labels = frame.pop(self.target).to_numpy()
        if frame.shape[1] == 0:
            raise DataError(
                f"{self.path}: there is no column besides the target {self.target!r}. Expected at least one feature."
            )
        coding = TargetCoding.from_target(labels, None if self.task_type is None else "classification")
        if not coding.task_type.is_classification:
            raise DataError(
                f"{self.path}: the column {self.target!r} holds numbers, as for a regression. Expected classes."
            )
        return to_frame(frame), labels

    def checksum(self) -> str:
        """Return 8 hexadecimal digits that change with the content of the file.

        Raises
        ------
        DataError
            If it cannot be read.
        """
        try:
            return f"{zlib.crc32(read_file(self.path.resolve(), limit=MOST_BYTES)):08x}"
        except OSError as error:
            raise DataError(f"{self.path}: the file cannot be read ({reason(error)}).") from error


def find_tables(folder: str | Path, *, group: str | None = None, target: str = "target") -> list[SourceFile]:
    """Return the tables of a folder.

    Parameters
    ----------
    folder : path
        With a ``manifest.json``, a list of objects with ``name``, ``file`` and optional ``task``, ``origin`` and
        ``group`` (a text or a list of texts), its tables are returned in that order; without, all files `read_table`
        can read, sorted by name. The default origin of a table is its name.
    group : str, optional
        Only the tables of this group of the manifest.
    target : str
        Name of the column to predict in every table.

    Raises
    ------
    DataError
        If the folder or the manifest cannot be used, or no table is left.
    """
    folder = Path(folder)
    manifest = folder / "manifest.json"
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder. Expected one with tables.")
    if manifest.exists():
        found = _from_manifest(manifest, group, target)
    elif group is not None:
        raise DataError(
            f"{folder}: there is no manifest.json that says which tables belong to the group {group!r}. Add one, or "
            "leave out the group."
        )
    else:
        paths = sorted(p for p in folder.iterdir() if re.search(r"\.(csv|tsv|arff)(\.gz)?$|\.(parquet|pq)$", p.name))
        names = [path.name.partition(".")[0] for path in paths]
        found = [
            SourceFile(name=n, path=p, origin=n, target=target) for n, p in zip(names, paths, strict=True)
        ]  # fmt: skip
    if not found:
        of_group = "" if group is None else f" of the group {group!r}"
        raise DataError(f"{folder}: there is no table{of_group}. Expected CSV, Parquet or ARFF files.")
    names = [table.name for table in found]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"{folder}: several tables are called {', '.join(repeated)}. Give them different names.")
    return found


def _from_manifest(path: Path, group: str | None, target: str) -> list[SourceFile]:
    found = []
    groups: set[str] = set()
    try:
        for entry in read_json(path, list[dict[str, Any]]):
            belongs = entry.get("group") or ()
            own = {belongs} if isinstance(belongs, str) else set(belongs)
            groups |= own
            if group is not None and group not in own:
                continue
            name = str(entry["name"])
            if not re.fullmatch(r"\w[\w .,+()-]*", name):
                raise ValueError(f"the name {name!r} cannot be that of a file")
            if Path(entry["file"]).is_absolute() or ".." in Path(entry["file"]).parts:
                raise ValueError(f"the file {entry['file']!r} is not in this folder")
            task = entry.get("task")
            found.append(
                SourceFile(
                    name=name,
                    path=path.parent / entry["file"],
                    origin=str(entry.get("origin") or name),
                    task_type=None if task is None else TaskType(task),
                    target=target,
                )
            )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise DataError(
            f"{path}: expected a list of objects with name and file, and if known task, origin and group ({problem})."
        ) from error
    if group is not None and group not in groups:
        raise UnknownNameError("group", group, groups)
    return found


def draw_rows(labels: AnyArray, n_rows: int, seed: int) -> IntArray:
    """Draw rows with all classes in proportion; fewer than `n_rows` only if the table has no more.

    Classes with a single row are left out when rows are drawn.

    Parameters
    ----------
    labels : (n,) array
        Classes.
    n_rows : int
        How many to draw.
    seed : int
        Seed of the draw.

    Returns
    -------
    (min(n, n_rows),) int array
        Ascending row numbers.
    """
    rows = np.arange(len(labels))
    return rows if len(rows) <= n_rows else _cut(rows, labels, n_rows, seed)[1]


def holdout(y: IntArray, seed: int) -> Fold:
    """Return 70 % of the rows, rounded down, for training and the others for validation; all classes in proportion.

    A class with a single row is used for training. With fewer validation rows than classes the split is random.

    References
    ----------
    Follows from Table 2 of Ishikawa et al. (2025): docs/papers/latent.md#split-and-number-of-trials.
    """
    return Fold(*_cut(np.arange(len(y)), y, len(y) - int(TRAINING_SHARE * len(y)), seed))


def _cut(rows: IntArray, labels: AnyArray, n_other: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return the rows without `n_other` drawn ones, and the drawn ones, both ascending."""
    from sklearn.model_selection import train_test_split

    classes, counts = np.unique(labels[rows], return_counts=True)
    is_lone = np.isin(labels[rows], classes[counts == 1])
    lone, common = rows[is_lone], rows[~is_lone]
    if min(n_other, len(common) - n_other) < max(1, int(np.sum(counts > 1))):
        mixed = np.random.default_rng(seed).permutation(rows)
        return np.sort(mixed[n_other:]), np.sort(mixed[:n_other])
    kept, other = train_test_split(common, test_size=n_other, random_state=seed, stratify=labels[common])
    return np.sort(np.concatenate([kept, lone])), np.sort(other)
