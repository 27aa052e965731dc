"""Algorithms that the user includes or excludes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from cashmere import AutoClassifier, AutoRegressor
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import InvalidParameterError, RunDirectoryError, SpaceError, UnknownNameError
from cashmere.model.predictor import Predictor
from cashmere.run.run_directory import RunDirectory
from cashmere.run.settings import RunSettings


@pytest.fixture(scope="module")
def credit():
    table = demo_table().sample(120, random_state=0)
    return table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]


def algorithms(folder, credit, **settings):
    X, y = credit
    with RunDirectory.create(folder, X, y.to_numpy(), RunSettings.from_options(**settings)) as run:
        return {algorithm.name for algorithm in run.space.algorithms}


def test_space_has_the_chosen_algorithms(credit, tmp_path):
    found = algorithms(tmp_path / "run", credit, include="lightgbm, extra_trees,lightgbm")
    assert found == {"lightgbm", "extra_trees"}


def test_exclusions_count_after_inclusions(credit, tmp_path):
    everything = algorithms(tmp_path / "all", credit)
    assert algorithms(tmp_path / "out", credit, exclude="catboost,mlp") == everything - {"catboost", "mlp"}
    assert algorithms(tmp_path / "both", credit, include="lightgbm,mlp", exclude=["mlp"]) == {"lightgbm"}


def test_what_cannot_be_chosen_is_named(credit, tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean 'lightgbm'"):
        algorithms(tmp_path / "a", credit, include="lightgmb")
    with pytest.raises(UnknownNameError, match="'catboost'"):
        algorithms(tmp_path / "b", credit, exclude="catbost")
    with pytest.raises(SpaceError, match="does not support binary"):
        algorithms(tmp_path / "c", credit, include="ridge")
    with pytest.raises(InvalidParameterError, match="fewer than all"):
        algorithms(tmp_path / "d", credit, include="lightgbm", exclude="lightgbm")
    with pytest.raises(InvalidParameterError, match="--include must be names"):
        RunSettings.from_options(include=[1])
    with pytest.raises(InvalidParameterError, match="--exclude must be names"):
        RunSettings.from_options(exclude=3)
    assert list(tmp_path.iterdir()) == []


def test_estimator_takes_names_and_a_resume_needs_the_same(credit, tmp_path):
    model = AutoClassifier(
        budget="2trials",
        include=["logistic_regression", "extra_trees"],
        resampling="holdout",
        isolation="none",
        run_directory=tmp_path / "run",
    )
    clone(model).fit(*credit)
    again = clone(model).set_params(resume=True, budget="3trials", include="logistic_regression,extra_trees")
    found = again.fit(*credit).leaderboard_
    assert set(found["algorithm"]) <= {"logistic_regression", "extra_trees"}
    with pytest.raises(RunDirectoryError, match="include"):
        again.set_params(include=None).fit(*credit)


@pytest.mark.parametrize("metric", ["rmse", "poisson", "rmsle"])
def test_boosters_learn_a_constant_from_a_fold_of_equal_values(metric, tmp_path):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.repeat([0.0, 1.0], [15, 15]) * np.arange(30)
    halves = np.arange(15), np.arange(15, 30)
    model = AutoRegressor(
        budget="2trials",
        include=["lightgbm", "catboost"],
        resampling=[halves, halves[::-1]],
        metric=metric,
        isolation="none",
        run_directory=tmp_path / "run",
    ).fit(X, y)
    assert set(model.leaderboard_["algorithm"]) == {"lightgbm", "catboost"} and model.failures_.empty
    predictor = Predictor.load(tmp_path / "run")
    np.testing.assert_array_equal(predictor.predict(pd.DataFrame(X)), model.predict(X))
    for number in predictor.models:
        np.testing.assert_array_equal(predictor.models[number][0].predict(X.astype(np.float32)), 0)
