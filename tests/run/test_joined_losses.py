"""Best trial and constant prediction are compared with the ensemble on the same rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cashmere import AutoClassifier, AutoRegressor
from cashmere.report import summarise_run
from cashmere.report.summary.warnings import warnings_of
from cashmere.storage import run_leaderboard
from cashmere.storage.store import RunStore

N, FOLDS = 120, 5


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A table whose last two blocks differ from all before, so that their errors are much larger."""
    rng = np.random.default_rng(0)
    level = np.where(np.arange(N) < 96, 0.0, 30.0)
    table = pd.DataFrame({"level": level + rng.normal(size=N), "other": rng.normal(size=N)})
    folder = tmp_path_factory.mktemp("time") / "run"
    model = AutoRegressor(
        budget="8trials", resampling=f"{FOLDS}fold", include="ridge", isolation="none", run_directory=folder
    )
    model.fit(table, level + rng.normal(size=N), time=np.arange(N))
    return folder, model


def facts_of(folder):
    with RunStore(folder, read_only=True) as store:
        return store.facts()


def rmse(errors):
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.mark.long
def test_losses_are_those_of_all_rows_together(run):
    folder, model = run
    joined = facts_of(folder).joined_losses
    with np.load(folder / "table.npz") as table:
        y, order = table["y"], np.argsort(table["time"])
    newer = np.sort(order[N // 2 :])
    best = int(model.leaderboard_["trial"].iloc[0])
    assert joined["trial"] == best
    assert joined["single"] == pytest.approx(rmse(y[newer] - np.load(folder / f"predictions/{best:06d}.npy")), rel=1e-5)
    starts = range(N // 2, N, N // 2 // FOLDS)
    constant = np.concatenate([y[order[start:][: N // 2 // FOLDS]] - y[order[:start]].mean() for start in starts])
    assert joined["constant"] == pytest.approx(rmse(constant), rel=1e-5)
    later = constant[len(constant) // 2 :]  # the newer half of the rows of the ensemble is judged by earlier choices
    assert joined["constant_cross_fitted"] == pytest.approx(rmse(later), rel=1e-5)


def test_report_and_summary_compare_like_with_like(run):
    folder, _ = run
    summary = summarise_run(folder)
    head, joined = summary["headline"], facts_of(folder).joined_losses
    assert head["is_joined"] and (head["best_loss"], head["baseline_loss"]) == (joined["single"], joined["constant"])
    assert head["ensemble_loss"] <= head["best_loss"] + 1e-9
    assert summary["curves"]["baseline_score"] < head["baseline_score"]
    assert summary["diversity"]["course"]["member_scores"][-1][1] >= head["ensemble_score"] - 1e-9
    assert run_leaderboard(folder)[1].caption.endswith("means over folds, of the ensemble all rows together")
    head["cross_fitted_loss"] = joined["constant_cross_fitted"] - joined["constant"] + head["ensemble_loss"]
    assert not any("cross-fitted score is clearly worse" in text for text in warnings_of(summary))
    head["cross_fitted_loss"] = (joined["constant"] + joined["constant_cross_fitted"]) / 2
    assert not any("not better than the constant" in text for text in warnings_of(summary))


def test_in_time_the_constant_is_judged_on_the_cross_fitted_rows_for_all_metrics(tmp_path):
    rng = np.random.default_rng(2)
    X, moments = rng.normal(size=(N, 2)), np.arange(N)
    quick = {"budget": "1trials", "resampling": "holdout", "include": "ridge", "isolation": "none"}
    model = AutoRegressor(metric="mae", run_directory=tmp_path / "r", ensemble_size=1, **quick)
    model.fit(np.vstack([X, X]), np.r_[np.zeros(N), moments], time=np.r_[moments, moments + N])
    joined = facts_of(tmp_path / "r").joined_losses
    assert joined["constant_cross_fitted"] > joined["constant"]
    assert joined["single"] == pytest.approx(model.leaderboard_["loss"].iloc[0], rel=1e-5)


def test_means_over_rows_need_no_second_number(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    quick = {"budget": "1trials", "resampling": "3fold", "include": "ridge", "isolation": "none"}
    AutoRegressor(metric="mae", run_directory=tmp_path / "r", **quick).fit(X, X[:, 0])
    assert facts_of(tmp_path / "r").joined_losses is None
    assert not summarise_run(tmp_path / "r")["headline"]["is_joined"]


def test_a_best_trial_has_thresholds_as_the_ensemble_has(tmp_path):
    """An ensemble of the best trial alone is not better than this trial."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(240, 3))
    rare = np.where(X[:, 0] + rng.normal(size=240) > 1.6, "rare", "common")
    quick = {"budget": "2trials", "resampling": "3fold", "include": "logistic_regression", "isolation": "none"}
    AutoClassifier(metric="balanced_accuracy", ensemble="best", run_directory=tmp_path / "r", **quick).fit(X, rare)
    facts = facts_of(tmp_path / "r")
    assert facts.decision["gain"] > 0.05
    assert facts.joined_losses["single"] == pytest.approx(facts.ensemble_loss)


def test_constants_of_folds_are_no_ranking_of_rows(tmp_path):
    """Folds with more rows of a class were trained on fewer of them, so their constants are lower."""
    rng = np.random.default_rng(0)
    machines = np.repeat(np.arange(6), 50)
    y = (rng.random(300) < np.where(machines == 3, 0.4, 0.05)).astype(int)
    model = AutoClassifier(
        budget="1trials",
        resampling="3fold",
        include="logistic_regression",
        metric="roc_auc",
        isolation="none",
        run_directory=tmp_path / "run",
    )
    model.fit(pd.DataFrame({"noise": rng.normal(size=300)}), y, groups=machines)
    joined = facts_of(tmp_path / "run").joined_losses
    assert joined["constant"] == joined["constant_cross_fitted"] == 0.5
