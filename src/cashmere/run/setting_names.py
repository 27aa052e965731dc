"""Check the names among the settings of a run before its table is read, which may take minutes."""

from __future__ import annotations

import contextlib

from cashmere.data.resampling import check_name
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import MetricError, UnknownNameError
from cashmere.run.settings import RunSettings
from cashmere.space.named.registry import SPACES
from cashmere.strategies.making import check_strategy


def check_names(settings: RunSettings) -> None:
    """Raise an error if there is no strategy, metric, space or resampling of a name that is given.

    Whether they fit the task is only known with the target.

    Raises
    ------
    UnknownNameError, InvalidParameterError
        For the first such name.
    """
    if isinstance(settings.strategy, str):
        check_strategy(settings.strategy)
    if isinstance(settings.metric, str):
        with contextlib.suppress(MetricError):  # for another task
            get_metric(settings.metric, TaskType.BINARY)
    if isinstance(settings.space, str) and settings.space not in SPACES:
        raise UnknownNameError("space", settings.space, SPACES)
    if isinstance(settings.resampling, str):
        check_name(settings.resampling)
