"""Intervals and sets from a run: stored with the model, the same after loading, also on the command line."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.model_selection import ShuffleSplit
from typer.testing import CliRunner

from cashmere import AutoClassifier, AutoRegressor, Predictor
from cashmere.cli import app
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import InvalidParameterError, ModelFileError, UsageError
from cashmere.model.files import _checksum
from cashmere.space import make_space

N_TRAIN = 300


def quick(profile):
    algorithm = "logistic_regression" if profile.task_type.is_classification else "ridge"
    return make_space("default", profile).restricted_to([algorithm])


def settings(folder, **changes):
    return {"budget": "2trials", "space": quick, "isolation": "none", "run_directory": folder, **changes}


@pytest.fixture(scope="module", params=["5fold", "holdout"])
def regressor(request, tmp_path_factory):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    folder = tmp_path_factory.mktemp("regressor") / "run"
    model = AutoRegressor(resampling=request.param, **settings(folder)).fit(X[:N_TRAIN], y[:N_TRAIN])
    return model, folder, X[N_TRAIN:], y[N_TRAIN:].to_numpy()


@pytest.mark.parametrize("metric", ["rmsle", "mae"])
def test_intervals_of_learned_logarithms_grow_with_the_prediction(metric, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    y = np.exp(3 + X[:, 0] + 0.3 * rng.normal(size=900))
    model = AutoRegressor(metric=metric, resampling="5fold", **settings(tmp_path / "run")).fit(X[:N_TRAIN], y[:N_TRAIN])
    lower, upper = model.predict_interval(X[N_TRAIN:], 0.8).T
    assert np.mean((lower <= y[N_TRAIN:]) & (y[N_TRAIN:] <= upper)) == pytest.approx(0.8, abs=0.06)
    widths, predicted = upper - lower, model.predict(X[N_TRAIN:])
    assert np.std(widths / (1 + predicted)) < 0.1 * np.mean(widths / (1 + predicted))
    assert lower.min() >= 0
    np.testing.assert_array_equal(Predictor.load(tmp_path / "run").predict_interval(X[N_TRAIN:], 0.8).T, [lower, upper])


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    table = demo_table().sample(700, random_state=0)
    X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]
    folder = tmp_path_factory.mktemp("classifier") / "run"
    model = AutoClassifier(resampling="3fold", **settings(folder)).fit(X[:N_TRAIN], y[:N_TRAIN])
    return model, folder, X[N_TRAIN:], y[N_TRAIN:].to_numpy()


@pytest.mark.long
def test_intervals_cover_and_survive_loading(regressor):
    model, folder, X, y = regressor
    low, high = model.predict_interval(X, 0.8).T
    assert 0.65 < np.mean((low <= y) & (y <= high)) < 0.95
    assert np.all(low < high)
    assert np.mean((low <= model.predict(X)) & (model.predict(X) <= high)) == 1
    np.testing.assert_array_equal(Predictor.load(folder).predict_interval(X, 0.8), np.column_stack([low, high]))
    wider = model.predict_interval(X, 0.95)
    assert (wider[:, 0] <= low).all() and (high <= wider[:, 1]).all()


def test_intervals_of_what_is_never_negative_are_not_negative_either(tmp_path):
    rng = np.random.default_rng(0)
    X, size = rng.normal(size=(300, 2)), rng.exponential(size=300)
    model = AutoRegressor(resampling="3fold", **settings(tmp_path / "run")).fit(X, size)
    low, high = model.predict_interval(X, 0.95).T
    assert low.min() == 0 < high.min()
    assert np.mean((low <= size) & (size <= high)) > 0.9
    rising = AutoRegressor(resampling="3fold", **settings(tmp_path / "rising")).fit(X, np.exp(X[:, 0]))
    predicted, (low, high) = rising.predict(X - 2), rising.predict_interval(X - 2).T
    assert predicted.min() < 0
    assert np.all(low >= np.minimum(predicted, 0) - 1e-6)
    assert np.all((low <= predicted + 1e-6) & (predicted <= high + 1e-6))
    shifted = AutoRegressor(resampling="3fold", **settings(tmp_path / "shifted")).fit(X, size - 1)
    assert shifted.predict_interval(X, 0.95).min() < -1


def test_sets_cover_and_survive_loading(classifier):
    model, folder, X, y = classifier
    held = model.predict_set(X, 0.9)
    assert held.shape == (len(X), 2) and held.dtype == bool and held.any(axis=1).all()
    assert 0.8 < held[np.arange(len(y)), (y == "good").astype(int)].mean() <= 1
    np.testing.assert_array_equal(Predictor.load(folder).predict_set(X, 0.9), held)
    assert held[np.arange(len(X)), model.predict_proba(X).argmax(axis=1)].mean() > 0.99


def test_sets_by_class_cover_each_class_and_survive_loading(classifier):
    model, folder, X, y = classifier
    held = model.predict_set(X, 0.8, by_class=True)
    for k, label in enumerate(model.classes_):
        assert 0.65 < held[y == label, k].mean() < 0.95
    np.testing.assert_array_equal(Predictor.load(folder).predict_set(X, 0.8, by_class=True), held)
    assert (held | ~model.predict_set(X, 0.8, by_class=False)).mean() < 1


def test_rows_that_validate_several_folds_have_scores_of_all_models(tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    y = y - y.mean()  # bounds are not cut at 0
    splitter = ShuffleSplit(3, test_size=0.5, random_state=0)
    model = AutoRegressor(resampling=splitter, **settings(tmp_path / "run")).fit(X, y)
    assert len(Predictor.load(tmp_path / "run").conformal.folds) == 1
    low, high = model.predict_interval(X).T
    np.testing.assert_allclose((low + high) / 2, model.predict(X), rtol=1e-6)


@pytest.mark.long
def test_command_adds_columns(regressor, classifier, tmp_path):
    def predict(folder, X, *options):
        X.to_csv(tmp_path / "new.csv", index=False)
        done = CliRunner().invoke(
            app, ["predict", str(folder), str(tmp_path / "new.csv"), "-o", str(tmp_path / "out.csv"), *options]
        )
        assert done.exit_code == (0 if "2" not in options else 2), done.output
        return done.output if "2" in options else pd.read_csv(tmp_path / "out.csv")

    model, folder, X, _ = regressor
    found = predict(folder, X, "--interval", "0.9")
    np.testing.assert_allclose(found[["lower", "upper"]], model.predict_interval(X, 0.9))
    model, folder, X, _ = classifier
    found = predict(folder, X, "--interval", "0.9", "--proba")
    assert found.columns.tolist() == ["prediction", "proba_bad", "proba_good", "in_set_bad", "in_set_good"]
    np.testing.assert_array_equal(found[["in_set_bad", "in_set_good"]], model.predict_set(X))
    assert "at most" in predict(folder, X, "--interval", "2")
    found = predict(folder, X, "--interval", "0.9", "--by-class")
    np.testing.assert_array_equal(found[["in_set_bad", "in_set_good"]], model.predict_set(X, by_class=True))
    model, folder, X, _ = regressor
    for options in (["--by-class"], ["--by-class", "--interval", "0.9"]):
        X.to_csv(tmp_path / "new.csv", index=False)
        command = ["predict", str(folder), str(tmp_path / "new.csv"), "-o", str(tmp_path / "out.csv"), *options]
        refused = CliRunner().invoke(app, command)
        assert refused.exit_code == 2 and "--by-class) need --interval and a classification" in refused.output


def test_wrong_calls_are_explained(regressor, classifier, tmp_path):
    _, folder, X, _ = regressor
    predictor = Predictor.load(folder)
    with pytest.raises(UsageError, match="Use predict_interval"):
        predictor.predict_set(X)
    with pytest.raises(InvalidParameterError, match="at most"):
        predictor.predict_interval(X, 1.0)
    without = Predictor.load(classifier[1])
    without.conformal = replace(without.conformal, classes=())
    with pytest.raises(UsageError, match=r"no scores by class.*resume"):
        without.predict_set(classifier[2], by_class=True)
    predictor.conformal = None
    with pytest.raises(UsageError, match="resume"):
        predictor.predict_interval(X)
    model, _, rows, _ = classifier
    with pytest.raises(UsageError, match="Use predict_set"):
        model._predictor.predict_interval(rows)


@pytest.mark.parametrize("scores", [[[[0.3, 0.1]] * 3] * 2, [[[0.1]] * 3], [[[0.1]]] * 2, [[["x"]] * 3] * 2])
def test_scores_of_classes_that_cannot_be_are_refused(classifier, tmp_path, scores):
    refuse(classifier, tmp_path, "conformal_scores_of_classes", scores)


@pytest.mark.parametrize("scores", [[[0.3, 0.1]], [[-0.5]], [[0.1]] * 9, [["x"]], [[float("nan")]]])
def test_scores_that_cannot_be_are_refused(classifier, tmp_path, scores):
    refuse(classifier, tmp_path, "conformal_scores", scores)


def refuse(classifier, tmp_path, key, scores):
    _, folder, *_ = classifier
    for path in (folder / "model").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest[key] = scores
    manifest["checksum"] = _checksum(manifest)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError):
        Predictor.load(tmp_path, verify=False)
