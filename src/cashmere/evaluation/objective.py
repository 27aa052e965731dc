"""What a trial runs: fit a configuration on every fold, predict the unseen rows, compute the loss."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from ConfigSpace import Configuration
from numpy.typing import NDArray

from cashmere.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from cashmere.base.threads import learner_threads
from cashmere.data.prepared import PreparedFolds
from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.following import NEGLIGIBLE_FOR_LABELS, FollowedFolds
from cashmere.evaluation.metrics import Metric, get_metric
from cashmere.model.fold_model import FoldModel, fit_fold_model
from cashmere.model.fold_path import FoldPath
from cashmere.protocols import Supervisor
from cashmere.records.added_features import AddedFeatures
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.path import FollowedPath
from cashmere.records.trial import Outcome, Trial, TrialStatus
from cashmere.space.component import BuildContext
from cashmere.space.path import PathParameter
from cashmere.space.space import Space

CELLS_PER_THREAD = 4_000_000
"""Training cells (rows x columns) per thread.

Threads that wait passively are slow to wake: on 2 cores, boosters with 2 threads take 10 times as long as with 1 on
16 thousand cells, equally long on 4 million, and less on more (`benchmarks/timings/threads.py`).
"""


class Unsupervised:
    """The `Supervisor` of a trial that nobody will stop."""

    def seconds_left(self) -> float:
        """Return infinity."""
        return float("inf")

    def wants_checkpoint(self) -> bool:
        """Return False."""
        return False

    def keep(self, outcome: Outcome) -> None:
        """Forget the outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidationObjective:
    """Evaluate configurations on prepared folds (holdout is the case of one fold).

    The loss is the mean of the fold losses (docs/papers/problem.md#loss-of-a-trial); there is none unless all folds
    finish, and `Trial.stop_above` may stop the trial early. Predictions for all validation rows are returned, in
    row order, for the ensemble.

    An algorithm with a path parameter is followed on all folds at once (docs/paths.md): each position that all of them
    reach is a complete result, which remains if the trial is stopped later.

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
    followed : FollowedPath or None
        How far to follow the path of the algorithm, if it has one: to the chosen position, whatever the losses are. By
        default, the losses on the validation rows decide.
    """

    folder: Path
    space: Space
    metric: Metric
    n_threads: int = 1
    keep_model: bool = True
    followed: FollowedPath | None = None

    def __call__(self, trial: Trial) -> Outcome:
        """Evaluate the trial's configuration on every fold."""
        return self.run(trial, Unsupervised())

    def has_checkpoints(self, configuration: Configuration) -> bool:
        """Return whether the algorithm is followed along a path."""
        return self.followed is None and self.space.path_of(configuration) is not None

    def files(self) -> Mapping[str, Path]:
        """Return the files of the prepared folds."""
        return PreparedFolds(self.folder).files()

    def in_folder(self, folder: Path) -> CrossValidationObjective:
        """Return the objective for the prepared folds below another folder."""
        return replace(self, folder=folder / self.folder.name)

    def run(self, trial: Trial, supervisor: Supervisor) -> Outcome:
        """Evaluate the trial's configuration on every fold, and hand over checkpoints in case the trial is stopped."""
        evaluation = _Evaluation(self, trial)
        path = self.space.path_of(trial.configuration)
        if path is None:
            return evaluation.fit_folds()
        if self.followed is not None:
            return evaluation.fit_folds_to(path, self.followed)
        return evaluation.follow_folds(path, supervisor)

    def fit(self, trial: Trial, followed: FollowedPath | None) -> list[FoldModel]:
        """Fit the trial's configuration on every fold, without evaluating it.

        Parameters
        ----------
        trial : Trial
            What to fit.
        followed : FollowedPath or None
            How far to follow the path of the algorithm, if it has one: to the chosen position.
        """
        evaluation = _Evaluation(self, trial)
        path = self.space.path_of(trial.configuration)
        numbers = range(evaluation.n_folds)
        if path is None or followed is None:
            return [evaluation.fit(k)[0] for k in numbers]
        return [evaluation.fit_to(k, path, followed) for k in numbers]


class _Evaluation:
    """The evaluation of one trial on its folds."""

    def __init__(self, objective: CrossValidationObjective, trial: Trial) -> None:
        self._objective, self._trial = objective, trial
        self._space, self._metric = objective.space, objective.metric
        folder = objective.folder
        self._folds = _open_folds(os.fspath(folder), (folder / "prepared.json").stat().st_mtime_ns)
        self._profile = self._space.profile
        self._algorithm = self._space.algorithm_of(trial.configuration)
        self._encoding = self._space.encoding_of(trial.configuration)
        self._n_classes = self._profile.n_classes if self._profile.task_type.is_classification else 1
        self.fit_seconds = self.predict_seconds = 0.0
        self._added: list[AddedFeatures] = []

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self._folds.folds)

    # ------------------------------------------------------------ one value per fit

    def fit_folds(self) -> Outcome:
        """Fit one fold after the other."""
        return self._one_by_one(self.fit)

    def _one_by_one(self, fit: Callable[[int], tuple[FoldModel, NDArray[np.float32]]]) -> Outcome:
        predictions: list[NDArray[np.float32]] = []
        models: list[FoldModel] = []
        for k in range(len(self._folds.folds)):
            model, predicted = fit(k)
            if not np.isfinite(predicted).all():
                raise FloatingPointError(f"{self._algorithm.name} predicts NaN or infinity on fold {k}.")
            models.append(model)
            predictions.append(predicted)
            losses = self._losses(predictions)
            if self._is_hopeless(losses):
                return self._stopped(losses)
        return self._success(predictions, models)

    def fit(self, k: int) -> tuple[FoldModel, NDArray[np.float32]]:
        """Fit one fold; return its model and predictions."""
        X_train, X_valid, categorical = self._folds.load(k, self._encoding, self._trial.fidelity)
        clock = time.perf_counter()
        context = self._context(k, X_train, categorical)
        with learner_threads(context.n_threads):
            model = fit_fold_model(
                self._space.build(self._trial.configuration, context),
                self._encoding,
                X_train,
                self._folds.y[self._train_rows(k)],
                n_classes=self._n_classes,
                weight=self._training_weight(k),
                resample=self._space.build_resampling(self._trial.configuration, context),
                needs_probabilities=self._metric.needs == "probabilities",
                learns_logarithms=self._profile.learns_logarithms,
                algorithm=self._algorithm.name,
            )
        fitted = time.perf_counter()
        predicted = model.predict(X_valid)
        self.fit_seconds += fitted - clock
        self.predict_seconds += time.perf_counter() - fitted
        return model, predicted

    # ------------------------------------------------------------ a path of values per fit

    def follow_folds(self, path: PathParameter, supervisor: Supervisor) -> Outcome:
        """Follow the path on all folds at once; if the trial may be stopped early, let the folds begin one by one."""
        # Finding the libraries takes milliseconds: once for all folds.
        with learner_threads(self._n_threads(self._folds.load(0, self._encoding, self._trial.fidelity)[0])):
            return self._follow_folds(path, supervisor)

    def _follow_folds(self, path: PathParameter, supervisor: Supervisor) -> Outcome:
        n_folds = len(self._folds.folds)
        metric = self._metric.smooth if path.metric is None else get_metric(path.metric, self._profile.task_type)
        positions = path.positions(len(self._train_rows(0)), self._n_classes)
        followed = FollowedFolds(
            path.name,
            positions,
            path.patience,
            functools.partial(self._pooled_loss, metric),
            n_folds=n_folds,
            beyond=path.beyond,
            negligible=NEGLIGIBLE_FOR_LABELS if self._metric.needs == "labels" else 0.0,
        )
        is_raced = self._trial.stop_above < float("inf")
        reached_end = True
        for k in range(n_folds):
            followed.begin(functools.partial(self._begin_path, k, path))
            if k + 1 < n_folds and not is_raced:
                continue
            is_last = k + 1 == n_folds

            def hand_over(is_last: bool = is_last) -> None:
                if is_last and supervisor.wants_checkpoint():
                    supervisor.keep(self._followed_so_far(followed))

            reached_end = followed.follow(seconds_left=supervisor.seconds_left, on_position=hand_over)
            losses = self._losses(followed.predictions())
            if self._is_hopeless(losses):
                self.fit_seconds, self.predict_seconds = followed.fit_seconds, followed.predict_seconds
                return self._stopped(losses)
        outcome = self._followed_so_far(followed)
        return outcome if reached_end else replace(outcome, cut_short=Cause(kind=CauseKind.TIME_LIMIT))

    def fit_folds_to(self, path: PathParameter, followed: FollowedPath) -> Outcome:
        """Fit one fold after the other up to the chosen position."""

        def fit(k: int) -> tuple[FoldModel, NDArray[np.float32]]:
            clock = time.perf_counter()
            model = self.fit_to(k, path, followed)
            fitted = time.perf_counter()
            predicted = model.predict(self._folds.load(k, self._encoding, self._trial.fidelity)[1])
            self.fit_seconds += fitted - clock
            self.predict_seconds += time.perf_counter() - fitted
            return model, predicted

        return self._one_by_one(fit)

    def fit_to(self, k: int, path: PathParameter, followed: FollowedPath) -> FoldModel:
        """Fit one fold up to the chosen position, through all earlier ones."""
        X_train = self._folds.load(k, self._encoding, self._trial.fidelity)[0]
        with learner_threads(self._n_threads(X_train)):
            begun = self._begin_path(k, path)
            for position in followed.positions[: followed.positions.index(followed.chosen) + 1]:
                begun.advance(position)
            return begun.model_at(followed.chosen)

    def _begin_path(self, k: int, path: PathParameter) -> FoldPath:
        X_train, X_valid, categorical = self._folds.load(k, self._encoding, self._trial.fidelity)
        context = self._context(k, X_train, categorical)
        begun = FoldPath(
            self._space.build(self._trial.configuration, context),
            path,
            self._encoding,
            X_train,
            self._folds.y[self._train_rows(k)],
            X_valid,
            categorical,
            n_classes=self._n_classes,
            weight=self._training_weight(k),
            resample=self._space.build_resampling(self._trial.configuration, context),
            n_threads=context.n_threads,
            learns_logarithms=self._profile.learns_logarithms,
        )
        if begun.added is not None:
            self._added.append(begun.added)
        return begun

    def _pooled_loss(self, metric: Metric, predictions: Sequence[NDArray[np.float32]]) -> float:
        """Return the loss of the predictions of the first folds together."""
        rows, mean = self._mean(predictions)
        weight = self._folds.weight
        return float(metric.loss(self._folds.y[rows], mean, None if weight is None else weight[rows]))

    def _followed_so_far(self, followed: FollowedFolds) -> Outcome:
        self.fit_seconds, self.predict_seconds = followed.fit_seconds, followed.predict_seconds
        outcome = self._success(followed.predictions(), followed.models())
        return replace(outcome, path=followed.record(), features=self._features())

    def _features(self) -> AddedFeatures | None:
        if not self._added:
            return None
        seconds = sum(each.seconds for each in self._added)
        return AddedFeatures(columns=max(each.columns for each in self._added), seconds=seconds)

    # ------------------------------------------------------------ both

    def _context(self, k: int, X_train: FloatArray, categorical: BoolArray) -> BuildContext:
        """Return the facts about a fold."""
        return fold_context(
            self._profile,
            X_train,
            self._folds.y[self._train_rows(k)],
            categorical,
            n_threads=self._n_threads(X_train),
            seed=(self._trial.seed + k) % 2**31,
        )

    def _train_rows(self, k: int) -> IntArray:
        return self._folds.train_rows(k, self._trial.fidelity)

    def _n_threads(self, X_train: FloatArray) -> int:
        return min(self._objective.n_threads, max(1, X_train.size // CELLS_PER_THREAD))

    def _training_weight(self, k: int) -> FloatArray | None:
        if not self._algorithm.accepts_weights:
            return None
        rows, weight = self._train_rows(k), self._folds.weight
        return self._metric.training_weight(self._folds.y[rows], None if weight is None else weight[rows])

    def _losses(self, predictions: Sequence[NDArray[np.float32]]) -> list[float]:
        """Return the loss of each of the first folds."""
        y, weight = self._folds.y, self._folds.weight
        validation = [fold.validation for fold in self._folds.folds]
        return [
            float(self._metric.loss(y[rows], predicted, None if weight is None else weight[rows]))
            for rows, predicted in zip(validation, predictions, strict=False)
        ]

    def _is_hopeless(self, losses: list[float]) -> bool:
        return len(losses) < len(self._folds.folds) and bool(np.mean(losses) > self._trial.stop_above)

    def _stopped(self, losses: list[float]) -> Outcome:
        return Outcome(
            status=TrialStatus.STOPPED,
            fold_losses=tuple(losses),
            fit_seconds=self.fit_seconds,
            predict_seconds=self.predict_seconds,
            error=Cause.other(
                f"stopped after {len(losses)} of {len(self._folds.folds)} folds: mean loss {np.mean(losses):.6g}, "
                f"the worst fold of the best trial has {self._trial.stop_above:.6g}"
            ),
        )

    def _mean(self, predictions: Sequence[NDArray[np.float32]]) -> tuple[AnyArray, NDArray[np.float32]]:
        """Return the rows that the first folds predict, ascending, and the mean prediction for each."""
        shape = (len(self._folds.y), self._n_classes) if self._n_classes > 1 else (len(self._folds.y),)
        total = np.zeros(shape, dtype=np.float32)
        counts = np.zeros(len(self._folds.y), dtype=np.int64)
        for fold, predicted in zip(self._folds.folds, predictions, strict=False):
            total[fold.validation] += predicted
            counts[fold.validation] += 1
        rows = np.flatnonzero(counts)
        repeats = counts[rows].astype(np.float32)
        return rows, total[rows] / (repeats[:, None] if self._n_classes > 1 else repeats)

    def _success(self, predictions: Sequence[NDArray[np.float32]], models: list[FoldModel]) -> Outcome:
        losses = self._losses(predictions)
        outcome = Outcome(
            status=TrialStatus.SUCCESS,
            loss=float(np.mean(losses)),
            fold_losses=tuple(losses),
            predictions=self._mean(predictions)[1],
            fit_seconds=self.fit_seconds,
            predict_seconds=self.predict_seconds,
        )
        if self._objective.keep_model:
            model = _serialised(models, self._algorithm.name, self._algorithm.trusted_types)
            outcome = replace(outcome, model=model)
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
        # Numbers come first in every prepared form.
        monotone=profile.monotone + (0,) * (X.shape[1] - len(profile.monotone)) if any(profile.monotone) else (),
        quantile=profile.quantile,
        power=profile.power,
        n_threads=n_threads,
        seed=seed,
    )


def forget_folds() -> None:
    """Close the folds opened by trials in this process; mapped files occupy descriptors and disk space."""
    _open_folds.cache_clear()


@functools.lru_cache(maxsize=2)
def _open_folds(folder: str, changed: int) -> PreparedFolds:
    return PreparedFolds(Path(folder))


_readable: set[tuple[type, ...]] = set()
"""Step types of pipelines whose model files, as this process has checked, contain only trusted types."""


def _serialised(models: list[FoldModel], algorithm: str, trusted: tuple[str, ...]) -> bytes:
    """Serialise the models; a pipeline that could not be loaded again fails in its first trial."""
    from cashmere.model.archives import dump_fold_models
    from cashmere.model.audit import audit

    data = dump_fold_models(models)
    steps = tuple(type(step) for _, step in models[0].pipeline.steps)
    if steps not in _readable:
        audit(data, algorithm, trusted=trusted)
        _readable.add(steps)
    return data


def _fold_task(task_type: TaskType, y_train: np.ndarray) -> TaskType:
    """Return the task type of a fold: binary if its training rows have only two of several classes."""
    if task_type is TaskType.MULTICLASS and len(np.unique(y_train)) <= 2:
        return TaskType.BINARY
    return task_type
