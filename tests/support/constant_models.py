"""Histories whose ensembles can be computed by hand."""

from __future__ import annotations

import numpy as np

from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.records.trial import History, Observation, Outcome, Trial, TrialStatus


def constant_models(predictions, configurations) -> History:
    """Return a history under the mean squared error, targets 0, of models that predict one value; None: failed."""
    return History(
        observations=tuple(
            Observation(
                trial=Trial(number=i, configuration=configuration, seed=0), outcome=Outcome(status=TrialStatus.ERROR)
            )
            if value is None
            else Observation(
                trial=Trial(number=i, configuration=configuration, seed=0),
                outcome=Outcome(
                    status=TrialStatus.SUCCESS, loss=float(value) ** 2, predictions=np.full(2, value, dtype=np.float32)
                ),
            )
            for i, (value, configuration) in enumerate(zip(predictions, configurations, strict=True))
        ),
        metric=get_metric("mse", TaskType.REGRESSION),
        targets=np.zeros(2),
    )
