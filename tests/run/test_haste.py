"""Haste: first configurations with faster paths where a budget is short for a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.data.task import TaskProfile, TaskType
from cashmere.records.budget import Budget
from cashmere.run.haste import haste
from cashmere.run.run_directory import RunDirectory
from cashmere.run.settings import RunSettings
from cashmere.space import make_space

PACED = {"lightgbm": 0.05, "xgboost": 0.05, "catboost": 0.08, "hist_gradient_boosting": 0.06}


def made_run(folder, n_rows, **settings):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 5)), columns=list("abcde"))
    return RunDirectory.create(folder, X, pd.Series(rng.integers(2, size=n_rows)), RunSettings(**settings))


def rates(configurations):
    """Return the learning rate of the first configuration of each booster."""
    found = {}
    for each in configurations:
        if each["algorithm"] in PACED:
            found.setdefault(each["algorithm"], each[f"{each['algorithm']}:learning_rate"])
    return found


@given(n_cells=st.integers(0, 10**12), seconds=st.floats(1e-3, 1e6), more=st.floats(1, 100))
def test_haste_grows_with_cells_and_falls_with_seconds(n_cells, seconds, more):
    usual = haste(n_cells, seconds)
    assert 1.0 <= haste(n_cells, seconds * more) <= usual <= haste(round(n_cells * more), seconds) <= 3.0


def test_no_haste_without_a_time():
    assert haste(10**12, None) == 1.0


@pytest.mark.parametrize(("seconds", "factor"), [(60, 1.0), (0.25, 2.0), (0.1, 3.0)])
def test_a_short_budget_begins_with_faster_boosters(tmp_path, seconds, factor):
    with made_run(tmp_path / "run", 1000, budget=Budget(seconds=seconds)) as run:  # 10,000 cells
        gains = run.first_configurations(in_time=True)
        assert rates(gains) == pytest.approx({name: rate * factor for name, rate in PACED.items()})
        # A third of the seconds, three times the gain per second.
        usual = run.space.first_gains()
        expected = [gain * (factor if each["algorithm"] in PACED else 1.0) for each, gain in usual.items()]
        assert list(gains.values()) == pytest.approx(expected)
        assert [each["algorithm"] for each in gains] == [each["algorithm"] for each in usual]
        assert run.first_configurations(in_time=False) == usual


def test_opening_is_hastened_too(tmp_path):
    with made_run(tmp_path / "run", 1000, budget=Budget(seconds=0.25), opening="learned") as run:
        assert rates(run.first_configurations(in_time=True))["lightgbm"] == pytest.approx(0.1)


def test_rungs_are_haste_enough(tmp_path):
    with made_run(tmp_path / "run", 41_000, budget=Budget(seconds=1)) as run:
        assert len(run.rungs) > 1
        assert rates(run.first_configurations(in_time=True)) == pytest.approx(PACED)


def test_pace_stays_in_its_range():
    space = make_space(
        "default",
        TaskProfile(task_type=TaskType.BINARY, n_rows=100, n_columns=3, n_classes=2, has_categories=False),
    )
    configuration, factor = space.hastened(space.completed({"algorithm": "catboost"}), 10.0)
    assert configuration["catboost:learning_rate"] == pytest.approx(0.3)
    assert factor == pytest.approx(0.3 / 0.08)
    for name in ("knn", "realmlp", "extra_trees"):
        default = space.completed({"algorithm": name})
        assert space.hastened(default, 10.0) == (default, 1.0)
