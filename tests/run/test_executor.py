from __future__ import annotations

import pytest

from cashmere.execution.in_process import InProcessExecutor
from cashmere.records.budget import Budget
from cashmere.run import RunSettings
from cashmere.run.executor import make_executor, trial_limits


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [
        (Budget(trials=5), 600.0),
        (Budget(seconds=30.0), 10.0),
        (Budget(seconds=600.0), 150.0),
        (Budget(seconds=1e6), 600.0),
    ],
)
def test_trial_gets_a_share_of_a_time_budget(budget, seconds):
    assert trial_limits(RunSettings(n_workers=1), budget).seconds == seconds


def test_limits_that_are_asked_for_are_kept():
    limits = trial_limits(RunSettings(trial_seconds=5.0, memory_mib=64.0), Budget(seconds=1e6))
    assert (limits.seconds, limits.memory_mib) == (5.0, 64.0)


def test_free_memory_is_shared_by_the_workers():
    one, four = (trial_limits(RunSettings(n_workers=n), Budget(trials=1)).memory_mib for n in (1, 4))
    assert 2 < one / four < 8  # what is free changes while this runs


def test_trials_stay_in_this_process_without_isolation(tmp_path):
    executor = make_executor(RunSettings(isolation="none"), Budget(trials=1), log_folder=tmp_path)
    assert isinstance(executor, InProcessExecutor)
