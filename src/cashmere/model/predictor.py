"""The fitted ensemble: the part of a run to deploy."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, Float64
from cashmere.base.caller import level_of_caller
from cashmere.base.cores import available_cores
from cashmere.base.remote import is_url
from cashmere.base.shared_libraries import missing_library
from cashmere.base.sklearn_settings import with_default_sklearn
from cashmere.base.text import counted
from cashmere.base.threads import one_openmp_thread
from cashmere.base.versions import version_in
from cashmere.data.schema import CodedTable, TableSchema
from cashmere.data.target import TargetCoding
from cashmere.data.task import Encoding
from cashmere.data.unknown_values import unknown_values_hint
from cashmere.ensembles import Ensemble, ensemble_from_json
from cashmere.ensembles.calibration import Calibration
from cashmere.ensembles.conformal import ConformalScores
from cashmere.ensembles.threshold import decide
from cashmere.exceptions import MissingLibraryError, ModelFileError, PredictionError, UnknownValuesWarning, UsageError
from cashmere.model.archives import check, load, load_fold_models
from cashmere.model.consistency import check_encoders, check_ensemble, check_members
from cashmere.model.files import Encoders, entry_path, find_model, read_model
from cashmere.model.first_load import check_first_load
from cashmere.model.fold_model import FoldModel
from cashmere.model.many_rows import LEAST_ROWS, for_many_rows, has_threads, predict_in_threads
from cashmere.model.remote_model import local_copy
from cashmere.model.signature import read_signature

_changing_threads = threading.Lock()
"""Held while the threads of learners are set; one for all models, as those with a lock could not be pickled."""

SHARE_OF_REFITS = 2 / 3
"""What models of all rows count for in a member that averages them and models of folds."""

_CHUNK_ROWS = 20_000
"""Rows encoded and predicted at a time, so that intermediate arrays stay small."""


@dataclass(kw_only=True, repr=False)
class Predictor:
    """Predict with the members of an ensemble; each member is a mean of its models, see `averaged_models`.

    Attributes
    ----------
    schema : TableSchema
        Columns as learned in `fit`. Tables may have them in another order; a missing one raises an error that names it.
    target : TargetCoding
        Class labels, or regression.
    encoders : list of dict
        For each fold, the fitted encoder of each prepared form.
    ensemble : Ensemble
        Members (trial numbers) and how they are combined.
    models : dict of int to list of FoldModel
        Fold models of each member, in fold order.
    information : dict
        Facts about the run the model comes from: metric, losses, latency, versions.
    thresholds : (n_classes,) array or None
        How classes are decided, see `cashmere.ensembles.threshold.decide`; None means the most probable class.
    calibration : Calibration or None
        Corrects the probabilities of the ensemble; None leaves them as they are.
    conformal : ConformalScores or None
        How far out-of-fold predictions were from the truth; None for models of earlier versions and the constant
        predictor.
    newest_fold_only : bool
        Whether members predict with the model of the last fold alone: in time, the others have not seen the newest
        rows.
    first_refit : int or None
        Position, among encoders and models, of the first that has learned from all rows: the number of folds. None if
        there are none.
    refits_alone : bool
        Whether members that have models of all rows predict with these alone.
    unseen_ : dict of str to int
        Categories by column that training had not, counted in the latest table of any thread.
    """

    schema: TableSchema
    target: TargetCoding
    encoders: Encoders
    ensemble: Ensemble
    models: dict[int, list[FoldModel]]
    information: dict[str, Any] = field(default_factory=dict)
    thresholds: Float64 | None = None
    calibration: Calibration | None = None
    conformal: ConformalScores | None = None
    newest_fold_only: bool = False
    first_refit: int | None = None
    refits_alone: bool = False
    unseen_: dict[str, int] = field(default_factory=dict)
    _threads: int = 0

    def __repr__(self) -> str:
        """Return a line without the models, which would fill pages."""
        size = f"{counted(len(self.schema.used), 'column')}, {counted(len(self.models), 'member')}"
        return f"{type(self).__name__}({self.target.task_type}, {size})"

    @property
    def classes_(self) -> AnyArray:
        """Class labels in the order of the columns of `predict_proba`."""
        return self.target.labels()

    def predict(self, table: Any) -> AnyArray:
        """Predict class labels, as `decide` does, or numbers, shape ``(n_rows,)``.

        Raises
        ------
        SchemaError
            If a column is missing or has another type than in `fit`.
        PredictionError
            If a prediction is NaN or infinite.
        """
        if self.target.task_type.is_classification:
            return self.decide(self.predict_proba(table))
        return self._checked(self.predict_raw(self.schema.frame_of(table)).astype(np.float64))

    def _checked(self, output: Float64) -> Float64:
        """Raise an error for NaN or infinite predictions, which could be mistaken for missing values."""
        odd = ~np.isfinite(output if output.ndim == 1 else output.sum(axis=1))
        if odd.any():
            rows = np.flatnonzero(odd)
            listed = ", ".join(str(row) for row in rows[:10]) + (", ..." if len(rows) > 10 else "")
            raise PredictionError(
                f"The model predicts NaN or infinite values for {len(rows)} of {len(output)} rows, at the positions "
                f"{listed}. Look for extreme values in these rows, or fit the model again.",
                rows=rows.tolist(),
            )
        return output

    def decide(self, probabilities: Float64) -> AnyArray:
        """Turn probabilities from `predict_proba` into class labels.

        With thresholds, the class whose probability exceeds its threshold by the largest factor; without, the most
        probable class (the first one in a tie).
        """
        return self.target.decode(decide(probabilities, self.thresholds))

    @property
    def decision_threshold_(self) -> float | Float64:
        """Probability from which the positive class is predicted; for more than two, thresholds ``(n_classes,)``.

        The positive class is `pos_label`, by default the second. Thresholds sum to one. 0.5, or equal thresholds, mean
        the most probable class.
        """
        if not self.target.task_type.is_classification:
            raise AttributeError("decision_threshold_ exists for classification only; this model predicts values.")
        n_classes = len(self.classes_)
        thresholds = np.full(n_classes, 1 / n_classes) if self.thresholds is None else self.thresholds
        return float(thresholds[self.target.positive]) if n_classes == 2 else thresholds

    def predict_proba(self, table: Any) -> Float64:
        """Predict calibrated probabilities ``(n_rows, n_classes)``; columns as in `classes_`, rows sum to one."""
        if not self.target.task_type.is_classification:
            raise AttributeError(
                "predict_proba exists for classification only; this model predicts values. Use predict."
            )
        output = self._checked(self.predict_raw(self.schema.frame_of(table)).astype(np.float64))
        return self._checked(np.asarray(output / output.sum(axis=1, keepdims=True)))

    def predict_interval(self, table: Any, coverage: float = 0.9) -> Float64:
        """Predict intervals by CV+: lower and upper bounds, shape ``(n_rows, 2)``.

        The intervals contain the true value of about the share `coverage` of rows, if these are distributed like the
        training rows. Their width depends on the errors of all rows, hardly on the row itself; where learners learn
        logarithms, it is about proportional to the prediction. See `cashmere.ensembles.conformal`. If no target in
        training is below 0, a bound is so only where the prediction is.

        Parameters
        ----------
        table : (n_rows, n_columns) table
            As for `predict`.
        coverage : float
            Share of rows whose interval is to contain the true value, above 0 and below 1.

        Raises
        ------
        InvalidParameterError
            If `coverage` is not between 0 and 1, or is higher than the number of training rows allows.
        UsageError
            If the model is a classifier, or was saved by a version without intervals.
        SchemaError, PredictionError
            As `predict`.
        """
        if self.target.task_type.is_classification:
            raise UsageError("predict_interval exists for regression; this model predicts classes. Use predict_set.")
        scores, outputs = self._scores(coverage), self._of_folds(self.schema.frame_of(table))
        lowest = self.information.get("lowest_target")
        is_bounded = isinstance(lowest, int | float) and lowest >= 0
        is_logarithmic = self.information.get("log_intervals") is True
        intervals = []
        for parts in outputs:
            if is_logarithmic:
                bounds = np.expm1(scores.intervals([np.log1p(np.maximum(part, 0.0)) for part in parts], coverage))
            else:
                bounds = scores.intervals(parts, coverage)
            if is_bounded:  # a prediction may be negative all the same, and belongs to its interval
                bounds = np.maximum(bounds, np.minimum(np.mean(parts, axis=0), 0.0)[:, None])
            intervals.append(bounds)
        return np.concatenate(intervals)

    def predict_set(self, table: Any, coverage: float = 0.9, *, by_class: bool = False) -> NDArray[np.bool_]:
        """Predict by CV+ the classes each row may belong to, shape ``(n_rows, n_classes)``; columns as in `classes_`.

        The sets contain the true class of about the share `coverage` of rows, if these are distributed like the
        training rows. The set of a row that is easy to classify has one class, that of an ambiguous row several.

        Parameters
        ----------
        table : (n_rows, n_columns) table
            As for `predict`.
        coverage : float
            Share of rows whose set is to contain the true class, above 0 and below 1.
        by_class : bool
            Whether it is to be the share among the rows of each class, not only among all. Sets become larger; if a
            class had too few rows for the coverage, all of them contain it.

        Raises
        ------
        InvalidParameterError
            If `coverage` is not between 0 and 1, or is higher than the number of training rows allows.
        UsageError
            If the model is a regressor, or was saved by a version without sets, or without those by class.
        SchemaError, PredictionError
            As `predict`.
        """
        if not self.target.task_type.is_classification:
            raise UsageError("predict_set exists for classification; this model predicts values. Use predict_interval.")
        scores = self._scores(coverage)
        if by_class and not scores.classes:
            raise UsageError(
                "This model has no scores by class: it was saved by an earlier version. Fit it again, or run "
                "`cashmere resume` on its run directory."
            )
        outputs = self._of_folds(self.schema.frame_of(table))
        return np.concatenate([scores.sets(parts, coverage, by_class=by_class) for parts in outputs])

    def check_coverage(self, coverage: float) -> None:
        """Raise if intervals or sets cannot promise a coverage; errors as for `predict_interval`."""
        self._scores(coverage)

    def _scores(self, coverage: float) -> ConformalScores:
        if self.conformal is None:
            raise UsageError(
                "This model has no scores for intervals and sets: it is the constant predictor, or was saved by an "
                "earlier version. Fit it again, or run `cashmere resume` on its run directory."
            )
        self.conformal.rank(coverage)  # raises before the work begins if the coverage cannot be guaranteed
        return self.conformal

    def predict_raw(self, frame: pd.DataFrame) -> NDArray[np.float32]:
        """Predict calibrated probabilities or numbers for a frame, and count unseen categories in `unseen_`."""
        return self.predict_coded(self._coded(frame))

    def predict_coded(self, coded: CodedTable) -> NDArray[np.float32]:
        """Predict calibrated probabilities or numbers for rows that the schema has coded."""
        models = self._ready_models(len(coded))
        return np.concatenate([self._predict_chunk(chunk, models) for chunk in _chunks(coded)])

    def _of_folds(self, frame: pd.DataFrame) -> Iterator[list[Float64]]:
        """Yield, chunk by chunk, the predictions of the models of each fold that has its own scores.

        In time, where nothing is guaranteed anyway, these are the predictions of the ensemble: the newest fold may lag
        behind it.
        """
        assert self.conformal is not None
        models, n_folds = self._ready_models(len(frame), of_folds=not self.newest_fold_only), len(self.conformal.folds)
        for chunk in _chunks(self._coded(frame)):
            if n_folds == 1:
                outputs = [self._predict_chunk(chunk, models)]
            else:
                fold_models = [{number: {k: each[k]} for number, each in models.items()} for k in range(n_folds)]
                outputs = [self._predict_chunk(chunk, each) for each in fold_models]
            yield [self._checked(each.astype(np.float64)) for each in outputs]

    def averaged_models(self, number: int, *, of_folds: bool = False) -> dict[int, FoldModel]:
        """Return the models that a member averages, by the position of their encoders in `encoders`.

        Those that have learned from all rows together count twice as much as those of the folds together, which have
        seen fewer rows, but are more.

        Parameters
        ----------
        number : int
            The member.
        of_folds : bool
            Whether to leave out those that have learned from all rows.
        """
        models = dict(enumerate(self.models[number]))
        folds = {k: model for k, model in models.items() if not self.is_refit(k)}
        fits = {} if of_folds else {k: model for k, model in models.items() if k not in folds}
        if fits and self.refits_alone:
            return fits
        return ({max(folds): folds[max(folds)]} if self.newest_fold_only else folds) | fits

    def is_refit(self, position: int) -> bool:
        """Return whether the models at a position have learned from all rows."""
        return self.first_refit is not None and position >= self.first_refit

    def _ready_models(self, n_rows: int, *, of_folds: bool = False) -> dict[int, dict[int, FoldModel]]:
        """Return the models of `averaged_models` by member, optimised for this number of rows."""
        self.use_threads(available_cores() if n_rows >= LEAST_ROWS else 1)
        return {
            number: {
                k: for_many_rows(model, n_rows, n_threads=self._threads)
                for k, model in self.averaged_models(number, of_folds=of_folds).items()
            }
            for number in self.ensemble.members
        }

    def _coded(self, frame: pd.DataFrame) -> CodedTable:
        """Code a frame, and count unseen categories; warn of columns that are unlike those in training."""
        coded = self.schema.code(frame, compact=len(frame) > _CHUNK_ROWS)
        self.unseen_ = dict(coded.unseen)
        if (hint := unknown_values_hint(frame, coded)) is not None:
            warnings.warn(UnknownValuesWarning(hint), stacklevel=level_of_caller())
        return coded

    def predict_members(self, table: Any) -> dict[int, NDArray[np.float32]]:
        """Predict with each member alone.

        Parameters
        ----------
        table : (n_rows, n_columns) table
            As for `predict`.

        Returns
        -------
        dict of int to array
            Probabilities ``(n_rows, n_classes)``, not calibrated, or numbers ``(n_rows,)``, by trial number in the
            order of the ensemble's members; the constant predictor has the number -1. See `combine`.

        Raises
        ------
        SchemaError
            As `predict`.
        """
        coded = self._coded(self.schema.frame_of(table))
        models = self._ready_models(len(coded))
        parts = [self._member_outputs(chunk, models) for chunk in _chunks(coded)]
        return {n: np.concatenate(of_member) for n, of_member in zip(models, zip(*parts, strict=True), strict=True)}

    def combine(self, outputs: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Return the predictions of the ensemble, calibrated, from those of `predict_members` in the same order."""
        combined = self.ensemble.combine(outputs)
        if self.calibration is not None and np.isfinite(combined).all():
            combined = self.calibration.apply(combined)
        if self.least_prediction is not None:
            combined = np.maximum(combined, self.least_prediction)
        return np.asarray(combined, dtype=np.float32)

    @property
    def least_prediction(self) -> float | None:
        """What predicted values are at least, under a metric that is only defined for positive ones; else None."""
        least = self.information.get("least_prediction")
        return float(least) if isinstance(least, int | float) else None

    def _predict_chunk(self, coded: CodedTable, models: Mapping[int, Mapping[int, FoldModel]]) -> NDArray[np.float32]:
        """Predict with the given models of each member, by fold."""
        return self.combine(self._member_outputs(coded, models))

    @with_default_sklearn
    def _member_outputs(
        self, coded: CodedTable, models: Mapping[int, Mapping[int, FoldModel]]
    ) -> list[NDArray[np.float32]]:
        texts = coded.take_texts(slice(None))
        of_texts: dict[int, NDArray[np.float32]] = {}
        prepared: dict[tuple[int, Encoding], NDArray[np.float32]] = {}
        outputs = []
        with one_openmp_thread() if self._threads == 1 else contextlib.nullcontext():
            for number in self.ensemble.members:
                parts: dict[bool, list[NDArray[np.float32]]] = {}  # by `is_refit`
                for k, model in models[number].items():
                    key, encoder = (k, model.encoding), self.encoders[k][model.encoding]
                    if k not in of_texts:  # they are the same in all forms, and slow
                        of_texts[k] = encoder.text_columns(texts, len(coded))
                    if key not in prepared:
                        prepared[key] = encoder.transform_values(coded.values, of_texts[k])
                    part = predict_in_threads(model, prepared[key], n_threads=self._threads)
                    parts.setdefault(self.is_refit(k), []).append(part)
                means = {refit: _mean(each) for refit, each in parts.items()}
                if len(means) == 2:
                    share = np.float32(SHARE_OF_REFITS)
                    outputs.append(means[False] * (1 - share) + means[True] * share)
                else:
                    outputs += means.values()
        return outputs

    def use_threads(self, n_threads: int) -> None:
        """Set the number of threads of learners: one for few rows, as starting threads would cost more than it saves.

        Learners whose results would change with more threads always use one; `predict_in_threads` then distributes the
        rows over threads.
        """
        with _changing_threads:  # another caller must not predict with models of which some have changed
            if n_threads == self._threads:
                return
            for model in itertools.chain(*self.models.values()):
                if model.pipeline is None:
                    continue
                own = n_threads if has_threads(model.pipeline[-1]) else 1
                names = [n for n in model.pipeline.get_params() if n.rpartition("__")[2] in ("n_jobs", "thread_count")]
                # CatBoost refuses set_params on fitted models; it predicts few rows in one thread anyway.
                with contextlib.suppress(Exception):
                    model.pipeline.set_params(**dict.fromkeys(names, own))
            self._threads = n_threads

    def measure_latency(self, frame: pd.DataFrame, *, seconds: float = 1.0) -> dict[str, float]:
        """Measure the time to predict one row and a batch.

        Parameters
        ----------
        frame : DataFrame
            Rows to predict; the first 1000 form the batch.
        seconds : float
            Approximate duration of the measurement; at least three rows are predicted, at most 30.

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
        while len(times) < 3 or (time.perf_counter() < end and len(times) < 30):
            row = frame.iloc[[len(times) % len(frame)]]
            clock = time.perf_counter()
            self.predict_raw(row)
            times.append(time.perf_counter() - clock)
        return {"single_row_ms": 1000 * float(np.median(times)), "batch_rows_per_second": float(rate)}

    @classmethod
    def load(cls, folder: str | Path, *, trusted: Iterable[str] = (), verify: bool = True) -> Predictor:
        """Load a model from its folder, or from the run directory that holds it; both may be URLs.

        No pickle is involved: archives may only contain types on cashmere's allow-list, and every file must have the
        checksum stated in the manifest. In a model that is signed neither by this machine nor by a key you trust, the
        contents of the archives must be consistent, and it is first loaded in a child process with limited memory and
        time, which takes some seconds; see `cashmere.model.first_load`.

        Parameters
        ----------
        folder : path or URL
            ``RUN/model`` or ``RUN``. A model at a URL is copied once to a folder of this user, see
            `cashmere.model.remote_model`.
        trusted : iterable of str
            Types of custom algorithms to accept, see `cashmere.model.archives.load`.
        verify : bool
            Whether to use a child process for models without a trusted signature. Disable it only for models whose
            origin you know.

        Raises
        ------
        MissingLibraryError
            If a library that the model needs is not installed.
        ModelFileError
            If the folder contains no model; if a file is missing, damaged or modified; if a type is not trusted, the
            contents are inconsistent or the signature is forged; or if the child process dies while loading the model.
        """
        path = find_model(local_copy(str(folder)) if is_url(folder) else folder)
        trusted = tuple(trusted)

        def checked_and_loaded(manifest: dict[str, Any]) -> Predictor:
            vouched = verify and read_signature(path, manifest["checksum"]).signer.is_trusted
            if verify and not vouched:
                for entry in (manifest["encoders"], *manifest["members"].values()):
                    # This refuses much without a child process.
                    check(entry_path(path, entry), trusted=trusted, sha256=entry["sha256"])
                check_first_load(path, manifest, trusted=trusted)
            return cls.from_manifest(path, manifest, trusted=trusted, vouched=vouched)

        return read_model(path, checked_and_loaded)

    @classmethod
    def from_manifest(
        cls, path: Path, manifest: Mapping[str, Any], *, trusted: tuple[str, ...] = (), vouched: bool = False
    ) -> Predictor:
        """Load the archives listed in a manifest, in this process and without the other checks of `load`.

        Parameters
        ----------
        path : Path
            The model folder.
        manifest : dict
            From `cashmere.model.files.read_manifest`.
        trusted : tuple of str
            Types of custom algorithms.
        vouched : bool
            Whether the manifest has a trusted signature; see `cashmere.model.archives.load`.

        Raises
        ------
        MissingLibraryError, ModelFileError
            As `load`.
        """
        try:
            schema, target = TableSchema.from_json(manifest["schema"]), TargetCoding.from_json(manifest["target"])
            ensemble = ensemble_from_json(manifest["ensemble"])
            thresholds = None if manifest.get("thresholds") is None else np.array(manifest["thresholds"])
            stored = manifest.get("calibration")
            calibration = None if stored is None else Calibration.from_json(stored)
            entries = {int(number): entry for number, entry in manifest["members"].items()}
            scores = manifest.get("conformal_scores")
            conformal = (
                None
                if not scores
                else ConformalScores.from_lists(scores, manifest.get("conformal_scores_of_classes", []))
            )
            check_ensemble(path / "manifest.json", ensemble, set(entries), target, thresholds, calibration, conformal)
            entry = manifest["encoders"]
            loaded = load(entry_path(path, entry), trusted=trusted, sha256=entry["sha256"], vouched=vouched)
            encoders = [{Encoding(name): encoder for name, encoder in fold.items()} for fold in loaded]
            check_encoders(entry_path(path, entry), encoders, schema)
            paths = {number: entry_path(path, entry) for number, entry in entries.items()}
            models = {
                number: load_fold_models(paths[number], trusted=trusted, sha256=entry["sha256"], vouched=vouched)
                for number, entry in entries.items()
            }
            newest_fold_only = manifest.get("newest_fold_only", False)
            n_folds = manifest.get("folds", len(encoders))
            if conformal is not None and len(conformal.folds) > (1 if newest_fold_only else n_folds):
                raise ValueError(f"there are scores of {len(conformal.folds)} folds, but {n_folds} folds")
            refitted = manifest.get("refitted", False)
            check_members(paths, models, encoders, target, n_folds=n_folds, refitted=refitted)
            return cls(
                schema=schema,
                target=target,
                encoders=encoders,
                ensemble=ensemble,
                models=models,
                information=manifest["information"],
                thresholds=thresholds,
                calibration=calibration,
                conformal=conformal,
                newest_fold_only=newest_fold_only,
                first_refit=n_folds if refitted else None,
                refits_alone=manifest.get("refits_alone", refitted),
            )
        except MissingLibraryError as error:
            version = version_in(manifest.get("versions", {}), error.library)
            raise missing_library(error.path, error.library, version) from error
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            text = f"does not describe a model ({type(error).__name__}: {error})."
            raise ModelFileError(path / "manifest.json", text) from error


def _mean(parts: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    return np.asarray(sum(parts[1:], start=parts[0]) / np.float32(len(parts)))


def _chunks(coded: CodedTable) -> Iterator[CodedTable]:
    """Yield some rows at a time."""
    n_rows = len(coded)
    if n_rows <= _CHUNK_ROWS:
        yield coded
        return
    for rows in np.array_split(np.arange(n_rows), -(-n_rows // _CHUNK_ROWS)):
        yield coded.take(rows)
