"""A learner fitted on the training rows of one fold, and how it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import FloatArray, IntArray
from cashmere.data.task import Encoding
from cashmere.exceptions import MetricError
from cashmere.model.log_targets import learned_logarithms, values_of
from cashmere.space.component import Resample


@dataclass(slots=True, kw_only=True)
class FoldModel:
    """One fitted pipeline of a configuration.

    Attributes
    ----------
    pipeline : scikit-learn Pipeline
        Operators and learner; classifiers are fitted on the codes 0 .. len(classes) - 1.
    encoding : Encoding
        The prepared form of the table the pipeline reads.
    classes : (n_present,) int array or None
        The task's class codes present in the fold's training rows; None for regression.
    n_classes : int
        Classes of the task; 1 for regression.
    log_limit : float or None
        The largest logarithm it predicts, if the pipeline has learned log(1 + target); None if it has learned targets
        themselves. See `cashmere.model.log_targets`.
    """

    pipeline: Any
    encoding: Encoding
    classes: IntArray | None
    n_classes: int
    log_limit: float | None = None

    def predict(self, X: FloatArray) -> NDArray[np.float32]:
        """Predict prepared rows.

        Parameters
        ----------
        X : (n_rows, n_features) float32 array
            In the encoding of the model.

        Returns
        -------
        array, float32
            Class probabilities ``(n_rows, n_classes)`` or values ``(n_rows,)``. A learner without probabilities
            gives 1 to the class it predicts (Shen et al., 2022, section 3.3). A class absent from the training rows
            has probability 0.
        """
        if self.classes is None:
            values = self.pipeline.predict(X)
            values = values if self.log_limit is None else values_of(values, self.log_limit)
            return np.asarray(values, dtype=np.float32).reshape(len(X))
        if len(self.classes) == 1:
            local = np.ones((len(X), 1), dtype=np.float32)
        elif self.has_probabilities:
            local = np.asarray(self.pipeline.predict_proba(X), dtype=np.float32)
        else:
            codes = np.asarray(self.pipeline.predict(X)).astype(np.int64)
            local = np.eye(len(self.classes), dtype=np.float32)[codes]
        return for_all_classes(local, self.classes, self.n_classes)

    @property
    def has_probabilities(self) -> bool:
        """Whether the learner offers ``predict_proba``."""
        return hasattr(self.pipeline, "predict_proba")


def for_all_classes(local: NDArray[np.float32], classes: IntArray, n_classes: int) -> NDArray[np.float32]:
    """Return probabilities of all classes of the task; those of classes that were not learned are 0.

    Parameters
    ----------
    local : (n_rows, n_present) array
        Probabilities of the classes learned.
    classes : (n_present,) int array
        Their codes, ascending.
    n_classes : int
        Classes of the task.
    """
    if len(classes) == n_classes:
        return local
    probabilities = np.zeros((len(local), n_classes), dtype=np.float32)
    probabilities[:, classes] = local
    return probabilities


def fit_fold_model(
    pipeline: Any,
    encoding: Encoding,
    X: FloatArray,
    y: FloatArray | IntArray,
    *,
    n_classes: int,
    weight: FloatArray | None = None,
    resample: Resample | None = None,
    needs_probabilities: bool = False,
    learns_logarithms: bool = False,
    algorithm: str = "learner",
) -> FoldModel:
    """Fit an unfitted pipeline on the prepared training rows of a fold.

    Parameters
    ----------
    pipeline : scikit-learn Pipeline
        Its last step is the learner.
    encoding : Encoding
        Encoding of `X`.
    X : (n_rows, n_features) array
        Prepared rows.
    y : (n_rows,) array
        Class codes or values.
    n_classes : int
        Classes of the task; 1 for regression.
    weight : (n_rows,) array, optional
        Row weights; passed to the learner only.
    resample : callable, optional
        Changes the rows for the learner, see `rows_for_learner`; cannot be combined with weights. It is not part of
        the model, and not called when the rows have a single class.
    needs_probabilities : bool
        Refuse a classifier without ``predict_proba``.
    learns_logarithms : bool
        Fit on log(1 + y), in regression.
    algorithm : str
        Its name, for the error message.

    Raises
    ------
    MetricError
        If probabilities are needed and the learner has none.
    """
    classes: IntArray | None = None
    if n_classes > 1:
        classes, y = np.unique(np.asarray(y, dtype=np.int64), return_inverse=True)
    log_limit: float | None = None
    if learns_logarithms:
        y, log_limit = learned_logarithms(y)
    if classes is None and (constant := constant_pipeline(X, y)) is not None:
        pipeline, weight = constant, None
    model = FoldModel(pipeline=pipeline, encoding=encoding, classes=classes, n_classes=n_classes, log_limit=log_limit)
    if classes is None or len(classes) > 1:
        if resample is not None:
            X, y = rows_for_learner(pipeline, X, np.asarray(y, dtype=np.int64), resample)
            pipeline[-1].fit(X, y)
        else:
            parameters = {} if weight is None else {f"{pipeline.steps[-1][0]}__sample_weight": weight}
            pipeline.fit(X, y, **parameters)
        if needs_probabilities and classes is not None and not model.has_probabilities:
            raise MetricError(
                f"The metric is computed from probabilities, but {algorithm!r} has no predict_proba. Use a metric on "
                "labels (accuracy, balanced_accuracy, f1, f1_macro, f1_weighted, g_mean, mcc), or wrap the learner in "
                "CalibratedClassifierCV."
            )
    return model


def constant_pipeline(X: FloatArray, y: FloatArray | IntArray) -> Any:
    """Return a pipeline fitted on values that are all the same, which boosters refuse to learn; None if they differ."""
    if (y != y[0]).any():
        return None
    from sklearn.dummy import DummyRegressor
    from sklearn.pipeline import Pipeline

    learner = DummyRegressor(strategy="median")  # a mean would round
    return Pipeline([("learner", learner.fit(X[:1], y[:1]))])


def rows_for_learner(pipeline: Any, X: FloatArray, y: IntArray, resample: Resample) -> tuple[FloatArray, IntArray]:
    """Fit the steps before the learner on the unchanged training rows, then resample their output.

    Parameters
    ----------
    pipeline : scikit-learn Pipeline
        All steps but the last are fitted in place.
    X : (n_rows, n_features) array
        Prepared training rows.
    y : (n_rows,) int array
        Classes 0 .. n_present - 1.
    resample : callable
        From `Space.build_resampling`.

    Returns
    -------
    X, y : (n_resampled, n_columns) and (n_resampled,) arrays
        Rows and classes to fit the learner on.
    """
    for _, step in pipeline.steps[:-1]:
        X = step.fit_transform(X, y)
    return resample(X, y)
