"""Follow a learner along a path on the training rows of one fold."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from cashmere.base.arrays import AnyArray, BoolArray, FloatArray, IntArray
from cashmere.data.task import Encoding
from cashmere.model.fold_model import FoldModel, constant_pipeline, for_all_classes
from cashmere.model.log_targets import learned_logarithms, values_of
from cashmere.records.added_features import AddedFeatures
from cashmere.space.component import Resample
from cashmere.space.path import FittedPath, PathData, PathParameter


class FoldPath:
    """Follow the learner of a pipeline, whose other steps are fitted once at the beginning.

    Parameters
    ----------
    pipeline : scikit-learn Pipeline
        Unfitted; its last step is the learner.
    path : PathParameter
        The path to follow.
    encoding : Encoding
        Encoding of the rows.
    X : (n_rows, n_features) array
        Prepared training rows.
    y : (n_rows,) array
        Class codes or values.
    unseen : (n_unseen, n_features) array
        Prepared validation rows.
    categorical : (n_features,) bool array
        Columns of category codes.
    n_classes : int
        Classes of the task; 1 for regression.
    weight : (n_rows,) array, optional
        Row weights; passed to the learner only.
    resample : callable, optional
        Changes the rows for the learner; cannot be combined with weights.
    n_threads : int
        Threads the learner may use.
    learns_logarithms : bool
        Fit on log(1 + y), in regression.

    Attributes
    ----------
    added : AddedFeatures or None
        Columns that the other steps have added to the table.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        path: PathParameter,
        encoding: Encoding,
        X: FloatArray,
        y: AnyArray,
        unseen: FloatArray,
        categorical: BoolArray,
        *,
        n_classes: int,
        weight: FloatArray | None = None,
        resample: Resample | None = None,
        n_threads: int = 1,
        learns_logarithms: bool = False,
    ) -> None:
        self._pipeline, self._encoding, self._n_classes = pipeline, encoding, n_classes
        self._n_unseen = len(unseen)
        self._classes: IntArray | None = None
        if n_classes > 1:
            self._classes, y = np.unique(np.asarray(y, dtype=np.int64), return_inverse=True)
        self._log_limit: float | None = None
        if learns_logarithms:
            y, self._log_limit = learned_logarithms(y)
        self._path: FittedPath | None = None
        self.added: AddedFeatures | None = None
        self._constant = constant_pipeline(X, y) if self._classes is None else None
        if self._constant is not None or (self._classes is not None and len(self._classes) == 1):  # nothing to learn
            return
        clock, n_columns = time.perf_counter(), X.shape[1]
        for _, step in pipeline.steps[:-1]:
            X, unseen = step.fit_transform(X, y), step.transform(unseen)
        if X.shape[1] > n_columns:
            self.added = AddedFeatures(columns=X.shape[1] - n_columns, seconds=time.perf_counter() - clock)
        if resample is not None:
            X, y = resample(X, np.asarray(y, dtype=np.int64))
        data = PathData(
            X=X,
            y=y,
            weight=weight,
            unseen=unseen,
            n_classes=1 if self._classes is None else len(self._classes),
            categorical=categorical if len(pipeline.steps) == 1 else np.zeros(X.shape[1], dtype=bool),
            n_threads=n_threads,
        )
        self._path = path.follow(pipeline[-1], data)

    def advance(self, position: float) -> None:
        """Continue the fit up to a position."""
        if self._path is not None:
            self._path.advance(position)

    def predict(self) -> NDArray[np.float32]:
        """Predict the unseen rows, as `FoldModel.predict` does with the model fitted so far."""
        predicted: AnyArray
        if self._constant is not None:
            predicted = self._constant.predict(np.empty((self._n_unseen, 0)))
        else:
            predicted = np.ones((self._n_unseen, 1)) if self._path is None else self._path.predict()
        if self._log_limit is not None:
            predicted = values_of(predicted, self._log_limit)
        local = np.asarray(predicted, dtype=np.float32)
        if self._classes is None:
            return local.reshape(self._n_unseen)
        return for_all_classes(local, self._classes, self._n_classes)

    def model_at(self, position: float) -> FoldModel:
        """Return the model at a position that has been reached."""
        pipeline = self._pipeline if self._constant is None else self._constant
        *before, (name, learner) = pipeline.steps
        if self._path is not None:
            learner = self._path.learner_at(position)
        return FoldModel(
            pipeline=Pipeline([*before, (name, learner)]),
            encoding=self._encoding,
            classes=self._classes,
            n_classes=self._n_classes,
            log_limit=self._log_limit,
        )
