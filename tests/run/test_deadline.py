"""A run ends in time, however long the steps after its search would take."""

from __future__ import annotations

import time

import pytest

from cashmere import AutoClassifier
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.model.predictor import Predictor
from cashmere.space import make_space
from cashmere.storage.store import RunStore

SECONDS = 8.0


def logistic(profile):
    return make_space("default", profile).restricted_to(["logistic_regression"])


def slow_accuracy(y, predicted):
    time.sleep(0.05)
    return float((y == predicted).mean())


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A run of many trials with a slow metric: choosing and judging the last ensemble would take a minute."""
    folder = tmp_path_factory.mktemp("deadline") / "run"
    frame = demo_table().head(200)
    X, y = frame.drop(columns=DEMO_TARGET), frame[DEMO_TARGET]
    settings = {"space": logistic, "strategy": "random", "resampling": "holdout", "decision_threshold": "none"}
    AutoClassifier(budget="1trials", isolation="none", **settings).fit(X, y)  # imports the libraries
    model = AutoClassifier(budget=SECONDS, metric=slow_accuracy, isolation="none", run_directory=folder, **settings)
    start = time.perf_counter()
    model.fit(X, y)
    return model, X, folder, time.perf_counter() - start


def test_call_ends_within_its_budget(fitted):
    model, _, _, seconds = fitted
    assert model.study_.history
    assert seconds < 1.5 * SECONDS + 2  # a few seconds more than promised, for busy machines


def test_steps_without_time_are_left_out_and_the_rest_fits_together(fitted):
    model, X, folder, _ = fitted
    with RunStore(folder, read_only=True) as store:
        facts = store.facts()
    assert facts.cross_fitted_loss is None
    assert set(model.ensemble_["trial"]) == set(facts.ensemble["members"])
    assert (folder / "report.html").exists()
    assert (Predictor.load(folder).predict_proba(X) == model.predict_proba(X)).all()
