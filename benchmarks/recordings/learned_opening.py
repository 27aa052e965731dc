"""What a replay begins with, learned from recordings of other tables.

Tables of one space and kind of target share a catalogue: it is known what each of its configurations did on the others.
The order in which they lower the loss of the ensemble fastest there, per trial, is the opening of the table left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from ConfigSpace import Configuration

from benchmarks.recordings.recorded_history import RECORDED, RECORDED_LARGE, RecordedHistory, load_recorded
from cashmere.evaluation.metrics import get_metric
from cashmere.pretraining.opening_choice import OpeningSource, choose_opening
from cashmere.records.trial import configuration_key

MOST_STEPS = 20
"""About two for each algorithm."""


def kept_recordings() -> list[Path]:
    """Return the recordings that come with the repository."""
    return sorted([*RECORDED.glob("*.zip"), *RECORDED_LARGE.glob("*.zip")])


def learn_opening(
    target: RecordedHistory, others: Sequence[RecordedHistory], metric: str, *, most_steps: int = MOST_STEPS
) -> list[Configuration]:
    """Return what a replay of a recording begins with.

    Parameters
    ----------
    target : RecordedHistory
        The table left out; only its configurations are used.
    others : sequence of RecordedHistory
        Those of the same table, of another kind of target, or without half of its configurations are left out. Of
        several of one table, the one with the most of its configurations counts.
    metric : str
        Name of the loss.
    most_steps : int
        Largest number of configurations.

    Returns
    -------
    list of Configuration
        In order; empty if no other table knows these configurations.
    """
    keys = [configuration_key(configuration) for configuration in target.configurations]
    sources: dict[str, OpeningSource] = {}
    for other in others:
        if (
            other.dataset != target.dataset
            and other.task_type.is_classification == target.task_type.is_classification
            and (source := _source(other, keys, metric)) is not None
        ):
            known = sources.get(other.dataset)
            if known is None or len(source.seconds) > len(known.seconds):
                sources[other.dataset] = source
    chosen = choose_opening(list(sources.values()), range(len(keys)), most_steps=most_steps) if sources else []
    return [target.configurations[step.candidate] for step in chosen]


def load_opening(target: RecordedHistory, metric: str) -> list[Configuration]:
    """Return the opening of a recording from those that come with the repository."""
    others = [load_recorded(path) for path in kept_recordings() if path.stem.rpartition("-")[0] != target.dataset]
    return learn_opening(target, others, metric)


def _source(history: RecordedHistory, keys: Sequence[str], metric: str) -> OpeningSource | None:
    """Return what a table knows of configurations, None if it lacks more than half of them."""
    position_of = {configuration_key(configuration): i for i, configuration in enumerate(history.configurations)}
    there = {number: position_of[key] for number, key in enumerate(keys) if key in position_of}
    if 2 * len(there) < len(keys):
        return None
    succeeded = set(history.succeeded.tolist())
    return OpeningSource(
        name=history.name,
        origin=history.dataset,
        y=np.concatenate([history.y_validation, history.y_test]),
        metric=get_metric(metric, history.task_type),
        predictions={
            number: np.concatenate([history.validation[i], history.test[i]])
            for number, i in there.items()
            if i in succeeded
        },
        seconds=dict.fromkeys(there, 1.0),  # the budget is a number of trials
        same_as={number: number for number in there},
    )
