from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition
from synthetic_recording import make_recording

from benchmarks.experiments.costs.calibration import calibration, make_table
from benchmarks.experiments.costs.relative_costs import relative_costs, relative_costs_of_choices
from benchmarks.experiments.costs.timed_candidates import TimedCandidates
from benchmarks.recordings.recorded_history import RECORDED, load_recorded
from cashmere.costs.relative import log_relative_costs


def test_relative_costs_average_to_one():
    costs = relative_costs([make_recording()])
    assert costs.logs.keys() == {"near", "far"} and not costs.exponents
    assert sum(costs.logs.values()) == pytest.approx(0.0)


@pytest.mark.long
def test_table_of_the_package_matches_the_recordings():
    made = relative_costs([load_recorded(path) for path in sorted(RECORDED.glob("*.zip"))])
    assert made.logs == pytest.approx(dict(log_relative_costs("classic")), abs=2e-3)


def test_costs_of_choices_are_separated_from_those_of_tables_and_algorithms():
    space = ConfigurationSpace({"algorithm": ["knn", "svm"]})
    space.add(scaling := Categorical("svm:scaling", ["standard", "quantile"], default="standard"))
    space.add(EqualsCondition(scaling, space["algorithm"], "svm"))
    configurations = (
        Configuration(space, {"algorithm": "knn"}),
        Configuration(space, {"algorithm": "svm", "svm:scaling": "standard"}),
        Configuration(space, {"algorithm": "svm", "svm:scaling": "quantile"}),
    )
    tables = [
        TimedCandidates(
            name=str(scale),
            origin=str(scale),
            n_classes=1,
            configurations=configurations,
            seconds=scale * np.array([1.0, 4.0, 8.0]),
        )
        for scale in (10.0, 30.0, 90.0) * 10
    ]
    costs = relative_costs_of_choices(tables).logs
    assert costs.keys() == {"knn", "svm", "svm:scaling=quantile"}
    assert costs["svm"] - costs["knn"] == pytest.approx(np.log(4), abs=0.1)
    assert 0.8 * np.log(2) < costs["svm:scaling=quantile"] < np.log(2)  # shrunk a little
    assert costs["svm"] + costs["knn"] == pytest.approx(0.0)
    assert relative_costs_of_choices(tables, with_choices=False).logs.keys() == {"knn", "svm"}


def test_growth_with_classes_is_separated_from_the_size_of_tables():
    space = ConfigurationSpace({"algorithm": ["knn", "booster"]})
    configurations = tuple(Configuration(space, {"algorithm": name}) for name in ("knn", "booster"))
    tables = [
        TimedCandidates(
            name=f"{scale} {n_classes}",
            origin="one",
            n_classes=n_classes,
            configurations=configurations,
            seconds=scale * n_classes * np.array([1.0, 2.0 * (n_classes if n_classes > 2 else 1)]),
        )
        for scale in (10.0, 30.0)
        for n_classes in (1, 2, 4, 10, 30)
    ]
    costs = relative_costs_of_choices(tables)
    assert costs.logs["booster"] - costs.logs["knn"] == pytest.approx(np.log(2), abs=0.1)
    assert costs.exponents["booster"] - costs.exponents["knn"] == pytest.approx(1.0, abs=0.1)
    many = costs.with_classes(100)
    assert many["booster"] - many["knn"] == pytest.approx(np.log(200), abs=0.5)
    assert costs.with_classes(2) == costs.with_classes(1) == costs.logs
    assert not relative_costs_of_choices(tables, with_classes=False).exponents


def test_more_trials_predict_better():
    history = load_recorded(RECORDED / "phoneme-classic.zip")
    rows = [row for seed in range(3) for row in calibration(history, {}, seed=seed, counts=(5, 200))]
    error = pd.DataFrame(rows).groupby("trials")["error"].mean()
    assert error[200] < 0.6 * error[5]
    table = make_table(pd.DataFrame(rows).assign(prior="none"))
    assert [row[0] for row in table.rows] == ["5", "200"]
