"""Losses of the best trial and of the constant predictor on the rows of the ensemble, all folds joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cashmere.base.arrays import IntArray
from cashmere.ensembles.pool import ValidationPool
from cashmere.evaluation.metrics import Metric
from cashmere.exceptions import MetricError
from cashmere.model.fold_model import FoldModel
from cashmere.records.trial import Observation
from cashmere.storage.facts import JoinedLossesFact


def joined_losses(
    best: Observation | None,
    baseline: Sequence[FoldModel],
    *,
    pool: ValidationPool,
    metric: Metric,
    cross_fitted_rows: IntArray | None,
) -> JoinedLossesFact | None:
    """Return losses that can be compared with those of the ensemble.

    The loss of a trial is the mean of its fold losses. For metrics such as RMSE that is less than the loss of all rows,
    and by far where folds differ, as they do in time. There the cross-fitted loss is of newer rows only, too.

    Parameters
    ----------
    best : Observation or None
        The best trial.
    baseline : sequence of FoldModel
        The constant predictor of each fold.
    pool : ValidationPool
        The rows of the ensemble.
    metric : Metric
        Computes the losses.
    cross_fitted_rows : int array or None
        Rows of the pool that the cross-fitted loss is of; None for all.

    Returns
    -------
    JoinedLossesFact or None
        None if the losses of trials are of the same kind (a single fold, or a metric that is a mean over rows) and all
        rows are cross-fitted; if there is no trial, or rows validate several folds.
    """
    judges_all = cross_fitted_rows is None or len(cross_fitted_rows) == len(pool.y)
    if judges_all and (metric.is_mean or len(baseline) == 1):
        return None
    if best is None or best.predictions is None or pool.fold is None:
        return None
    nothing = np.zeros((1, 1), dtype=np.float32)  # the columns are ignored
    constant = np.concatenate([model.predict(nothing) for model in baseline])[pool.fold]
    rows = slice(None) if cross_fitted_rows is None else cross_fitted_rows
    weight = pool.weight
    try:
        return JoinedLossesFact(
            trial=best.trial.number,
            single=metric.loss(pool.y, pool.take(best.predictions), weight),
            constant=metric.loss(pool.y, constant, weight),
            constant_cross_fitted=metric.loss(pool.y[rows], constant[rows], None if weight is None else weight[rows]),
        )
    except MetricError:  # a custom metric may not be defined for a constant
        return None
