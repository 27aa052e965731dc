from __future__ import annotations

import pandas as pd
import pytest
from synthetic_recording import make_recording

from benchmarks.experiments.costs.calibration import calibration, make_table
from benchmarks.experiments.costs.relative_costs import relative_costs
from benchmarks.recordings.recorded_history import RECORDED, load_recorded
from cashmere.costs.relative import log_relative_costs


def test_relative_costs_average_to_one():
    costs = relative_costs([make_recording()])
    assert costs.keys() == {"near", "far"}
    assert sum(costs.values()) == pytest.approx(0.0)


def test_the_table_of_the_package_is_that_of_the_recordings():
    made = relative_costs([load_recorded(path) for path in sorted(RECORDED.glob("*.zip"))])
    assert made == pytest.approx(dict(log_relative_costs()), abs=2e-3)


def test_more_trials_predict_better():
    history = load_recorded(RECORDED / "phoneme-classic.zip")
    rows = [row for seed in range(3) for row in calibration(history, {}, seed=seed, counts=(5, 200))]
    error = pd.DataFrame(rows).groupby("trials")["error"].mean()
    assert error[200] < 0.6 * error[5]
    table = make_table(pd.DataFrame(rows).assign(prior="none"))
    assert [row[0] for row in table.rows] == ["5", "200"]
