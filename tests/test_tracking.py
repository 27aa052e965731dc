"""Runs logged to MLflow, in a real store in a folder, and loaded without the libraries of a search."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cashmere import AutoClassifier, Predictor, log_to_mlflow
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import MissingDependencyError
from cashmere.model.requirements import model_requirements
from cashmere.report import summarise_run

pytest.importorskip("mlflow")

pytestmark = pytest.mark.long

ROWS = demo_table().head(120)
X = ROWS.drop(columns=DEMO_TARGET)

LOAD = """
import sys, warnings
for name in ("ConfigSpace", "loky", "typer", "rich", "jinja2", "lightgbm"):
    sys.modules[name] = None  # as if it were not installed
warnings.simplefilter("ignore")  # those of MLflow
import json, mlflow, pandas
model = mlflow.pyfunc.load_model(sys.argv[1])
rows = pandas.read_json("rows.json", orient="split")
whole = rows.assign(credit_amount=rows["credit_amount"].astype("int64"), age=rows["age"].astype(float))
probabilities = model.predict(whole, params={"proba": True})
print(json.dumps([model.predict(rows).tolist(), list(probabilities.columns), probabilities.to_numpy().tolist()]))
"""


def environment(store: Path) -> dict[str, str]:
    """Return variables that let MLflow keep runs in a folder, which needs neither server nor database."""
    own = {"MLFLOW_TRACKING_URI": store.as_uri(), "MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_EXPERIMENT_NAME": "tables"}
    return {**os.environ, **own}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tracked") / "my-run"
    model = AutoClassifier(
        budget="2trials",
        include=["logistic_regression"],
        resampling="holdout",
        isolation="none",
        run_directory=folder,
    )
    model.fit(X, ROWS[DEMO_TARGET])
    return folder


@pytest.fixture(scope="module")
def store(run):
    """Return the folder of the store after `cashmere mlflow` has logged the run."""
    folder = run.with_name("store")
    command = [sys.executable, "-m", "cashmere", "mlflow", str(run)]
    done = subprocess.run(command, env=environment(folder), cwd=run.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Logged to MLflow as run ")
    return folder


def logged(store: Path, kind: str) -> dict[str, str]:
    """Return the content of the files of a kind, such as ``metrics``, of the only run in a store."""
    (folder,) = (path.parent / kind for path in store.glob("*/*/artifacts") if (path.parent / "tags").is_dir())
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def test_settings_curves_and_artefacts_are_logged(run, store):
    summary = summarise_run(run)
    assert logged(store, "params") == summary["settings"]
    tags, metrics = logged(store, "tags"), logged(store, "metrics")
    assert tags["cashmere.digest"] == summary["digest"] and tags["mlflow.runName"] == "my-run"
    for name, key in (("trial_log_loss", "score"), ("best_log_loss", "best_score")):
        points = [line.split() for line in metrics[name].splitlines()]
        expected = [(trial["trial"], trial[key]) for trial in summary["curves"]["trials"]]
        assert [(int(step), float(value)) for _, value, step in points] == expected
    assert float(metrics["ensemble_log_loss"].split()[-2]) == summary["headline"]["ensemble_score"]
    artefacts = logged(store, "artifacts")
    assert artefacts["report.html"] == (run / "report.html").read_text()
    assert artefacts["leaderboard.csv"].startswith("rank,trial,algorithm")


def test_model_has_signature_requirements_and_no_training_row(run, store):
    (about,) = store.glob("*/models/*/artifacts/MLmodel")
    text = about.read_text()
    assert "loader_module: cashmere.model.mlflow_model" in text
    assert all(column in text for column in X.columns)
    assert set(model_requirements(run)) < set((about.parent / "requirements.txt").read_text().splitlines())
    example = json.loads((about.parent / "input_example.json").read_text())
    assert example["columns"] == list(X.columns) and len(example["data"]) == 1
    assert example["data"][0] not in X.astype(object).values.tolist()


@pytest.mark.slow
def test_model_loads_where_the_libraries_of_the_search_are_missing(run, store, tmp_path):
    (about,) = store.glob("*/models/*/artifacts/MLmodel")
    X.head(10).to_json(tmp_path / "rows.json", orient="split")
    done = subprocess.run([sys.executable, "-c", LOAD, str(about.parent)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    labels, columns, probabilities = json.loads(done.stdout)
    predictor = Predictor.load(run)
    assert labels == predictor.predict(X.head(10)).tolist()
    assert columns == predictor.classes_.tolist()
    assert probabilities == pytest.approx(predictor.predict_proba(X.head(10)))


@pytest.mark.slow
def test_store_that_cannot_be_reached_is_named(run, tmp_path):
    nowhere = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    variables = {**environment(tmp_path), **nowhere}
    command = [sys.executable, "-m", "cashmere", "mlflow", str(run)]
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "TrackingError: MLflow does not accept the run" in done.stderr and "MLFLOW_TRACKING_URI" in done.stderr


def test_missing_mlflow_is_named_with_its_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingDependencyError, match=r"cashmere-automl\[mlflow\]"):
        log_to_mlflow(run)
