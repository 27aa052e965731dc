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


def test_seconds_grow_with_the_rows_up_to_half_of_the_budget():
    rungs = (1 / 81, 1 / 27, 1 / 9, 1 / 3, 1.0)
    limits = trial_limits(RunSettings(n_workers=1), Budget(seconds=60.0), rungs)
    assert [limits.seconds_by_share[share] for share in rungs] == pytest.approx([2.5, 7.5, 22.5, 30.0, 30.0])
    limits = trial_limits(RunSettings(n_workers=1, trial_seconds=5.0), Budget(seconds=60.0), rungs)
    assert [limits.seconds_by_share[share] for share in rungs] == pytest.approx([2.5, 5.0, 5.0, 5.0, 5.0])


def test_short_budgets_leave_the_lowest_rung_time_to_import_libraries():
    limits = trial_limits(RunSettings(n_workers=1), Budget(seconds=12.0), (1 / 9, 1 / 3, 1.0))
    assert list(limits.seconds_by_share.values()) == pytest.approx([2.5, 7.5, 10.0])


def test_a_number_of_trials_has_no_rungs():
    assert not trial_limits(RunSettings(n_workers=1), Budget(trials=5), (1 / 3, 1.0)).seconds_by_share


def test_given_limits_are_kept():
    limits = trial_limits(RunSettings(trial_seconds=5.0, memory_mib=64.0), Budget(seconds=1e6))
    assert (limits.seconds, limits.memory_mib) == (5.0, 64.0)


def test_free_memory_is_shared_by_the_workers():
    one, four = (trial_limits(RunSettings(n_workers=n), Budget(trials=1)).memory_mib for n in (1, 4))
    assert 2 < one / four < 8  # what is free changes while this runs


def test_trials_stay_in_this_process_without_isolation(tmp_path):
    executor = make_executor(RunSettings(isolation="none"), Budget(trials=1), log_folder=tmp_path)
    assert isinstance(executor, InProcessExecutor)
