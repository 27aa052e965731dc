"""The constant predictor: evaluated before any trial, so that a model always exists."""

from __future__ import annotations

import contextlib

import numpy as np

from cashmere.base.arrays import AnyArray
from cashmere.data.prepared import PreparedFolds
from cashmere.data.task import Encoding
from cashmere.evaluation.metrics import Metric, is_built_in
from cashmere.exceptions import MetricError
from cashmere.model.fold_model import FoldModel, fit_fold_model


def fit_baseline(folds: PreparedFolds, encoding: Encoding, metric: Metric) -> tuple[list[FoldModel], float]:
    """Fit and evaluate the constant predictor on every fold.

    It predicts the class shares of the training rows, their mean, for an error of logarithms the value of their mean
    logarithm, for an absolute error or a pinball loss their quantile, or for a percentage error their median with the
    weights 1/|y|.

    Parameters
    ----------
    folds : PreparedFolds
        The folds of the run.
    encoding : Encoding
        Any prepared form: the columns are ignored.
    metric : Metric
        Computes the loss.

    Returns
    -------
    models : list of FoldModel
        One per fold.
    loss : float
        Mean of the fold losses; NaN if a custom metric is not defined for a constant, as a correlation is not.

    Raises
    ------
    MetricError
        If the metric cannot be computed, and is a built-in one or not defined for the targets themselves either.
    """
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.pipeline import Pipeline

    models, losses = [], []
    for k, fold in enumerate(folds.folds):
        X_valid = folds.load(k, encoding, folds.rungs[0])[1]
        nothing = np.broadcast_to(np.float32(0), (len(fold.train), X_valid.shape[1]))  # takes no memory
        y, weight = folds.y[fold.train], None if folds.weight is None else folds.weight[fold.train]
        if metric.name == "mape":  # the best of all constants, not only weights that learners can bear
            weight = (1.0 if weight is None else weight) / np.maximum(np.abs(y), np.finfo(np.float64).eps)
        if folds.task_type.is_classification:
            constant = DummyClassifier(strategy="prior")
        elif metric.level is not None:
            constant = DummyRegressor(strategy="quantile", quantile=metric.level)
        else:
            constant = DummyRegressor(strategy="mean")
        model = fit_fold_model(
            Pipeline([("learner", constant)]),
            encoding,
            nothing,
            y,
            n_classes=folds.n_classes,
            weight=weight,
            learns_logarithms=metric.learns_logarithms,
        )
        models.append(model)
        fold_weight = None if folds.weight is None else folds.weight[fold.validation]
        losses.append(_loss(metric, folds.y[fold.validation], model.predict(X_valid), fold_weight))
    return models, float(np.mean(losses))


def _loss(metric: Metric, y: AnyArray, constant: AnyArray, weight: AnyArray | None) -> float:
    """Return the loss of a constant; NaN if it has none, but perfect predictions have: then trials may have one."""
    try:
        return metric.loss(y, constant, weight)
    except MetricError:
        if is_built_in(metric):
            raise
        perfect = y if constant.ndim == 1 else np.eye(constant.shape[1])[y]
        with contextlib.suppress(MetricError):
            metric.loss(y, perfect, weight)
            return float("nan")
        raise
