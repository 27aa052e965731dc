"""What `schema.json` holds comes back whole when a run is opened again."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pandas as pd
import pytest

from cashmere import AutoClassifier, Predictor
from cashmere.data.inference import infer_schema
from cashmere.data.target import TargetCoding
from cashmere.run import RunDirectory, refine_run
from cashmere.storage.directory import read_schema_json


def test_no_fact_about_columns_and_target_is_lost(tmp_path):
    schema = replace(infer_schema(pd.DataFrame({"a": [1.0, 2.5], "b": ["x", "y"]})), decimal=",")
    classes = TargetCoding.from_target(["churned", "stays"]).looking_for("churned")
    values = TargetCoding.from_target(["$5", "$7.50"], "regression")
    # Every field that a default leaves out of the file differs from its default here.
    assert {each.name for each in fields(TargetCoding)} == {*classes.to_json(), *values.to_json()}
    assert {each.name for each in fields(schema)} == set(schema.to_json())
    for target in (classes, values):
        assert TargetCoding.from_json(target.to_json()) == target
        written = {"columns": {**schema.to_json(), "later": 1}, "target": {**target.to_json(), "later": [2]}}
        (tmp_path / "schema.json").write_text(json.dumps(written))
        assert read_schema_json(tmp_path) == written


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose positive class is the first and rare, on a table with decimal commas."""
    folder = tmp_path_factory.mktemp("positive") / "run"
    X = pd.DataFrame({"x": [i % 17 / 4 for i in range(200)], "z": [i % 5 / 2 for i in range(200)]})
    X.attrs["decimal"] = ","
    y = pd.Series(["churned" if i % 17 > 14 and i % 3 else "stays" for i in range(200)])
    settings = {"include": ["logistic_regression", "lightgbm"], "isolation": "none", "resampling": "3fold"}
    model = AutoClassifier(
        metric="average_precision", pos_label="churned", budget="3trials", run_directory=folder, **settings
    ).fit(X, y)
    return folder, X, y, model


def test_opened_run_looks_for_the_same_class(run):
    folder, *_ = run
    with RunDirectory.open(folder, searches=False) as opened:
        assert opened.target.positive == 0
        assert opened.schema.decimal == ","


@pytest.mark.long
def test_refined_and_resumed_models_look_for_the_same_class(run, tmp_path):
    folder, X, y, model = run
    refined = refine_run(folder, metric="f1", out=tmp_path / "refined")
    loaded = Predictor.load(tmp_path / "refined")
    assert loaded.target.positive == 0 and refined.metric.name == "f1"
    resumed = AutoClassifier(**{**model.get_params(), "budget": "1trials", "resume": True}).fit(X, y)
    assert resumed._predictor.target.positive == 0 and resumed._predictor.schema.decimal == ","
    # The constant's average precision is the share of the class: the rare one, not the other.
    assert resumed.study_.history.baseline_loss == pytest.approx(1 - (y == "churned").mean(), abs=0.02)
