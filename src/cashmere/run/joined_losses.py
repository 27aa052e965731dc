"""Losses of the best trial and of the constant predictor on the rows of the ensemble, all folds joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cashmere.exceptions import MetricError
from cashmere.model.fold_model import FoldModel
from cashmere.records.trial import Observation
from cashmere.run.ensemble_builder import EnsembleBuilder
from cashmere.storage.facts import JoinedLossesFact


def joined_losses(
    best: Observation | None, baseline: Sequence[FoldModel], builder: EnsembleBuilder
) -> JoinedLossesFact | None:
    """Return losses that can be compared with those of the ensemble.

    The loss of a trial is the mean of its fold losses. For metrics such as RMSE, that is less than the loss of all
    rows, and by far if folds differ, as they do in time. There, the cross-fitted loss is of newer rows only, too. And a
    trial is scored without the decision thresholds that it would get as an ensemble of one; here, it has them.

    Parameters
    ----------
    best : Observation or None
        The best trial.
    baseline : sequence of FoldModel
        The constant predictor of each fold.
    builder : EnsembleBuilder
        Provides the rows of the ensemble, the metric, and the rows of the cross-fitted loss.

    Returns
    -------
    JoinedLossesFact or None
        None if the losses of trials can be compared as they are (there is a single fold, or the metric is a mean over
        rows, and all rows are cross-fitted), if there is no trial, or if rows validate several folds.
    """
    pool, metric, cross_fitted_rows = builder.pool, builder.metric, builder.cross_fitted_rows
    judges_all = cross_fitted_rows is None or len(cross_fitted_rows) == len(pool.y)
    if judges_all and (metric.is_mean or len(baseline) == 1):
        return None
    if best is None or best.predictions is None or pool.fold is None:
        return None
    nothing = np.zeros((1, 1), dtype=np.float32)  # the columns are ignored
    constants = np.concatenate([model.predict(nothing) for model in baseline])
    if metric.needs == "probabilities" and not metric.is_mean:  # else ranks would tell the folds apart
        constants[:] = constants.mean(axis=0)
    constant = constants[pool.fold]
    rows = slice(None) if cross_fitted_rows is None else cross_fitted_rows
    weight = pool.weight
    try:
        return JoinedLossesFact(
            trial=best.trial.number,
            single=builder.loss_alone(best.predictions),
            constant=metric.loss(pool.y, constant, weight),
            constant_cross_fitted=metric.loss(pool.y[rows], constant[rows], None if weight is None else weight[rows]),
        )
    except MetricError:  # a custom metric may not be defined for a constant
        return None
