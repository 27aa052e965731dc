from __future__ import annotations

import html
import json
import math
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from fake_runs import TRACEBACK, hostile_texts, make_run, some_failures, write
from report_page import CONTROL, Page, check_inert, complaints

from cashmere.analysis import pairwise_diversity, read_predictions, trace_pool
from cashmere.ensembles import WeightedEnsemble
from cashmere.evaluation.metrics import METRICS
from cashmere.exceptions import RunDirectoryError
from cashmere.records.trial import TrialStatus
from cashmere.report import render_report, summarise_run, write_report
from cashmere.report.summary.members import configuration_summary
from cashmere.storage.store import RunStore


def hostile_run(folder: Path) -> Path:
    texts = hostile_texts()
    failures = {i: (TrialStatus.ERROR, f"{text}\n{text}") for i, text in enumerate(texts) if i % 4 != 3}
    dropped = [{"name": text, "kind": "categorical", "dropped": f"duplicate of {text!r}"} for text in texts]
    used = [{"name": text, "kind": "categorical", "categories": texts[:20]} for text in texts]
    run = make_run(
        folder,
        n_trials=len(texts),
        failures=failures,
        algorithms=tuple(t for t in texts[:6]),
        columns=dropped[::2] + used[1::2],
        classes=tuple(texts[:40]),
        task="multiclass",
        settings={"target_name": texts[1], "metric": texts[0], "space": texts[3], "own_objects": ["metric", "space"]},
        facts={
            "stop_reason": texts[2],
            "digest": texts[4],
            "decision": {"metric": texts[0], "thresholds": [1 / 40] * 40, "gain": 0.1, "tuned": True},
        },
    )
    content = json.loads((run / "run.json").read_text())
    write(run / "run.json", {**content, "id": texts[5], "created": texts[6], "versions": {texts[7]: texts[8]}})
    return run


# ---------------------------------------------------------------- summary


def test_summary_of_a_finished_run(tmp_path):
    summary = summarise_run(make_run(tmp_path / "run", n_trials=60, failures=some_failures()))
    head = summary["headline"]
    assert (head["trials"], head["failures"], head["stop_reason"]) == (60, 6, "time budget spent")
    assert head["best_score"] == summary["leaderboard"][0]["score"]
    assert head["ensemble_score"] > head["honest_score"] > head["baseline_score"] == 0.5
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


def test_causes_that_differ_in_numbers_only_are_one(tmp_path):
    failures = summarise_run(make_run(tmp_path / "run", failures=some_failures()))["failures"]
    assert [(f["status"], f["count"]) for f in failures] == [("timeout", 2), ("memory", 2), ("error", 2)]
    assert failures[2]["trials"] == [22, 30]
    assert failures[0]["traceback"] is None


def test_paths_of_users_and_packages_are_shortened(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    run = make_run(
        tmp_path / "run",
        n_trials=3,
        failures={0: (TrialStatus.ERROR, TRACEBACK), 1: (TrialStatus.ERROR, f"OSError: {tmp_path}/x.csv")},
        settings={"space": f"<function space at 0x7f0012345678 {tmp_path}/s.py>", "own_objects": ["space"]},
    )
    page = render_report(summarise_run(run))
    for private in ("/home/ada", "/root", str(tmp_path), "0x7f0012345678"):
        assert private not in page
    for shown in (".../sklearn/base.py", "~/project/learner.py", "~/x.csv"):
        assert shown in page


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("n_trials", [0, 1, 5])
def test_short_and_unfinished_runs_have_a_report(tmp_path, n_trials, finished):
    run = make_run(tmp_path / "run", n_trials=n_trials, finished=finished)
    summary = summarise_run(run)
    page = check_inert(render_report(summary))
    assert ("not come to its end" in page.text) == (not finished)
    assert ("No trial has finished yet" in page.text) == (n_trials == 0)
    json.dumps(summary, allow_nan=False)


def test_run_without_facts_table_and_schema_has_a_report(tmp_path):
    run = make_run(tmp_path / "run", n_trials=2, finished=False)
    (run / "table.npz").unlink()
    (run / "schema.json").unlink()
    write(run / "run.json", {"format": "cashmere run", "version": 1})
    check_inert(render_report(summarise_run(run)))


def test_damaged_class_table_costs_the_counts_only(tmp_path):
    run = make_run(tmp_path / "run", n_trials=1)
    (run / "table.npz").write_bytes(b"PK\x03\x04 broken")
    assert [c["rows"] for c in summarise_run(run)["data"]["classes"]] == [None, None]


def test_regression_with_a_loss_to_minimise(tmp_path):
    run = make_run(tmp_path / "run", task="regression", classes=(), settings={"metric": "rmse"})
    summary = summarise_run(run)
    assert summary["headline"]["best_score"] == summary["headline"]["best_loss"]
    assert "lower is better" in check_inert(render_report(summary)).text


def test_own_metric_shows_losses(tmp_path):
    run = make_run(tmp_path / "run", settings={"metric": "<function cost at 0x7f00>", "own_objects": ["metric"]})
    page = check_inert(render_report(summarise_run(run)))
    assert "own metric: losses are shown" in page.text
    assert "<function cost>" in page.text


def test_losses_of_any_size_are_drawn(tmp_path):
    losses = [1e308, 1e-308, 5.0, 4.0, 1e30, 3.0, -2.0, 0.0]
    run = make_run(
        tmp_path / "run", n_trials=8, losses=losses, task="regression", classes=(), settings={"metric": "mse"},
        facts={"baseline_loss": 1e300, "honest_loss": math.nan, "utilisation": math.inf},
    )  # fmt: skip
    summary = summarise_run(run)
    json.dumps(summary, allow_nan=False)
    check_inert(render_report(summary))


def test_constant_member_and_stacking_are_named(tmp_path):
    ensemble = {"kind": "stacked", "members": [-1, 2], "coefficients": [[1.0, 1.0]]}
    page = check_inert(render_report(summarise_run(make_run(tmp_path / "run", facts={"ensemble": ensemble}))))
    assert "constant prediction" in page.text
    assert "stacked" in page.text


def with_decision(thresholds, gain, *, tuned=True, classes=("bad", "good"), folder):
    decision = {"metric": "g_mean", "greater_is_better": True, "thresholds": thresholds, "gain": gain, "tuned": tuned}
    task = "binary" if len(classes) == 2 else "multiclass"
    run = make_run(folder, task=task, classes=classes, facts={"decision": decision})
    return " ".join(check_inert(render_report(summarise_run(run))).text.split())


@pytest.mark.parametrize(
    ("thresholds", "gain", "tuned", "expected"),
    [
        (
            [0.88, 0.12],
            0.054,
            True,
            "good is predicted where its probability is at least 0.1200, else bad. Against the most probable class "
            "this raised g_mean by 0.0540 on rows that did not choose the threshold.",
        ),
        ([0.7, 0.3], -0.01, False, "Against the most probable class this lowered g_mean by 0.0100."),
        (None, -0.01, True, "tuned thresholds did not improve g_mean on rows that did not choose them."),
        (None, None, True, "there were too few rows to tune thresholds."),
    ],
)
def test_decision_is_told_with_its_gain(tmp_path, thresholds, gain, tuned, expected):
    assert expected in with_decision(thresholds, gain, tuned=tuned, folder=tmp_path / "run")


def test_thresholds_of_many_classes_are_listed_up_to_a_limit(tmp_path):
    classes = tuple(f"c{i}" for i in range(40))
    text = with_decision([0.5] + [0.5 / 39] * 39, 0.1, classes=classes, folder=tmp_path / "run")
    assert "exceeds its threshold by the largest factor" in text
    assert "on rows that did not choose the thresholds." in text
    assert "and 10 more" in text


def test_configuration_summary_is_short():
    summary = configuration_summary({"algorithm": "mlp", "mlp:width": 3, "mlp:rate": 1 / 3, "scaler": "x" * 500})
    assert summary["rate"] == "0.3333"
    assert summary["width"] == "3"
    assert len(summary["scaler"]) == 60


# ---------------------------------------------------------------- diversity


@pytest.mark.parametrize(
    ("goal", "shown"),
    [
        ({"trials": None, "seconds": 300.0}, "5m"),
        ({"trials": None, "seconds": 619.4}, "5m at first, 10 min 19 s in all"),
        ({"trials": 1250, "seconds": 600.0}, "5m at first, 10 min and 1,250 trials in all"),
        ({"trials": "<b>", "seconds": float("inf")}, "5m"),
        (None, "5m"),
    ],
)
def test_budget_is_what_all_calls_were_allowed(tmp_path, goal, shown):
    run = make_run(tmp_path / "run", n_trials=1, facts={"goal": goal})
    assert summarise_run(run)["budget"] == shown


def test_rare_origins_are_counted_together(tmp_path):
    run = make_run(tmp_path / "run", n_trials=40)
    with sqlite3.connect(run / "run.sqlite") as database:
        database.execute("UPDATE trials SET origin = 'round ' || number WHERE number < 9")
    origins = summarise_run(run)["origins"]
    assert (len(origins), origins["random"], origins["of other origin"]) == (9, 31, 2)


def test_origins_in_contests_are_counted_by_what_the_inner_strategies_say(tmp_path):
    run = make_run(tmp_path / "run", n_trials=10)
    with sqlite3.connect(run / "run.sqlite") as database:
        database.execute("UPDATE trials SET origin = 'round 1 · svm | under · model' WHERE number < 4")
        database.execute("UPDATE trials SET origin = 'round 0 · a · start: smote + ' || number WHERE number > 6")
    assert summarise_run(run)["origins"] == {"model": 4, "random": 3, "start": 3}


def members(*numbers):
    return {"ensemble": WeightedEnsemble(numbers, (1 / len(numbers),) * len(numbers)).to_json()}


@pytest.mark.parametrize(
    ("task", "classes", "metric"),
    [("binary", ("bad", "good"), "roc_auc"), ("multiclass", ("a", "b", "c"), "log_loss"), ("regression", (), "rmse")],
)
def test_diversity_of_trials_and_members_is_shown(tmp_path, task, classes, metric):
    run = make_run(
        tmp_path / "run", n_trials=60, failures=some_failures(), predictions=True, task=task, classes=classes,
        settings={"metric": metric}, facts=members(50, 51, 54, 55),
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


def test_course_is_that_of_the_pools_of_the_run(tmp_path):
    run = make_run(tmp_path / "run", n_trials=30, predictions=True, settings={"metric": "log_loss"})
    course = summarise_run(run)["diversity"]["course"]
    read = read_predictions(run)
    expected = trace_pool(read.predictions, read.losses, read.y, METRICS["log_loss"], tie="secondary")
    assert [value for _, value in course["minimum"]] == expected.minimum_diversity[1:].tolist()
    assert [score for _, score in course["member_scores"]] == expected.member_losses.tolist()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "No predictions were recorded"),
        ({"predictions": True, "n_trials": 5}, "8 successful trials"),
        ({"predictions": True, "settings": {"own_objects": ["metric"], "metric": "x"}}, "The metric is an own one"),
        ({"predictions": True, "settings": {"own_objects": ["resampling"]}}, "cannot be read"),
        ({"predictions": True, "n_trials": 300, "settings": {"metric": "f1_macro"}}, "too long"),
    ],
)
def test_missing_figures_are_explained(tmp_path, options, reason):
    summary = summarise_run(make_run(tmp_path / "run", **options))
    assert summary["diversity"]["course"] is None
    assert reason in check_inert(render_report(summary)).text


def test_own_metric_leaves_the_heat_map(tmp_path):
    settings = {"own_objects": ["metric"], "metric": "x"}
    run = make_run(tmp_path / "run", predictions=True, settings=settings, facts=members(1, 2, -1))
    summary = summarise_run(run)
    assert len(summary["diversity"]["matrix"]) == 2
    assert "How different are the members?" in check_inert(render_report(summary)).text


@pytest.mark.parametrize("damage", ["gone", "short", "garbage", "classes"])
def test_damaged_predictions_cost_the_figures_only(tmp_path, damage):
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


def test_predictions_that_are_not_finite_are_left_out(tmp_path):
    run = make_run(tmp_path / "run", predictions=True)
    np.save(run / "predictions" / "000007.npy", np.full((1000, 2), np.nan, dtype=np.float32))
    found = summarise_run(run)["diversity"]
    assert 7 not in [number for number, _ in found["course"]["minimum"]]


# ---------------------------------------------------------------- warnings


def warnings_of(folder, **options):
    return " ".join(summarise_run(make_run(folder / "run", **options))["warnings"])


def test_warns_when_most_trials_fail(tmp_path):
    failures = dict.fromkeys(range(21), (TrialStatus.TIMEOUT, "over the time limit"))
    assert "More than half of the trials failed (21 of 40)" in warnings_of(tmp_path, failures=failures)


def test_warns_when_all_trials_fail(tmp_path):
    failures = dict.fromkeys(range(4), (TrialStatus.ERROR, "x"))
    assert "All 4 trials failed" in warnings_of(tmp_path, n_trials=4, failures=failures)


def test_warns_when_the_ensemble_is_not_better_than_a_constant(tmp_path):
    facts = {"ensemble_loss": 0.5, "honest_loss": 0.52}
    assert "not better than the constant prediction" in warnings_of(tmp_path, facts=facts)


def test_warns_when_only_the_selection_is_better_than_a_constant(tmp_path):
    text = warnings_of(tmp_path, facts={"ensemble_loss": 0.45, "honest_loss": 0.51})
    assert "Judged on rows that did not choose it" in text


def test_warns_when_the_selection_is_clearly_too_optimistic(tmp_path):
    text = warnings_of(tmp_path, facts={"ensemble_loss": 0.3, "honest_loss": 0.35})
    assert "25% of its gain" in text


def test_does_not_warn_for_a_little_optimism(tmp_path):
    assert warnings_of(tmp_path, facts={"ensemble_loss": 0.3, "honest_loss": 0.315}) == ""


# ---------------------------------------------------------------- page


def test_report_is_written_beside_the_run(tmp_path):
    run = make_run(tmp_path / "run", failures=some_failures())
    path = write_report(run)
    assert path == run / "report.html"
    page = check_inert(path.read_text("utf-8"))
    for word in (
        "credit_risk",
        "roc_auc",
        "time budget spent",
        "3f0c6a1b9d22",
        "customer_id",
        "identifier",
        "2.1.0",
        "3.3 MiB",
    ):
        assert word in page.text
    assert "and 14 more" in page.text
    assert path.stat().st_size < 200_000
    assert write_report(run).read_text("utf-8") == path.read_text("utf-8")


def test_report_can_be_written_while_the_run_works(tmp_path):
    run = make_run(tmp_path / "run", n_trials=3, finished=False)
    with RunStore(run):
        assert write_report(run).exists()


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(RunDirectoryError):
        write_report(tmp_path)


def test_hostile_names_stay_text(tmp_path):
    run = hostile_run(tmp_path / "run")
    summary = summarise_run(run)
    page = check_inert(render_report(summary))
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert not CONTROL.search(json.dumps(summary, ensure_ascii=False).replace("\\n", ""))
    assert len(render_report(summary)) < 1_000_000


# ---------------------------------------------------------------- in a browser


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["good", "hostile", "empty"])
def test_browser_shows_the_report_without_complaint(tmp_path, browser, kind):
    if kind == "hostile":
        run = hostile_run(tmp_path / "run")
    else:
        run = make_run(
            tmp_path / "run", n_trials=60 if kind == "good" else 0, failures=some_failures(), predictions=True
        )
    path = write_report(run)
    dom, console = browser(path, "--dump-dom")
    assert complaints(console) == []
    page = check_inert(dom)
    assert page.text.split() == Page(path.read_text("utf-8")).text.split()  # nothing was repaired or moved
    picture = tmp_path / "report.png"
    browser(path, f"--screenshot={picture}", "--window-size=1000,1400")
    assert picture.stat().st_size > 20_000


@pytest.mark.browser
def test_browser_would_complain_about_active_content(tmp_path, browser):
    page = write_report(make_run(tmp_path / "run", n_trials=1)).read_text("utf-8")
    path = tmp_path / "active.html"
    path.write_text(page.replace("</main>", "<script>document.title = 'run'</script></main>"))
    dom, console = browser(path, "--dump-dom")
    assert complaints(console)
    assert "<title>run</title>" not in dom


@pytest.mark.browser
@pytest.mark.parametrize("width", [320, 390, 1000])
def test_page_is_never_wider_than_the_screen(tmp_path, browser, width):
    for name, run in (
        (
            "good",
            make_run(tmp_path / "good", failures=some_failures(), predictions=True, facts=members(*range(10, 20))),
        ),
        ("hostile", hostile_run(tmp_path / "hostile")),
    ):
        page = html.escape(write_report(run).read_text("utf-8").replace("<details>", "<details open>"))
        frame = tmp_path / f"{name}.html"
        frame.write_text(
            f'<iframe width="{width}" height="800" style="border:0" srcdoc="{page}"></iframe><p id="answer"></p>'
            "<script>addEventListener('load', () => { document.getElementById('answer').textContent ="
            " 'wide=' + document.querySelector('iframe').contentDocument.documentElement.scrollWidth; })</script>",
            "utf-8",
        )
        dom, _ = browser(frame, "--dump-dom")
        found = re.search(r'<p id="answer">wide=(\d+)</p>', dom)
        assert found is not None
        assert int(found.group(1)) <= width
