"""Recorded histories: many configurations of a space evaluated once on a table, in one compressed file.

The file is a zip of ``.npy`` arrays and JSON (`numpy.load` opens the arrays, any zip tool the rest). It holds the
search space itself, so that a later change of a named space does not make it unreadable, and predictions instead of
losses, so that every metric can be replayed.

Predictions for validation and test rows stand in one array, as steps (`benchmarks.recordings.quantised_predictions`):
the second class of two, all classes of more, standardised values for regression. Each configuration is stored as its
differences from a similar one, its parent. Files up to version 2 hold float16: of two classes the smaller probability,
whose sign bit says which it is.
"""

from __future__ import annotations

import functools
import io
import json
import lzma
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace

from benchmarks.recordings.quantised_predictions import (
    Codes,
    add_up,
    differences,
    most_similar,
    to_codes,
    to_predictions,
    value_step,
)
from cashmere.base.arrays import IntArray
from cashmere.base.files import write_atomically
from cashmere.data.task import TaskType
from cashmere.exceptions import CorruptStoreError
from cashmere.records.path import FollowedPath
from cashmere.records.space_names import present_space_name
from cashmere.records.trial import TrialStatus
from cashmere.space.encoding import CatalogueEncoder
from cashmere.storage.store import plain_values

RECORDED = Path(__file__).parents[1] / "recorded"
"""Folder of the recordings that come with the repository and that its figures are from."""

RECORDED_LARGE = RECORDED.with_name("recorded_large")
"""Folder of recordings with more tables, rows and configurations."""

FORMAT = "cashmere recorded history"
VERSION = 3
"""Version 2 has float16 predictions; so has version 1, which calls the space ``classic`` default."""


def _no_rows() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordedHistory:
    """What N configurations predicted for the validation and the test rows of one table.

    Attributes
    ----------
    dataset, space_name : str
        Name of the table and of the search space.
    task_type : TaskType
        Kind of target.
    space : ConfigurationSpace
        The space the configurations belong to.
    configurations : tuple of Configuration
        All N, in the order of recording.
    statuses : tuple of TrialStatus
        How each evaluation ended.
    seconds : (N,) float64 array
        CPU seconds of fitting and predicting; of timeouts the limit.
    validation, test : (N, n_rows, n_classes) or (N, n_rows) float32 array
        Predictions; NaN for failures.
    y_validation, y_test : (n_rows,) array
        Class codes, or values standardised by mean and standard deviation of the training rows.
    facts : dict
        The rest: rows, limit, seed, versions, command.
    searches : tuple of str
        Search that found each configuration; empty in earlier files.
    paths : tuple of FollowedPath or None
        What each trial saw along its path, by the loss on rows that are not recorded; empty in earlier files.
    causes : tuple of str
        Why each evaluation failed, in one line; empty for successes, and in earlier files.
    training_rows, unseen_rows : int arrays
        Numbers of the rows that learners were fitted on, and of the validation rows, then the test rows, of the table
        in canonical order; empty in earlier files.
    folder : str
        What `folder_of` returns for the file.
    """

    dataset: str
    space_name: str
    task_type: TaskType
    space: ConfigurationSpace
    configurations: tuple[Configuration, ...]
    statuses: tuple[TrialStatus, ...]
    seconds: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    y_validation: np.ndarray
    y_test: np.ndarray
    facts: dict[str, Any]
    searches: tuple[str, ...] = ()
    paths: tuple[FollowedPath | None, ...] = ()
    causes: tuple[str, ...] = ()
    training_rows: IntArray = field(default_factory=_no_rows)
    unseen_rows: IntArray = field(default_factory=_no_rows)
    folder: str = ""

    @property
    def name(self) -> str:
        """Name in results: that of the file without its ending, behind its folder if there is one to tell."""
        return f"{self.folder}{self.dataset}-{self.space_name}"

    def __len__(self) -> int:
        return len(self.configurations)

    @functools.cached_property
    def encoder(self) -> CatalogueEncoder:
        """The space of a replay: the recorded configurations and no others."""
        return CatalogueEncoder(self.space, self.configurations)

    @functools.cached_property
    def succeeded(self) -> np.ndarray:
        """Positions of the configurations that have predictions."""
        return np.flatnonzero([status is TrialStatus.SUCCESS for status in self.statuses])


def save_recorded(history: RecordedHistory, folder: Path) -> Path:
    """Write a recorded history to ``folder/<dataset>-<space>.zip`` and return the path."""
    # Failures take no room.
    kept = np.concatenate([history.validation, history.test], axis=1)[history.succeeded]
    y = np.concatenate([history.y_validation, history.y_test])
    step = 0.0 if history.task_type.is_classification else value_step(kept, y)
    codes = to_codes(kept, history.task_type, step)
    parents = most_similar(codes)
    description = {
        "format": FORMAT,
        "version": VERSION,
        "dataset": history.dataset,
        "space": history.space_name,
        "task_type": history.task_type.value,
        "statuses": [status.value for status in history.statuses],
        "causes": history.causes,
        "searches": history.searches,
        "step": step,
        "facts": history.facts,
    }
    arrays = {
        "seconds": np.round(history.seconds, 3).astype(np.float32),
        "y_validation": history.y_validation,
        "y_test": history.y_test,
        "training_rows": history.training_rows.astype(np.int32),
        "unseen_rows": history.unseen_rows.astype(np.int32),
        "parents": parents.astype(np.int16),
        "predictions": _to_bytes(differences(codes, parents)),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        _write(archive, "description.json", json.dumps(description, indent=1))
        _write(archive, "space.json", json.dumps(history.space.to_serialized_dict()))
        _write(archive, "configurations.json", json.dumps([plain_values(c) for c in history.configurations]))
        _write(archive, "paths.json", json.dumps([None if path is None else asdict(path) for path in history.paths]))
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, np.ascontiguousarray(array), allow_pickle=False)
            _write(archive, f"{name}.npy", content.getvalue())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{history.dataset}-{history.space_name}.zip"
    write_atomically(path, buffer.getvalue())
    return path


def folder_of(path: Path, table: str, space: str) -> str:
    """Return the folder of a file, ``recorded_large/``, if `RECORDED` has another one of its table; else nothing.

    So results tell two recordings of a table apart, and those of `RECORDED` are called as they always were.
    """
    namesake = RECORDED / f"{table}-{space}.zip"
    return f"{path.absolute().parent.name}/" if namesake.exists() and not namesake.samefile(path) else ""


def load_recorded(path: Path) -> RecordedHistory:
    """Read a recorded history.

    Raises
    ------
    CorruptStoreError
        If the file is not a recorded history, or of a newer version.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            description = json.loads(archive.read("description.json"))
            version = description.get("version", 0)
            if description.get("format") != FORMAT or version > VERSION:
                raise CorruptStoreError(
                    path, f"holds {description.get('format')!r}; expected {FORMAT!r} up to version {VERSION}."
                )
            space = ConfigurationSpace.from_serialized_dict(json.loads(archive.read("space.json")))
            if space.name is not None:
                space.name = present_space_name(space.name, version)
            values = json.loads(archive.read("configurations.json"))
            task_type = TaskType(description["task_type"])
            arrays = {name: _array(archive, name) for name in ("seconds", "y_validation", "y_test")}
            if version < 3:
                predictions = [_unpack(_array(archive, part), task_type) for part in ("validation", "test")]
                paths: tuple[FollowedPath | None, ...] = ()
            else:
                arrays |= {name: _array(archive, name) for name in ("training_rows", "unseen_rows")}
                codes = add_up(_from_bytes(_array(archive, "predictions")), _array(archive, "parents"))
                both = to_predictions(codes, task_type, description["step"])
                predictions = np.split(both, [len(arrays["y_validation"])], axis=1)
                paths = tuple(map(_path, json.loads(archive.read("paths.json"))))
    except (OSError, EOFError, KeyError, ValueError, IndexError, zipfile.BadZipFile, lzma.LZMAError) as error:
        raise CorruptStoreError(path, f"is not a recorded history ({error}). Record it again.") from error
    table, space_name = description["dataset"], present_space_name(description["space"], version)
    statuses = tuple(TrialStatus(status) for status in description["statuses"])
    succeeded = np.array([status is TrialStatus.SUCCESS for status in statuses])
    for part, unpacked in zip(("validation", "test"), predictions, strict=True):
        arrays[part] = np.full((len(statuses), *unpacked.shape[1:]), np.nan, dtype=np.float32)
        arrays[part][succeeded] = unpacked
        arrays[part].flags.writeable = False
    return RecordedHistory(
        dataset=table,
        space_name=space_name,
        task_type=task_type,
        space=space,
        configurations=tuple(Configuration(space, values=v) for v in values),
        statuses=statuses,
        causes=tuple(description.get("causes", ())),
        searches=tuple(description.get("searches", ())),
        paths=paths,
        facts=description["facts"],
        folder=folder_of(path, table, space_name),
        **arrays,
    )


def _array(archive: zipfile.ZipFile, name: str) -> Any:
    return np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)


def _path(values: dict[str, Any] | None) -> FollowedPath | None:
    if values is None:
        return None
    return FollowedPath(**values | {name: tuple(values[name]) for name in ("positions", "losses")})


def _write(archive: zipfile.ZipFile, name: str, content: str | bytes) -> None:
    # A fixed date: recording the same again gives the same bytes.
    information = zipfile.ZipInfo(name, date_time=(2026, 1, 1, 0, 0, 0))
    information.compress_type = zipfile.ZIP_LZMA
    archive.writestr(information, content)


def _to_bytes(differences: Codes) -> np.ndarray:
    """Return differences with their signs last and bytes of equal weight together: that compresses best."""
    folded = (np.abs(differences.astype(np.int32)) * 2 - (differences < 0)).astype(np.uint16)
    planes = [folded & 255, folded >> 8] if folded.max(initial=0) > 255 else [folded]
    return np.stack(planes).astype(np.uint8)


def _from_bytes(planes: np.ndarray) -> Codes:
    folded = sum(plane.astype(np.int32) << (8 * k) for k, plane in enumerate(planes))
    return np.asarray(np.where(folded % 2, -(folded + 1) // 2, folded // 2), dtype=np.int16)


def _unpack(halves: np.ndarray, task_type: TaskType) -> np.ndarray:
    """Return float32 predictions of a file of version 2: float16, the bytes of equal weight together."""
    packed = np.ascontiguousarray(np.moveaxis(halves, 0, -1)).view(np.float16)[..., 0]
    if task_type is TaskType.BINARY:
        small = np.abs(packed.astype(np.float32))
        second = np.where(np.signbit(packed), 1 - small, small)
        return np.stack([np.where(np.signbit(packed), small, 1 - small), second], axis=-1)
    if task_type is TaskType.MULTICLASS:
        values = packed.astype(np.float32)
        return np.asarray(values / values.sum(axis=-1, keepdims=True))
    bound = np.finfo(np.float16).max  # files written before values were bounded hold infinity
    return np.clip(packed.astype(np.float32), -bound, bound)
