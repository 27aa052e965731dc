from __future__ import annotations

import json
import math

import pytest
from fake_runs import make_run, some_failures, write
from report_page import check_inert

from cashmere.report import render_report, summarise_run


def test_summary_of_a_finished_run(tmp_path):
    summary = summarise_run(make_run(tmp_path / "run", n_trials=60, failures=some_failures()))
    head = summary["headline"]
    assert (head["trials"], head["failures"], head["stop_reason"]) == (60, 6, "time budget spent")
    assert head["best_score"] == summary["leaderboard"][0]["score"]
    assert head["ensemble_score"] > head["cross_fitted_score"] > head["baseline_score"] == 0.5
    assert summary["warnings"] == []
    assert summary["data"]["kinds"] == {"numeric": 7, "categorical": 5, "date": 1}
    assert [c["rows"] for c in summary["data"]["classes"]] == [300, 700]
    assert [m["weight"] for m in summary["ensemble"]["members"]] == [0.36, 0.28, 0.16, 0.12, 0.08]
    assert sum(a["trials"] for a in summary["algorithms"]) == 60
    assert [t["trial"] for t in summary["curves"]["trials"]] == list(range(60))  # as the leaderboard numbers them
    assert summary["curves"]["ensemble"][-1]["trial"] == 59
    assert summary["origins"] == {"random": 60}
    assert (summary["leaderboard"][0]["origin"], summary["budget"]) == ("random", "5m")
    json.dumps(summary, allow_nan=False)


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("n_trials", [0, 1, 5])
def test_short_and_unfinished_runs_have_a_report(tmp_path, n_trials, finished):
    run = make_run(tmp_path / "run", n_trials=n_trials, finished=finished)
    summary = summarise_run(run)
    page = check_inert(render_report(summary))
    assert ("has not finished" in page.text) == (not finished)
    assert ("No trial has finished yet" in page.text) == (n_trials == 0)
    json.dumps(summary, allow_nan=False)


def test_run_without_facts_table_and_schema_has_a_report(tmp_path):
    run = make_run(tmp_path / "run", n_trials=2, finished=False)
    (run / "table.npz").unlink()
    (run / "schema.json").unlink()
    write(run / "run.json", {"format": "cashmere run", "version": 1})
    check_inert(render_report(summarise_run(run)))


def test_regression_with_a_loss_to_minimise(tmp_path):
    run = make_run(tmp_path / "run", task="regression", classes=(), settings={"metric": "rmse"})
    summary = summarise_run(run)
    assert summary["headline"]["best_score"] == summary["headline"]["best_loss"]
    assert "lower is better" in check_inert(render_report(summary)).text


def test_custom_metric_shows_losses(tmp_path):
    run = make_run(tmp_path / "no metric", settings={"metric": None})
    assert summarise_run(run)["settings"]["metric"] == "log_loss (default)"
    run = make_run(tmp_path / "run", settings={"metric": "<function cost at 0x7f00>", "own_objects": ["metric"]})
    page = check_inert(render_report(summarise_run(run)))
    assert "a custom metric: losses are shown" in page.text
    assert "<function cost>" in page.text


def test_losses_of_any_size_are_drawn(tmp_path):
    losses = [1e308, 1e-308, 5.0, 4.0, 1e30, 3.0, -2.0, 0.0]
    run = make_run(
        tmp_path / "run", n_trials=8, losses=losses, task="regression", classes=(), settings={"metric": "mse"},
        facts={"baseline_loss": 1e300, "cross_fitted_loss": math.nan, "utilisation": math.inf},
    )  # fmt: skip
    summary = summarise_run(run)
    json.dumps(summary, allow_nan=False)
    check_inert(render_report(summary))
