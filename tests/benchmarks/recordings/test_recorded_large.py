"""The larger recordings of the repository are as documented."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.recordings.record import SEARCHES
from benchmarks.recordings.recorded_history import RECORDED_LARGE, load_recorded
from cashmere.records.trial import TrialStatus

CUT_SHORT = {"eeg": 890, "pol": 1020, "satimage": 600}
"""Least number of configurations where searches were cut short, as the README of the recordings says."""


PATHS = sorted(RECORDED_LARGE.glob("*.zip"))


@pytest.mark.long
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow if i % 6 else (), id=path.stem) for i, path in enumerate(PATHS)],
)
def test_few_failures_by_limits_and_no_row_that_a_learner_has_seen(path):
    history = load_recorded(path)
    assert f"{history.dataset}-{history.space_name}" == path.stem
    assert len(history) >= CUT_SHORT.get(history.dataset, 1100)
    assert {name.partition("-")[0] for name in history.searches} == {"random", *SEARCHES}
    assert len(_failed_by_limits(history)) < 0.05 * len(history) and len(history.succeeded) > 0.9 * len(history)
    assert not set(history.unseen_rows) & set(history.training_rows)
    assert (
        len(history.unseen_rows)
        == len(np.unique(history.unseen_rows))
        == history.validation.shape[1] + len(history.y_test)
    )
    assert len(history.training_rows) <= 2000 and len(history.y_validation) <= 2000 and len(history.y_test) <= 10_000


def _failed_by_limits(history):
    """Return the failures but those by errors of learners: a matrix that cannot be inverted is part of the space."""
    failed = [i for i, status in enumerate(history.statuses) if status is not TrialStatus.SUCCESS]
    if not history.causes:
        return failed
    return [i for i in failed if history.statuses[i] is not TrialStatus.ERROR or "the limits are" in history.causes[i]]
