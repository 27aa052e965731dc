"""Weights of classes become weights of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier, AutoRegressor
from cashmere.data.class_weights import read_class_weight, weights_of_rows
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.target import TargetCoding
from cashmere.exceptions import InvalidParameterError, LeftOutWarning, RunDirectoryError, UnknownNameError
from cashmere.run import RunSettings
from cashmere.run.run_directory import RunDirectory
from cashmere.space import make_space

LABELS = ["bad"] * 10 + ["good"] * 30


def linear(profile):
    return make_space("default", profile).restricted_to(["logistic_regression"])


def weights(given, y=LABELS):
    target, codes = TargetCoding.with_codes(y)
    return weights_of_rows(codes, target, read_class_weight(given, "class_weight"))


def test_balanced_classes_weigh_the_same():
    found = weights("balanced")
    assert found[:10].sum() == pytest.approx(found[10:].sum()) == pytest.approx(20)


def test_rows_of_weight_zero_do_not_count():
    target, codes = TargetCoding.with_codes(LABELS)
    own = np.repeat([0.0, 2.0, 1.0], [8, 2, 30])
    found = weights_of_rows(codes, target, "balanced", weight=own)
    assert found[8] / found[-1] == pytest.approx(15) and found[own > 0].mean() == pytest.approx(1)


def test_rows_of_weight_zero_do_not_count_in_a_run(tmp_path):
    X, own = demo_table().drop(columns=DEMO_TARGET).head(40), np.repeat([0.0, 1.0], [8, 32])
    settings = RunSettings.from_options(class_weight="balanced", exclude="knn")
    with RunDirectory.create(tmp_path / "run", X, LABELS, settings, weight=own) as run:
        totals = np.bincount(run.rows.y, weights=run.rows.weight)
    assert totals[0] == pytest.approx(totals[1])


@pytest.mark.parametrize("given", ["bad=5,good=1", {"bad": 5, "good": 1}, {"bad": 5}, ["bad=5", "good=1"]])
def test_all_forms_mean_the_same(given):
    found = weights(given)
    assert found[0] / found[-1] == pytest.approx(5) and found.mean() == pytest.approx(1)


def test_labels_that_are_numbers_or_hold_an_equals_sign():
    assert weights({1: 3}, [0, 1] * 5)[1] == pytest.approx(1.5)
    assert weights({1: 3}, [0.0, 1.0] * 5)[1] == pytest.approx(1.5)
    assert weights({1.0: 3}, [0, 1] * 5)[1] == pytest.approx(1.5)
    assert weights({"b ": 3}, ["a", "b "] * 5)[1] == pytest.approx(1.5)
    assert weights("a=b=3", ["a=b", "c"] * 5)[0] == pytest.approx(1.5)


@pytest.mark.parametrize(
    "given", ["often", "5", "bad=", "bad=0", "bad=-1", "bad=inf", {"bad": None}, 3, "bad=1,bad=2", {}, {"bad": "x"}]
)
def test_invalid_weights_are_refused(given):
    with pytest.raises(InvalidParameterError, match="'balanced', or a positive weight"):
        read_class_weight(given, "class_weight")


def test_series_and_arrays_are_refused():
    for given in (pd.Series({"bad": 5}), np.array([5, 1])):
        with pytest.raises(InvalidParameterError, match="'balanced', or a positive weight"):
            read_class_weight(given, "class_weight")


def test_unknown_labels_are_named():
    with pytest.raises(UnknownNameError, match="Did you mean 'bad'"):
        weights("bda=2")


def test_classes_are_weighed_in_a_run_and_its_resume(tmp_path):
    table = demo_table().sample(200, random_state=0)
    X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]
    settings = {"budget": "1trials", "space": linear, "isolation": "none", "resampling": "3fold"}
    plain = AutoClassifier(**settings).fit(X, y)
    dear = AutoClassifier(class_weight={"bad": 10}, run_directory=tmp_path / "run", **settings).fit(X, y)
    assert (dear.predict(X) == "bad").sum() > (plain.predict(X) == "bad").sum()
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert page.count("Class weights shift the probabilities: they are not the frequencies of the classes") == 1
    with RunDirectory.open(tmp_path / "run", {"space": linear}) as run:
        assert sorted(set(np.round(run.rows.weight / run.rows.weight.min(), 6))) == [1, 10]
    again = AutoClassifier(
        class_weight="bad=10", run_directory=tmp_path / "run", resume=True, **settings | {"budget": "2trials"}
    )
    assert len(again.fit(X, y).leaderboard_) == 2
    with pytest.raises(RunDirectoryError, match="class_weight"):
        again.set_params(class_weight="balanced").fit(X, y)


def test_learners_without_weights_are_left_out_and_named(tmp_path):
    table = demo_table().sample(60, random_state=0)
    settings = RunSettings.from_options(class_weight="bad=10")
    with pytest.warns(LeftOutWarning, match=r"^Left out: .*knn.* \(cannot learn from weighted rows\)\.$"):
        run = RunDirectory.create(tmp_path / "run", table.drop(columns=DEMO_TARGET), table[DEMO_TARGET], settings)
    with run:
        assert "knn" not in {algorithm.name for algorithm in run.space.algorithms}


def test_values_have_no_classes():
    X = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(InvalidParameterError, match="regression"):
        AutoRegressor(budget="1trials", class_weight="balanced").fit(X, X[:, 0])
