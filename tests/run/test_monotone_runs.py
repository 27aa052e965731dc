"""Runs whose predictions are monotone in some columns."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier, AutoRegressor, Predictor
from cashmere.exceptions import (
    IncompatibleParametersError,
    InvalidParameterError,
    LeftOutWarning,
    RunDirectoryError,
    SpaceError,
)
from cashmere.report import summarise_run
from cashmere.run import RunDirectory, RunSettings, refine_run
from cashmere.space import make_space
from cashmere.space.space import NO_OPERATOR

MONOTONE = {"age": 1, "price": -1}
QUICK = {"isolation": "none", "resampling": "3fold", "random_state": 1}
TREES = ["extra_trees", "random_forest"]


@functools.cache
def table():
    """Return a table in which half of the rows contradict the directions."""
    rng, n = np.random.default_rng(2), 260
    frame = pd.DataFrame(
        {
            "city": rng.choice(["a", "b", "c"], n),
            "age": rng.normal(size=n),
            "price": rng.exponential(size=n),
            "gaps": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )
    truth = np.sin(3 * frame["age"]) + frame["age"] - np.cos(3 * frame["price"]) - frame["price"]
    return frame, (truth + rng.normal(scale=0.5, size=n)).to_numpy()


def falls(predict, column, sign):
    """Return how far predictions go in the wrong direction on a grid, with the other columns of some rows."""
    frame, _ = table()
    values = np.unique(np.r_[frame[column], np.linspace(-5, 9, 50)])
    rows = frame.sample(10, random_state=3)
    grid = rows.loc[rows.index.repeat(len(values))].assign(**{column: np.tile(values, len(rows))})
    return max(0.0, -(sign * np.diff(predict(grid).reshape(len(rows), -1), axis=1)).min())


def assert_monotone(predict):
    for column, sign in MONOTONE.items():
        assert falls(predict, column, sign) <= 1e-9
        assert falls(predict, column, -sign) > 0.01  # it is not constant


@pytest.mark.long
def test_probability_of_the_second_class_is_monotone(tmp_path):
    frame, values = table()
    labels = np.where(values > 0, "yes", "no")
    model = AutoClassifier(
        budget="3trials",
        include=[*TREES, "hist_gradient_boosting"],
        monotone=MONOTONE,
        run_directory=tmp_path / "run",
        **QUICK,
    ).fit(frame, labels)
    assert model.classes_[1] == "yes"
    assert len(model.ensemble_) > 1
    loaded = Predictor.load(tmp_path / "run")
    for predictor in (model, loaded):
        assert_monotone(lambda rows, predictor=predictor: predictor.predict_proba(rows)[:, 1])
    assert loaded.information["monotone"] == ["age+", "price-"]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["monotone"] == ["age+", "price-"]
    assert "age+" in str(summarise_run(tmp_path / "run")["settings"]["monotone"])
    with pytest.raises(IncompatibleParametersError, match="stacking"):
        refine_run(tmp_path / "run", ensemble="stacking")
    with pytest.raises(RunDirectoryError, match="monotone"):
        model.set_params(resume=True, monotone={"age": 1}).fit(frame, labels)


@pytest.mark.parametrize("ensemble", [pytest.param("selection", marks=pytest.mark.slow), "stacking"])
def test_values_are_monotone(ensemble):
    model = AutoRegressor(budget="2trials", include=TREES, monotone=MONOTONE, ensemble=ensemble, **QUICK).fit(*table())
    assert_monotone(model.predict)


def with_scaling(profile):
    return replace(make_space("default", profile), operators={"step": (NO_OPERATOR,)})


def create(folder, y=None, **options):
    frame, values = table()
    y = np.where(values > 0, "yes", "no") if y is None else y
    with RunDirectory.create(folder, frame, y, RunSettings.from_options(**options)) as run:
        return {algorithm.name for algorithm in run.space.algorithms}


def test_algorithms_left_out_are_named_once_before_the_search(tmp_path):
    with pytest.warns(LeftOutWarning, match="logistic_regression, mlp, knn, svm") as told:
        found = create(tmp_path / "a", monotone="age+")
    assert len(told) == 1
    assert {"lightgbm", "catboost", "random_forest"} <= found
    create(tmp_path / "b", monotone="age+", include="lightgbm,xgboost")  # no warning about what was not requested
    with pytest.raises(SpaceError, match="'mlp' cannot be used here: it cannot keep predictions monotone"):
        create(tmp_path / "c", monotone="age+", include="mlp")
    with RunDirectory.open(tmp_path / "a") as run:
        assert run.settings.monotone == ("age+",)


def test_the_column_of_times_is_no_feature(tmp_path):
    frame, values = table()
    model = AutoRegressor(monotone="day+", budget="1trials", run_directory=tmp_path / "run")
    with pytest.raises(InvalidParameterError, match=r"monotone must be a feature; got 'day'.*tells groups or times"):
        model.fit(frame.assign(day=np.arange(len(frame))), values, time="day")


def test_what_cannot_be_monotone_is_refused(tmp_path):
    _, values = table()
    three = np.digitize(values, [-1, 1])
    with pytest.raises(InvalidParameterError, match="empty with more than two classes"):
        create(tmp_path / "a", y=three, monotone="age+")
    with pytest.raises(IncompatibleParametersError, match="negative weight"):
        create(tmp_path / "b", monotone="age+", ensemble="stacking")
    with pytest.raises(SpaceError, match="cannot keep predictions monotone"):
        create(tmp_path / "c", monotone="age+", space="volcano")
    with pytest.raises(IncompatibleParametersError, match="its operators mix columns"):
        create(tmp_path / "c", monotone="age+", space=with_scaling)
    with pytest.raises(InvalidParameterError, match=r"'city'.*read as categorical"):
        create(tmp_path / "d", monotone="city+")
    assert list(tmp_path.iterdir()) == []
