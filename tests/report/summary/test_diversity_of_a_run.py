from __future__ import annotations

import json

import numpy as np
import pytest
from fake_runs import make_run, some_failures, weighted
from report_page import check_inert

from cashmere.analysis import pairwise_diversity, read_predictions, trace_pool
from cashmere.evaluation.metrics import METRICS
from cashmere.report import render_report, summarise_run


@pytest.mark.long
@pytest.mark.parametrize(
    ("task", "classes", "metric"),
    [("binary", ("bad", "good"), "roc_auc"), ("multiclass", ("a", "b", "c"), "log_loss"), ("regression", (), "rmse")],
)
def test_diversity_of_trials_and_members_is_shown(tmp_path, task, classes, metric):
    run = make_run(
        tmp_path / "run", n_trials=60, failures=some_failures(), predictions=True, task=task, classes=classes,
        settings={"metric": metric}, facts=weighted(50, 51, 54, 55),
    )  # fmt: skip
    summary = summarise_run(run)
    found = summary["diversity"]
    assert found["why_not"] is None
    assert [point[0] for point in found["course"]["minimum"]] == [n for n in range(1, 60) if n not in some_failures()]
    assert len(found["course"]["member_scores"]) == 60
    assert [m["trial"] for m in found["members"]] == [50, 51, 54, 55]
    read = read_predictions(run, max_rows=1000)
    np.testing.assert_allclose(found["matrix"], pairwise_diversity([read.predictions[n] for n in (50, 51, 54, 55)]))
    assert found["matrix"][0][2] < found["matrix"][0][1]  # trials four apart share their errors
    json.dumps(summary, allow_nan=False)
    page = check_inert(render_report(summary))
    assert "Over the last 50 trials the ensemble changed" in page.text
    assert ("in units of the target" in page.text) == (task == "regression")
    assert ("predicts different classes for" in page.text) == (task != "regression")
    for tag in ("desc", "title"):
        assert tag in [name for name, _ in page.tags]
    assert render_report(summary) == render_report(summarise_run(run))


def test_course_equals_that_of_the_traced_pools(tmp_path):
    run = make_run(tmp_path / "run", n_trials=30, predictions=True, settings={"metric": "log_loss"})
    course = summarise_run(run)["diversity"]["course"]
    read = read_predictions(run)
    expected = trace_pool(read.predictions, read.losses, read.y, METRICS["log_loss"], tie="secondary")
    assert [value for _, value in course["minimum"]] == expected.minimum_diversity[1:].tolist()
    assert [score for _, score in course["member_scores"]] == expected.member_losses.tolist()


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "No predictions were recorded"),
        ({"predictions": True, "n_trials": 5}, "8 successful trials"),
        ({"predictions": True, "settings": {"own_objects": ["metric"], "metric": "x"}}, "for a custom metric"),
        ({"predictions": True, "settings": {"own_objects": ["resampling"]}}, "cannot be read"),
        ({"predictions": True, "n_trials": 300, "settings": {"metric": "f1_macro"}}, "too long"),
    ],
)
def test_missing_figures_are_explained(tmp_path, options, reason):
    summary = summarise_run(make_run(tmp_path / "run", **options))
    assert summary["diversity"]["course"] is None
    assert reason in check_inert(render_report(summary)).text


def test_custom_metric_keeps_the_heat_map(tmp_path):
    settings = {"own_objects": ["metric"], "metric": "x"}
    run = make_run(tmp_path / "run", predictions=True, settings=settings, facts=weighted(1, 2, -1))
    summary = summarise_run(run)
    assert len(summary["diversity"]["matrix"]) == 2
    assert "How different are the members?" in check_inert(render_report(summary)).text


@pytest.mark.parametrize("damage", ["gone", "short", "garbage", "classes"])
def test_damaged_predictions_cost_only_the_figures(tmp_path, damage):
    run = make_run(tmp_path / "run", predictions=True)
    path = run / "predictions" / "000007.npy"
    match damage:
        case "gone":
            path.unlink()
        case "short":
            np.save(path, np.zeros((3, 2), dtype=np.float32))
        case "garbage":
            path.write_bytes(b"\x93NUMPY")
        case "classes":
            np.save(path, np.zeros((1000, 5), dtype=np.float32))
    assert "cannot be read" in check_inert(render_report(summarise_run(run))).text


def test_non_finite_predictions_are_left_out(tmp_path):
    run = make_run(tmp_path / "run", predictions=True)
    np.save(run / "predictions" / "000007.npy", np.full((1000, 2), np.nan, dtype=np.float32))
    found = summarise_run(run)["diversity"]
    assert 7 not in [number for number, _ in found["course"]["minimum"]]
