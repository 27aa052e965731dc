"""How the state of a search is shown."""

from __future__ import annotations

import io

import pytest

from cashmere.records.budget import Budget, Deadline
from cashmere.run.progress import PlainLines, Status, searching


def test_lines_show_the_time_left_only_if_it_is_known():
    stream = io.StringIO()
    lines = PlainLines(stream)
    status = Status(trials=3, best_score=0.5, ensemble_score=0.4, metric="rmse", seconds_left=75.0)
    for each in (Status(phase="preparing", metric="rmse"), status, status.finishing()):
        lines.update(each)
    assert stream.getvalue().splitlines() == [
        "preparing: no finished trials",
        "searching: 3 trials, 0 failed, best single 0.5, ensemble 0.4 (rmse), 1:15 left",
        "finishing: 3 trials, 0 failed, best single 0.5, ensemble 0.4 (rmse)",
    ]


def test_time_left_is_estimated_from_the_trials_of_this_call():
    deadline = Deadline(None, already_spent=10.0)
    scores = {"best_score": None, "ensemble_score": None, "metric": "rmse"}
    status = searching(Budget(trials=100), deadline, trials=55, n_before=50, failures=0, **scores)
    assert status.fraction == 0.55
    assert status.seconds_left == pytest.approx(90, rel=0.1)  # 45 trials at 2 s each
    before = searching(Budget(trials=100), deadline, trials=50, n_before=50, failures=0, **scores)
    assert before.seconds_left is None  # no trial of this call tells the pace
    limited = searching(Budget(trials=100, seconds=60), Deadline(60.0), trials=0, failures=0, **scores)
    assert limited.seconds_left == pytest.approx(60, abs=1)
