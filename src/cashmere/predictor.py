"""The fitted ensemble: what remains of a run and is shipped."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cashmere.arrays import AnyArray
from cashmere.data.frames import to_frame
from cashmere.data.preparation import FoldEncoder
from cashmere.data.schema import CodedTable, TableSchema
from cashmere.data.target import TargetCoding
from cashmere.data.task import Encoding
from cashmere.ensembles import Ensemble, ensemble_from_json
from cashmere.ensembles.threshold import decide
from cashmere.evaluation.fold_model import FoldModel
from cashmere.exceptions import ModelFileError
from cashmere.executors import available_cores
from cashmere.persistence import dump, load, load_fold_models
from cashmere.store import write_atomically

MODEL_VERSION = 2
"""Since 2 there may be thresholds, which earlier programs would pass over in silence."""

_CHUNK_ROWS = 20_000
_PARALLEL_ROWS = 2_000

Encoders = list[dict[Encoding, FoldEncoder]]
"""Fitted encoders, per fold and encoding."""


@dataclass(kw_only=True)
class Predictor:
    """Predicts with the members of an ensemble; each member is the average of its fold models.

    Attributes
    ----------
    schema : TableSchema
        Columns as learned in `fit`; re-ordered columns are accepted, missing ones refused by name.
    target : TargetCoding
        Class labels, or regression.
    encoders : list of dict
        Per fold, the fitted encoder of each prepared form.
    ensemble : Ensemble
        Members (trial numbers) and how they are combined.
    models : dict of int to list of FoldModel
        Fold models of each member, in fold order.
    information : dict
        Facts about the run the model comes from: metric, losses, latency, versions.
    thresholds : (n_classes,) array or None
        How classes are decided, see `cashmere.ensembles.threshold.decide`; None: the most probable one.
    """

    schema: TableSchema
    target: TargetCoding
    encoders: Encoders
    ensemble: Ensemble
    models: dict[int, list[FoldModel]]
    information: dict[str, Any] = field(default_factory=dict)
    thresholds: NDArray[np.float64] | None = None
    unseen_: dict[str, int] = field(default_factory=dict)
    _threads: int = field(default=0, repr=False)

    @property
    def classes_(self) -> AnyArray:
        """Class labels in the order of the columns of `predict_proba`."""
        return self.target.labels()

    def predict(self, table: Any) -> AnyArray:
        """Predict labels, as `decide` does, or values, shape ``(n_rows,)``.

        Raises
        ------
        SchemaError
            If a column is missing or has another type than in `fit`.
        """
        if self.target.task_type.is_classification:
            return self.decide(self.predict_proba(table))
        return self.predict_raw(self._frame(table)).astype(np.float64)

    def decide(self, probabilities: NDArray[np.float64]) -> AnyArray:
        """Return the labels for probabilities from `predict_proba`.

        With thresholds the class whose probability exceeds its own by the largest factor; without, the most probable
        class, the first of equals.
        """
        return self.target.decode(decide(probabilities, self.thresholds))

    @property
    def decision_threshold_(self) -> float | NDArray[np.float64]:
        """Probability from which on the second class is predicted; of more classes, their thresholds ``(n_classes,)``.

        Thresholds sum to one. 0.5, or equal ones, stand for the most probable class.
        """
        if not self.target.task_type.is_classification:
            raise AttributeError("decision_threshold_ is for classification; this model predicts values.")
        n_classes = len(self.classes_)
        thresholds = np.full(n_classes, 1 / n_classes) if self.thresholds is None else self.thresholds
        return float(thresholds[1]) if n_classes == 2 else thresholds

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Predict class probabilities ``(n_rows, n_classes)``; columns as in `classes_`, rows sum to one."""
        if not self.target.task_type.is_classification:
            raise AttributeError("predict_proba is for classification; this model predicts values: use predict.")
        output = self.predict_raw(self._frame(table)).astype(np.float64)
        return np.asarray(output / output.sum(axis=1, keepdims=True))

    def _frame(self, table: Any) -> pd.DataFrame:
        return to_frame(table, columns=[column.name for column in self.schema.columns])

    def predict_raw(self, frame: pd.DataFrame) -> NDArray[np.float32]:
        """Predict class probabilities or values for a frame; also counts unseen categories in `unseen_`."""
        coded = self.schema.code(frame)
        self.unseen_ = dict(coded.unseen)
        n_rows = len(frame)
        self._use_threads(available_cores() if n_rows > _PARALLEL_ROWS else 1)
        if n_rows <= _CHUNK_ROWS:
            return self._predict_chunk(coded)
        chunks = np.array_split(np.arange(n_rows), -(-n_rows // _CHUNK_ROWS))
        return np.concatenate([self._predict_chunk(coded.take(rows)) for rows in chunks])

    def _predict_chunk(self, coded: CodedTable) -> NDArray[np.float32]:
        prepared: dict[tuple[int, Encoding], Any] = {}
        outputs = []
        for number in self.ensemble.members:
            total: NDArray[np.float32] | None = None
            for k, model in enumerate(self.models[number]):
                key = (k, model.encoding)
                if key not in prepared:
                    prepared[key] = self.encoders[k][model.encoding].transform(coded)
                part = model.predict(prepared[key])
                total = part if total is None else total + part
            assert total is not None
            outputs.append(total / np.float32(len(self.models[number])))
        return np.asarray(self.ensemble.combine(outputs), dtype=np.float32)

    def _use_threads(self, n_threads: int) -> None:
        """Let learners use one thread for few rows, where starting threads costs more than they save."""
        if n_threads == self._threads:
            return
        for models in self.models.values():
            for model in models:
                if model.pipeline is None:
                    continue
                names = [n for n in model.pipeline.get_params() if n.rpartition("__")[2] in ("n_jobs", "thread_count")]
                # CatBoost refuses set_params on fitted models; it predicts few rows in one thread anyway.
                with contextlib.suppress(Exception):
                    model.pipeline.set_params(**dict.fromkeys(names, n_threads))
        self._threads = n_threads

    def measure_latency(self, frame: pd.DataFrame, *, seconds: float = 1.0) -> dict[str, float]:
        """Measure the time of predicting one row and a batch.

        Parameters
        ----------
        frame : DataFrame
            Rows to predict; the batch is its first 1000 rows.
        seconds : float
            About how long to measure.

        Returns
        -------
        dict
            ``single_row_ms`` (median) and ``batch_rows_per_second``.
        """
        end = time.perf_counter() + seconds
        batch = frame.iloc[:1000]
        clock = time.perf_counter()
        self.predict_raw(batch)
        rate = len(batch) / (time.perf_counter() - clock)
        times: list[float] = []
        while len(times) < 2 or (time.perf_counter() < end and len(times) < 30):
            row = frame.iloc[[len(times) % len(frame)]]
            clock = time.perf_counter()
            self.predict_raw(row)
            times.append(time.perf_counter() - clock)
        return {"single_row_ms": 1000 * float(np.median(times)), "batch_rows_per_second": float(rate)}

    @classmethod
    def load(cls, folder: str | Path, *, trusted: Iterable[str] = ()) -> Predictor:
        """Read a model folder (or the run directory that holds one).

        No pickle is involved: archives may only hold types on cashmere's own allow-list, every file must have the
        checksum the manifest states.

        Parameters
        ----------
        folder : path
            ``RUN/model`` or ``RUN``.
        trusted : iterable of str
            Types of your own algorithms, see `cashmere.persistence.load`.

        Raises
        ------
        ModelFileError
            If the folder holds no model, a file is missing, damaged or changed, or a type is not trusted.
        """
        path = Path(folder)
        if not (path / "manifest.json").exists() and (path / "model" / "manifest.json").exists():
            path = path / "model"
        trusted = tuple(trusted)
        manifest = _read_manifest(path)
        try:
            encoders = load(path / _verify(path, manifest["encoders"]), trusted=trusted)
            models = {
                int(number): load_fold_models(path / _verify(path, entry), trusted=trusted)
                for number, entry in manifest["members"].items()
            }
            return cls(
                schema=TableSchema.from_json(manifest["schema"]),
                target=TargetCoding.from_json(manifest["target"]),
                encoders=[{Encoding(name): encoder for name, encoder in fold.items()} for fold in encoders],
                ensemble=ensemble_from_json(manifest["ensemble"]),
                models=models,
                information=manifest["information"],
                thresholds=None if manifest.get("thresholds") is None else np.array(manifest["thresholds"]),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            text = f"does not describe a model ({type(error).__name__}: {error})."
            raise ModelFileError(path / "manifest.json", text) from error


def save_model(
    folder: Path,
    *,
    schema: TableSchema,
    target: TargetCoding,
    encoders: Encoders,
    ensemble: Ensemble,
    member_files: Mapping[int, Path],
    information: Mapping[str, Any],
    thresholds: NDArray[np.float64] | None = None,
) -> None:
    """Write a model folder; at every instant it holds a complete model, the old one or the new one.

    Members are linked (or copied) from the run directory under names that carry their checksum; the manifest is
    replaced last, files it no longer names are removed after that.
    """
    folder.mkdir(parents=True, exist_ok=True)
    data = dump([{encoding.value: encoder for encoding, encoder in fold.items()} for fold in encoders])
    encoder_digest = hashlib.sha256(data).hexdigest()
    encoder_entry = {"file": f"encoders-{encoder_digest[:12]}.skops", "sha256": encoder_digest}
    if not (folder / encoder_entry["file"]).exists():
        write_atomically(folder / encoder_entry["file"], data)
    entries = {}
    for number in ensemble.members:
        digest = _file_digest(member_files[number])
        entries[str(number)] = {"file": f"member-{number:06d}-{digest[:12]}.skops", "sha256": digest}
        _link_or_copy(member_files[number], folder / entries[str(number)]["file"])
    content = {
        "format": "cashmere model",
        "version": MODEL_VERSION,
        "schema": schema.to_json(),
        "target": target.to_json(),
        "ensemble": ensemble.to_json(),
        "encoders": encoder_entry,
        "members": entries,
        "information": dict(information),
        "thresholds": None if thresholds is None else thresholds.tolist(),
        "versions": versions(),
    }
    content["checksum"] = _checksum(content)
    write_atomically(folder / "manifest.json", json.dumps(content, indent=1).encode())
    named = {encoder_entry["file"], *(entry["file"] for entry in entries.values())}
    for path in folder.glob("*.skops"):
        if path.name not in named:
            path.unlink()


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of the libraries that matter for a model."""
    names = ("cashmere-automl", "numpy", "scipy", "pandas", "scikit-learn", "ConfigSpace", "lightgbm", "skops")
    found = {"python": platform.python_version()}
    for name in (*names, "xgboost-cpu", "xgboost", "catboost"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _link_or_copy(source: Path, destination: Path) -> None:
    if destination.exists():
        return
    try:
        os.link(source, destination)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, destination)


def _checksum(content: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in content.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    try:
        content = json.loads(path.read_text())
    except OSError:
        raise ModelFileError(
            path, "does not exist. Expected a run directory or the folder 'model' inside one."
        ) from None
    except ValueError as error:
        raise ModelFileError(
            path, f"is damaged ({error}). Restore it from a copy, or run `cashmere resume`."
        ) from error
    if not isinstance(content, dict) or content.get("format") != "cashmere model":
        raise ModelFileError(path, "is not the manifest of a cashmere model.")
    if content.get("version", 0) > MODEL_VERSION:
        raise ModelFileError(path, f"was written by a newer cashmere (model version {content['version']}); upgrade it.")
    if content.get("checksum") != _checksum(content):
        raise ModelFileError(path, "has been changed since it was written; refused.")
    return content


def _verify(folder: Path, entry: Mapping[str, str]) -> str:
    """Return the file name of a manifest entry after checking place and checksum."""
    name = entry["file"]
    if Path(name).name != name or not name.endswith(".skops"):
        raise ModelFileError(folder / "manifest.json", f"names a file outside the model folder: {name!r}; refused.")
    path = folder / name
    if not path.is_file() or path.is_symlink():
        raise ModelFileError(path, "is missing or a link. Is the model folder complete?")
    if _file_digest(path) != entry["sha256"]:
        raise ModelFileError(path, "has another checksum than the manifest states: damaged or tampered with; refused.")
    return name
