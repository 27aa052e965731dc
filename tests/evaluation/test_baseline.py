"""The constant predictor under custom metrics that are not defined for constants."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier, AutoRegressor
from cashmere.exceptions import MetricError, NoSuccessfulTrialError
from cashmere.report import summarise_run, write_report
from cashmere.storage import run_leaderboard
from cashmere.storage.store import RunStore

QUICK = {"budget": "2trials", "resampling": "2fold", "isolation": "none", "n_workers": 1}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=list("ab"))
    return X, X["a"] + 0.3 * rng.normal(size=80)


def correlation(y, p):
    with np.errstate(invalid="ignore"):
        return float(np.corrcoef(y, p)[0, 1])


@pytest.mark.long
def test_metric_that_is_undefined_for_constants_leaves_the_baseline_unknown(table, tmp_path, capsys):
    X, y = table
    settings = {**QUICK, "metric": correlation, "include": "ridge", "run_directory": tmp_path / "run"}
    model = AutoRegressor(**settings, verbose=1).fit(X, y)
    assert "constant -\n" in capsys.readouterr().out
    assert (model.leaderboard_["score"] > 0.8).all() and np.isnan(model.study_.history.baseline_loss)
    with RunStore(tmp_path / "run", read_only=True) as store:
        assert store.facts().baseline_loss is None and store.facts().joined_losses is None
    head = summarise_run(tmp_path / "run")["headline"]
    assert (head["baseline_score"], head["baseline_cross_fitted_score"]) == (None, None)
    page = write_report(tmp_path / "run").read_text()
    assert "<dt>Constant prediction</dt><dd>\N{EN DASH}</dd>" in page
    assert "constant" not in run_leaderboard(tmp_path / "run")[1].caption
    model = AutoRegressor(**{**settings, "budget": "3trials"}, resume=True).fit(X, y)
    assert len(model.study_.history) == 3


@pytest.mark.long
def test_metric_of_labels_may_be_undefined_for_constants(table):
    X, y = table

    def certain(true, called):
        if len(set(called)) == 1:
            raise ZeroDivisionError("one class")
        return float(np.mean(true == called))

    model = AutoClassifier(metric=certain, include="logistic_regression", **QUICK).fit(X, y > 0)
    assert model.leaderboard_["score"].iloc[0] > 0.8


def test_metric_that_fails_for_the_targets_themselves_is_refused_before_any_trial(table, tmp_path):
    def broken(y, p):
        raise ZeroDivisionError("always")

    with pytest.raises(MetricError, match="ZeroDivisionError: always"):
        AutoRegressor(metric=broken, run_directory=tmp_path / "run", **QUICK).fit(*table)


@pytest.mark.long
def test_metric_that_fails_for_all_trials_ends_in_an_error(table):
    def strict(y, p):
        if not np.array_equal(y, p):
            raise ZeroDivisionError("not perfect")
        return 1.0

    with pytest.raises(NoSuccessfulTrialError, match="ZeroDivisionError: not perfect"):
        AutoRegressor(metric=strict, include="ridge", **QUICK).fit(*table)
