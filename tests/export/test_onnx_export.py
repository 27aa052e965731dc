"""Whole ensembles as ONNX files, with certificates, and searches for models that convert."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

onnxruntime = pytest.importorskip("onnxruntime")

import cashmere  # noqa: E402
from cashmere import AutoClassifier, AutoRegressor, Predictor  # noqa: E402
from cashmere.cli import app  # noqa: E402
from cashmere.exceptions import (  # noqa: E402
    CertificateError,
    ConversionError,
    DeployableWarning,
    InvalidParameterError,
    MissingParameterError,
    OutputError,
    SpaceError,
)
from cashmere.export import export_onnx, onnx_inputs  # noqa: E402
from cashmere.run import refine_run  # noqa: E402

QUICK = {"isolation": "none", "resampling": "holdout", "random_state": 0}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n_rows = 150
    table = pd.DataFrame(
        {
            "prediction": rng.normal(size=n_rows),  # the name of the output
            "colour": rng.choice(["red", "green", "blue"], n_rows),
            "town": pd.Categorical(rng.choice(["north", "south"], n_rows)),
            "size": rng.integers(0, 9, n_rows),
        }
    )
    table.loc[::9, "prediction"] = np.nan
    table.loc[::7, "colour"] = None
    score = table["prediction"].fillna(0) + (table["colour"] == "red") + rng.normal(size=n_rows) / 3
    return table.assign(good=np.where(score > 0.3, "yes", "no"), grade=pd.qcut(score, 3, labels=False), score=score)


FEATURES = ["prediction", "colour", "town", "size"]


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    """A run with several members and a threshold."""
    folder = tmp_path_factory.mktemp("onnx") / "run"
    include = ["lightgbm", "hist_gradient_boosting", "logistic_regression"]
    model = AutoClassifier(
        budget="3trials", include=include, ensemble="bagging", decision_threshold=0.4, run_directory=folder, **QUICK
    )
    model.fit(table[FEATURES], table["good"])
    assert len(model.ensemble_) == 3
    return folder


@pytest.mark.long
def test_command_writes_model_and_certificate(run, tmp_path):
    found = CliRunner().invoke(app, ["export", str(run), "--onnx", str(tmp_path / "model.onnx")])
    assert found.exit_code == 0, found.output
    assert "labels equal" in found.stdout
    certificate = json.loads((tmp_path / "model.certificate.json").read_text())
    assert certificate["holds"] is True
    assert certificate["n_rows"] == 180
    assert certificate["n_altered"] == 30
    assert certificate["n_equal"] == 180
    assert certificate["largest"] < 1e-6
    algorithms = {each["member"].partition("(")[2].rstrip(")") for each in certificate["members"]}
    assert algorithms == {"lightgbm", "hist_gradient_boosting", "logistic_regression"}


def test_file_predicts_without_cashmere(run, table, tmp_path):
    predictor = Predictor.load(run)
    export_onnx(predictor, tmp_path / "model.onnx", table)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_inputs()] == FEATURES
    assert [each.name for each in session.get_outputs()] == ["prediction_", "probabilities"]
    rows = pd.DataFrame(
        {"prediction": [0.3, np.nan], "colour": ["red", "mauve"], "town": ["north", None], "size": [3, 1]}
    )
    texts = {name: rows[[name]].fillna("").to_numpy(dtype=object) for name in ("colour", "town")}
    numbers = {name: rows[[name]].to_numpy(dtype=np.float32) for name in ("prediction", "size")}
    labels, probabilities = session.run(None, texts | numbers)
    np.testing.assert_allclose(probabilities, predictor.predict_proba(rows), atol=1e-6)
    assert labels.tolist() == predictor.predict(rows).tolist()
    given = onnx_inputs(predictor.schema, rows)
    assert all(np.array_equal(given[name], value) for name, value in texts.items())


def test_fits_on_all_rows_count_twice_in_the_file_too(table, tmp_path):
    include = ["hist_gradient_boosting"]
    settings = {**QUICK, "resampling": "3fold"}
    AutoClassifier(budget="2trials", include=include, refit=True, run_directory=tmp_path / "run", **settings).fit(
        table[FEATURES], table["good"]
    )
    predictor = Predictor.load(tmp_path / "run")
    assert {tuple(predictor.averaged_models(n)) for n in predictor.models} == {(0, 1, 2, 3, 4)}
    assert export_onnx(predictor, tmp_path / "model.onnx", table).largest < 1e-6


@pytest.mark.long
def test_large_numbers_are_shifted_in_the_file_too(tmp_path):
    rng = np.random.default_rng(0)
    part = rng.integers(0, 2000, 1200)
    X = pd.DataFrame({"at": 1_700_000_000 + part, "noise": rng.normal(size=1200)})
    y = np.where(part // 100 % 2, "yes", "no")
    include = ["lightgbm", "random_forest"]
    model = AutoClassifier(budget="2trials", include=include, run_directory=tmp_path / "run", **QUICK)
    model.fit(X[:900], y[:900])
    assert model.score(X[900:], y[900:]) > 0.85  # in float32, twenty times would be one
    loaded = Predictor.load(tmp_path / "run")
    certificate = export_onnx(loaded, tmp_path / "model.onnx", X[900:])
    assert certificate.largest < 1e-5
    inputs = onnx_inputs(loaded.schema, X[900:])
    assert inputs["at"].dtype == np.float64 and np.array_equal(inputs["at"][:, 0], X["at"][900:])
    explained = {effect.column: effect for effect in cashmere.explain(tmp_path / "run", repeats=1).effects}
    assert min(explained["at"].points) >= 1_700_000_000


@pytest.mark.long
@pytest.mark.parametrize("metric", ["poisson", "gamma", "tweedie@1.3", "rmsle"])
def test_logarithms_and_smallest_predictions_convert(metric, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    mean = np.exp(1.5 * X["a"] + X["b"])
    y = rng.gamma(2.0, mean / 2) if metric == "gamma" else rng.poisson(mean).astype(float)
    include = ["lightgbm", "xgboost", "hist_gradient_boosting", "ridge"]
    model = AutoRegressor(
        budget="4trials", include=include, metric=metric, ensemble="bagging", run_directory=tmp_path / "run", **QUICK
    )
    model.fit(X, y)
    assert len(model.ensemble_) == 4
    loaded = Predictor.load(tmp_path / "run")
    far = pd.concat([X, 3 * X])
    if metric != "rmsle":
        assert (loaded.predict(far) == np.float32(loaded.least_prediction)).any()
    assert metric == "rmsle" or min(each.min() for each in loaded.predict_members(far).values()) < 0
    certificate = export_onnx(loaded, tmp_path / "model.onnx", far)
    assert certificate.holds and certificate.largest < 1e-4
    assert max(each.largest for each in certificate.members) < 1e-4


def test_what_differs_too_much_is_not_written(run, table, tmp_path):
    with pytest.raises(CertificateError, match=r"not written.*member \d \(\w+\) by") as caught:
        export_onnx(Predictor.load(run), tmp_path / "model.onnx", table, bound=1e-30)
    assert caught.value.certificate.largest > 0
    assert not list(tmp_path.iterdir())


def test_paths_and_bounds_are_checked_first(run, table, tmp_path):
    predictor = Predictor.load(run)
    with pytest.raises(InvalidParameterError, match=r"\.onnx"):
        export_onnx(predictor, tmp_path / "model.bin", table)
    with pytest.raises(OutputError, match="no folder"):
        export_onnx(predictor, tmp_path / "none" / "model.onnx", table)
    with pytest.raises(InvalidParameterError, match="bound"):
        export_onnx(predictor, tmp_path / "model.onnx", table, bound=0.0)


def test_command_asks_for_rows_where_none_are_kept(run, table, tmp_path):
    sample = run / "sample.parquet"
    kept = sample.rename(tmp_path / "kept.parquet")
    arguments = ["export", str(run / "model"), "--onnx", str(tmp_path / "model.onnx"), "-q"]
    try:
        found = CliRunner().invoke(app, arguments)
        assert found.exit_code == 2
        assert MissingParameterError.__name__ in found.stderr
        assert CliRunner().invoke(app, [*arguments, "--rows", str(kept)]).exit_code == 0
    finally:
        kept.rename(sample)


@pytest.mark.slow
def test_stacked_classes_and_values_of_folds_convert(table, tmp_path):
    folds = QUICK | {"resampling": "2fold", "budget": "2trials"}
    model = AutoClassifier(include="logistic_regression", ensemble="stacking", **folds)
    certificate = model.fit(table[FEATURES], table["grade"]).to_onnx(tmp_path / "grade.onnx", table[FEATURES])
    assert certificate.n_equal == certificate.n_rows
    assert certificate.largest < 1e-6
    model = AutoRegressor(include="ridge", ensemble="bagging", **folds)
    certificate = model.fit(table[FEATURES], table["score"]).to_onnx(tmp_path / "score.onnx", table[FEATURES])
    assert certificate.unit == "standard deviation"
    assert certificate.n_equal is None
    assert certificate.largest < 1e-6


def test_members_without_a_converter_are_named_and_replaced(table, tmp_path):
    settings = QUICK | {"include": "knn,logistic_regression", "ensemble": "bagging", "run_directory": tmp_path / "run"}
    model = AutoClassifier(budget="2trials", **settings).fit(table[FEATURES], table["good"])
    with pytest.raises(ConversionError, match=r"member \d \(knn\) contains a KNeighborsClassifier.*refine"):
        model.to_onnx(tmp_path / "model.onnx", table[FEATURES])
    refined = refine_run(tmp_path / "run", deployable="onnx")
    assert refined.after["n_members"] == 1
    assert export_onnx(Predictor.load(refined.model_folder), tmp_path / "model.onnx", table).holds
    with pytest.raises(InvalidParameterError, match="'onnx', the only format"):
        refine_run(tmp_path / "run", deployable="pmml")


def test_deployable_search_leaves_out_what_does_not_convert(table, tmp_path):
    X, y = table[FEATURES], table["good"]
    model = AutoClassifier(budget="1trials", deployable="onnx", run_directory=tmp_path / "run", **QUICK)
    with pytest.warns(DeployableWarning, match=r"leaves out .*: catboost on the ordinal form, knn\."):
        model.fit(X, y)
    names = set(model.study_.space["algorithm"].choices)
    assert "knn" not in names
    assert {"lightgbm", "catboost", "svm"} <= names
    assert model.study_.space["catboost:encoding"].choices == ("target", "onehot")
    assert "catboost:max_ctr_complexity" not in model.study_.space
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(resume=True, budget="2trials").fit(X, y)
    with pytest.raises(SpaceError, match=r"\(knn\) converts to ONNX"):
        AutoClassifier(budget="1trials", deployable="onnx", include="knn", **QUICK).fit(X, y)
    with pytest.raises(SpaceError, match="None of the algorithms"):
        AutoClassifier(budget="1trials", deployable="onnx", space="sklearn12", **QUICK).fit(X, y)
    with pytest.raises(InvalidParameterError, match="'onnx', the only format"):
        AutoClassifier(budget="1trials", deployable="pmml", **QUICK).fit(X, y)


def test_deployable_search_refuses_texts_first(table):
    words = [f"the {i}th review of a very good thing" for i in range(len(table))]
    model = AutoClassifier(budget="1trials", deployable="onnx", **QUICK)
    with pytest.raises(ConversionError, match="column 'review' is text"):
        model.fit(table[["size"]].assign(review=words), table["good"])
