"""Openings that are chosen from the trials of finished runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier, AutoRegressor
from cashmere.exceptions import RunDirectoryError
from cashmere.metalearning.opening import load_opening
from cashmere.pretraining.opening_sources import opening_of_runs
from cashmere.records.budget import Budget
from cashmere.records.trial import Outcome, Trial, TrialStatus, configuration_key
from cashmere.run import RunDirectory, RunSettings


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


@pytest.mark.long
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


def add_excellent_trial(folder, choose):
    """Add a trial with nearly perfect predictions to a run of values; `choose` returns its configuration."""
    with RunDirectory.open(folder) as run:
        space = run.space.configuration_space
        number = len(run.store.load(space))
        y = run.rows.y[np.unique(np.concatenate([fold.validation for fold in run.splits]))]
        predictions = (y + 1e-3 * np.sin(np.arange(len(y)))).astype(np.float32)
        outcome = Outcome(status=TrialStatus.SUCCESS, loss=1e-3, fold_losses=(1e-3,), predictions=predictions)
        run.store.add([(Trial(number=number, configuration=choose(run), seed=0), outcome)], finished_at=100.0)


def new_configuration(run):
    space = run.space.configuration_space
    space.seed(0)
    tried = {o.trial.key for o in run.store.load(space).values()}
    return next(c for c in space.sample_configuration(20) if configuration_key(c) not in tried)


def test_the_first_gain_is_that_of_the_defaults_even_if_a_later_step_gains_more(runs, tmp_path):
    folder = Path(shutil.copytree(runs / "values", tmp_path / "run"))
    add_excellent_trial(folder, new_configuration)
    opening = opening_of_runs([folder], space="default")
    (step,) = opening.steps
    assert 0.01 < opening.first_gain < step.gain


def test_variants_come_first_and_share_the_gain_like_defaults(runs, tmp_path):
    folder = Path(shutil.copytree(runs / "values", tmp_path / "run"))
    before = opening_of_runs([folder], space="default")
    add_excellent_trial(folder, lambda run: run.space.first_configurations()[-1])
    opening = opening_of_runs([folder], space="default")
    assert opening.steps == ()
    assert opening.first_gain > before.first_gain


def test_what_a_run_began_with_in_haste_counts_as_what_it_is_without(tmp_path):
    def first_in_haste(run):
        usual = run.space.first_configurations()
        return next(each for each in run.first_configurations(in_time=True) if each not in usual)

    X = pd.DataFrame(np.random.default_rng(0).normal(size=(1000, 5)), columns=list("abcde"))
    with RunDirectory.create(tmp_path / "run", X, X["a"] ** 2, RunSettings(budget=Budget(seconds=0.05))):
        pass
    add_excellent_trial(tmp_path / "run", first_in_haste)
    opening = opening_of_runs([tmp_path / "run"], space="default")
    assert opening.steps == ()
    assert opening.first_gain > 1
