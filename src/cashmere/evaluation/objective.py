"""What a trial runs: fit a configuration on every fold, predict the unseen rows, compute the loss."""

from __future__ import annotations

import functools
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from cashmere.base.arrays import AnyArray, BoolArray, FloatArray
from cashmere.data.prepared import PreparedFolds
from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.metrics import Metric
from cashmere.model.fold_model import FoldModel, fit_fold_model
from cashmere.records.cause import Cause
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.space.component import BuildContext
from cashmere.space.space import Space

CELLS_PER_THREAD = 4_000_000
"""Training cells (rows x columns) per thread.

Threads that wait passively are slow to wake: on 2 cores, boosters with 2 threads take 10 times as long as with 1 on
16 thousand cells, equally long on 4 million, and gain from there (`benchmarks/timings/threads.py`).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidationObjective:
    """Evaluate configurations on prepared folds (holdout is the case of one fold).

    The loss is the mean of the fold losses (docs/papers/problem.md#loss-of-a-trial); there is none unless all folds
    finish, and `Trial.stop_above` may stop the trial early. Predictions for all validation rows are returned, in
    row order, for the ensemble.

    Attributes
    ----------
    folder : Path
        Where the `PreparedFolds` are; memory-mapped once per worker.
    space : Space
        Builds the pipelines.
    metric : Metric
        Computes the loss.
    n_threads : int
        Threads a learner may use; small tables get fewer, see `CELLS_PER_THREAD`.
    keep_model : bool
        Whether the fitted fold models are returned, serialised.
    """

    folder: Path
    space: Space
    metric: Metric
    n_threads: int = 1
    keep_model: bool = True

    def __call__(self, trial: Trial) -> Outcome:
        """Evaluate the trial's configuration on every fold."""
        folds = _open_folds(os.fspath(self.folder), (self.folder / "prepared.json").stat().st_mtime_ns)
        profile = self.space.profile
        algorithm = self.space.algorithm_of(trial.configuration)
        encoding = self.space.encoding_of(trial.configuration)
        n_classes = profile.n_classes if profile.task_type.is_classification else 1
        shape = (len(folds.y), n_classes) if n_classes > 1 else (len(folds.y),)
        total = np.zeros(shape, dtype=np.float32)
        counts = np.zeros(len(folds.y), dtype=np.int64)
        models: list[FoldModel] = []
        losses: list[float] = []
        fit_seconds = predict_seconds = 0.0
        for k, fold in enumerate(folds.folds):
            X_train, X_valid, categorical = folds.load(k, encoding)
            y_train, y_valid = folds.y[fold.train], folds.y[fold.validation]
            weight = None if folds.weight is None else folds.weight
            clock = time.perf_counter()
            context = fold_context(
                profile,
                X_train,
                y_train,
                categorical,
                n_threads=min(self.n_threads, max(1, X_train.size // CELLS_PER_THREAD)),
                seed=(trial.seed + k) % 2**31,
            )
            with threadpool_limits(context.n_threads, user_api="openmp"):  # for learners that take no number of threads
                model = fit_fold_model(
                    self.space.build(trial.configuration, context),
                    encoding,
                    X_train,
                    y_train,
                    n_classes=n_classes,
                    weight=weight[fold.train] if weight is not None and algorithm.accepts_weights else None,
                    resample=self.space.build_resampling(trial.configuration, context),
                    needs_probabilities=self.metric.needs == "probabilities",
                    algorithm=algorithm.name,
                )
            fit_seconds += time.perf_counter() - clock
            clock = time.perf_counter()
            predictions = model.predict(X_valid)
            predict_seconds += time.perf_counter() - clock
            if not np.isfinite(predictions).all():
                raise FloatingPointError(f"{algorithm.name} predicts NaN or infinity on fold {k}.")
            losses.append(self.metric.loss(y_valid, predictions, None if weight is None else weight[fold.validation]))
            total[fold.validation] += predictions
            counts[fold.validation] += 1
            models.append(model)
            if k + 1 < len(folds.folds) and np.mean(losses) > trial.stop_above:
                return Outcome(
                    status=TrialStatus.STOPPED,
                    fold_losses=tuple(float(loss) for loss in losses),
                    fit_seconds=fit_seconds,
                    predict_seconds=predict_seconds,
                    error=Cause.other(
                        f"stopped after {k + 1} of {len(folds.folds)} folds: mean loss {np.mean(losses):.6g}, "
                        f"the worst fold of the best trial has {trial.stop_above:.6g}"
                    ),
                )
        rows = np.flatnonzero(counts)
        repeats = counts[rows].astype(np.float32)
        outcome = Outcome(
            status=TrialStatus.SUCCESS,
            loss=float(np.mean(losses)),
            fold_losses=tuple(float(loss) for loss in losses),
            predictions=total[rows] / (repeats[:, None] if n_classes > 1 else repeats),
            fit_seconds=fit_seconds,
            predict_seconds=predict_seconds,
        )
        if self.keep_model:
            outcome = replace(outcome, model=_serialised(models, algorithm.name, algorithm.trusted_types))
        return outcome


def fold_context(
    profile: TaskProfile, X: FloatArray, y: AnyArray, categorical: BoolArray, *, n_threads: int = 1, seed: int = 0
) -> BuildContext:
    """Return what builders may know about a fold: facts about its training rows only.

    Parameters
    ----------
    profile : TaskProfile
        The facts about the task.
    X : (n_rows, n_features) array
        Prepared training rows.
    y : (n_rows,) array
        Their class codes or values.
    categorical : (n_features,) bool array
        Columns of category codes.
    n_threads, seed : int
        See `BuildContext`.
    """
    return BuildContext(
        task_type=_fold_task(profile.task_type, y),
        n_classes=len(np.unique(y)) if profile.task_type.is_classification else 1,
        n_rows=X.shape[0],
        n_features=X.shape[1],
        categorical=categorical,
        n_threads=n_threads,
        seed=seed,
    )


@functools.lru_cache(maxsize=2)
def _open_folds(folder: str, changed: int) -> PreparedFolds:
    return PreparedFolds(Path(folder))


_readable: set[tuple[type, ...]] = set()
"""Step types of pipelines whose model files this process has already checked to hold trusted types only."""


def _serialised(models: list[FoldModel], algorithm: str, trusted: tuple[str, ...]) -> bytes:
    """Return the models as bytes; a pipeline that could not be read back fails at its first trial."""
    from cashmere.model.archives import dump_fold_models
    from cashmere.model.audit import audit

    data = dump_fold_models(models)
    steps = tuple(type(step) for _, step in models[0].pipeline.steps)
    if steps not in _readable:
        audit(data, algorithm, trusted=trusted)
        _readable.add(steps)
    return data


def _fold_task(task_type: TaskType, y_train: np.ndarray) -> TaskType:
    """Return the task of a fold, which may be a smaller one if its training rows lack some classes."""
    if task_type is TaskType.MULTICLASS and len(np.unique(y_train)) <= 2:
        return TaskType.BINARY
    return task_type
