from __future__ import annotations

import pytest
from fake_runs import make_run

from cashmere.report import summarise_run


@pytest.mark.parametrize(
    ("goal", "shown"),
    [
        ({"trials": None, "seconds": 300.0}, "5m"),
        ({"trials": None, "seconds": 619.4}, "5m at first, 10 min 19 s in total"),
        ({"trials": 1250, "seconds": 600.0}, "5m at first, 10 min and 1,250 trials in total"),
        ({"trials": "<b>", "seconds": float("inf")}, "5m"),
        (None, "5m"),
    ],
)
def test_budget_is_what_all_calls_were_allowed(tmp_path, goal, shown):
    run = make_run(tmp_path / "run", n_trials=1, facts={"goal": goal})
    assert summarise_run(run)["budget"] == shown
