"""Recorded histories: many configurations of a space evaluated once on a table, in one compressed file.

The file is a zip of ``.npy`` arrays and JSON (`numpy.load` opens the arrays, any zip tool the rest). It holds the
search space itself, so that a later change of a named space does not make it unreadable, and predictions instead of
losses, so that every metric can be replayed. Predictions are float16: one column for two classes (the probability of
the less likely class, its sign bit says which), all columns for more, standardised values for regression.
"""

from __future__ import annotations

import functools
import io
import json
import lzma
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace

from cashmere.base.files import write_atomically
from cashmere.data.task import TaskType
from cashmere.exceptions import CorruptStoreError
from cashmere.records.space_names import present_space_name
from cashmere.records.trial import TrialStatus
from cashmere.space.encoding import CatalogueEncoder
from cashmere.storage.store import plain_values

RECORDED = Path(__file__).parents[1] / "recorded"
"""Folder of the recordings that come with the repository."""

FORMAT = "cashmere recorded history"
VERSION = 2


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
    validation, test : (N, n_rows, n_classes) or (N, n_rows) float16 array
        Predictions; NaN for failures.
    y_validation, y_test : (n_rows,) array
        Class codes, or values standardised by mean and standard deviation of the training rows.
    facts : dict
        The rest: rows, limit, seed, versions, command.
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

    @property
    def name(self) -> str:
        """Name of the file, without its ending."""
        return f"{self.dataset}-{self.space_name}"

    def __len__(self) -> int:
        return len(self.configurations)

    @functools.cached_property
    def encoder(self) -> CatalogueEncoder:
        """What a replay searches: the recorded configurations and no other."""
        return CatalogueEncoder(self.space, self.configurations)

    @functools.cached_property
    def succeeded(self) -> np.ndarray:
        """Positions of the configurations that have predictions."""
        return np.flatnonzero([status is TrialStatus.SUCCESS for status in self.statuses])


def save_recorded(history: RecordedHistory, folder: Path) -> Path:
    """Write a recorded history to ``folder/<dataset>-<space>.zip`` and return the path."""
    description = {
        "format": FORMAT,
        "version": VERSION,
        "dataset": history.dataset,
        "space": history.space_name,
        "task_type": history.task_type.value,
        "statuses": [status.value for status in history.statuses],
        "facts": history.facts,
    }
    arrays = {
        "seconds": np.round(history.seconds, 3).astype(np.float32),
        "y_validation": history.y_validation,
        "y_test": history.y_test,
    }
    for part in ("validation", "test"):
        # Failures take no room. The bytes of equal weight stand together: that compresses better by a third.
        kept = _pack(getattr(history, part)[history.succeeded], history.task_type)
        arrays[part] = kept.view(np.uint8).reshape(*kept.shape, 2).transpose(-1, *range(kept.ndim))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=zipfile.ZIP_LZMA) as archive:
        _write(archive, "description.json", json.dumps(description, indent=1))
        _write(archive, "space.json", json.dumps(history.space.to_serialized_dict()))
        _write(archive, "configurations.json", json.dumps([plain_values(c) for c in history.configurations]))
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, np.ascontiguousarray(array), allow_pickle=False)
            _write(archive, f"{name}.npy", content.getvalue())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{history.name}.zip"
    write_atomically(path, buffer.getvalue())
    return path


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
            if description.get("format") != FORMAT or description.get("version", 0) > VERSION:
                raise CorruptStoreError(
                    path, f"holds {description.get('format')!r}; expected {FORMAT!r} up to version {VERSION}."
                )
            space = ConfigurationSpace.from_serialized_dict(json.loads(archive.read("space.json")))
            if space.name is not None:
                space.name = present_space_name(space.name, description.get("version", 0))
            values = json.loads(archive.read("configurations.json"))
            names = ("seconds", "y_validation", "y_test", "validation", "test")
            arrays = {name: np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False) for name in names}
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, lzma.LZMAError) as error:
        raise CorruptStoreError(path, f"is not a recorded history ({error}). Record it again.") from error
    task_type = TaskType(description["task_type"])
    statuses = tuple(TrialStatus(status) for status in description["statuses"])
    succeeded = np.array([status is TrialStatus.SUCCESS for status in statuses])
    for part in ("validation", "test"):
        joined = np.ascontiguousarray(np.moveaxis(arrays[part], 0, -1)).view(np.float16)[..., 0]
        unpacked = _unpack(joined, task_type)
        arrays[part] = np.full((len(statuses), *unpacked.shape[1:]), np.nan, dtype=np.float32)
        arrays[part][succeeded] = unpacked
        arrays[part].flags.writeable = False
    return RecordedHistory(
        dataset=description["dataset"],
        space_name=present_space_name(description["space"], description.get("version", 0)),
        task_type=task_type,
        space=space,
        configurations=tuple(Configuration(space, values=v) for v in values),
        statuses=statuses,
        facts=description["facts"],
        **arrays,
    )


def _write(archive: zipfile.ZipFile, name: str, content: str | bytes) -> None:
    # A fixed date: recording the same again gives the same bytes.
    information = zipfile.ZipInfo(name, date_time=(2026, 1, 1, 0, 0, 0))
    information.compress_type = zipfile.ZIP_LZMA
    archive.writestr(information, content)


def _pack(predictions: np.ndarray, task_type: TaskType) -> np.ndarray:
    """Return predictions as float16; of two classes the smaller probability, negative if it is that of class 0."""
    if task_type is not TaskType.BINARY:
        bound = np.finfo(np.float16).max  # some regressions explode
        return np.asarray(np.clip(predictions, -bound, bound), dtype=np.float16)
    first, second = predictions[..., 0].astype(np.float64), predictions[..., 1].astype(np.float64)
    # Tails keep their precision this way: 1 - 1e-5 has no float16, 1e-5 has. -0.0 stands for "class 0 impossible".
    return np.where(second <= first, second, np.copysign(first, -1.0)).astype(np.float16)


def _unpack(packed: np.ndarray, task_type: TaskType) -> np.ndarray:
    """Return float32 predictions; rows of probabilities sum to one."""
    if task_type is TaskType.BINARY:
        small = np.abs(packed.astype(np.float32))
        second = np.where(np.signbit(packed), 1 - small, small)
        return np.stack([np.where(np.signbit(packed), small, 1 - small), second], axis=-1)
    if task_type is TaskType.MULTICLASS:
        values = packed.astype(np.float32)
        return np.asarray(values / values.sum(axis=-1, keepdims=True))
    bound = np.finfo(np.float16).max  # files written before values were bounded hold infinity
    return np.clip(packed.astype(np.float32), -bound, bound)
