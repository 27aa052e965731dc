"""Openings that are chosen from the trials of finished runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier, AutoRegressor
from cashmere.exceptions import RunDirectoryError
from cashmere.metalearning.opening import load_opening
from cashmere.pretraining.opening_sources import opening_of_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the directories of two runs: of a table with categories and weighted rows, and of one with values."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=120), "b": rng.choice(["x", "y", "z"], size=120)})
    value = X["a"] + (X["b"] == "x") + 0.3 * rng.normal(size=120)
    settings = {"budget": "3trials", "resampling": "2fold", "isolation": "none"}
    AutoClassifier(run_directory=folder / "classes", **settings).fit(
        X, value > 0, sample_weight=rng.uniform(0.5, 2, size=120)
    )
    AutoRegressor(run_directory=folder / "values", **settings).fit(X[["a"]], value)
    return folder


def test_configurations_are_named_by_what_differs_from_the_defaults(runs):
    opening = opening_of_runs([runs / "classes", runs / "values"], space="default")
    assert opening.space == "default"
    # Runs with a number of trials begin with the defaults, whose values depend on the table: here they are one.
    assert opening.steps == ()
    assert opening.first_gain > 0.01
    assert opening.notes["candidates"] == 3
    found = {source["name"]: (source["task"], source["n_rows"], source["n_classes"]) for source in opening.sources}
    assert found == {"classes": ("binary", 120, 2), "values": ("regression", 120, 1)}
    assert len({source["origin"] for source in opening.sources}) == 2


def test_it_is_written_for_later_runs(runs, tmp_path):
    opening = opening_of_runs([runs / "classes"], space="default", most_steps=1)
    opening.save(tmp_path / "opening.json")
    assert load_opening(tmp_path / "opening.json") == opening


def test_runs_of_other_spaces_are_refused(runs, tmp_path):
    with pytest.raises(RunDirectoryError, match=r"searched the space 'default'\. Expected .* 'volcano'"):
        opening_of_runs([runs / "classes"], space="volcano")
    with pytest.raises(RunDirectoryError, match=r"run\.json"):
        opening_of_runs([tmp_path], space="default")
