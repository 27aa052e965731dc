from __future__ import annotations

import json

import pytest
from fake_runs import hostile_texts, make_run, some_failures
from sklearn.metrics import fbeta_score, mean_pinball_loss

from cashmere.base.text import clean_text, redact
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric, metric_from_callable
from cashmere.exceptions import CorruptStoreError, RunDirectoryError
from cashmere.execution.exception_cause import cause_of_exception
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.path import FollowedPath
from cashmere.records.trial import TrialStatus
from cashmere.run.settings import RunSettings
from cashmere.storage.store import RunStore
from cashmere.storage.trial_tables import (
    FAILURE_COLUMNS,
    LEADERBOARD_COLUMNS,
    cause_of,
    ensemble_weights,
    failures_table,
    leaderboard,
    reached,
    run_failures,
    run_leaderboard,
    run_trials,
    stored_metric,
    stored_scale,
    what_to_try,
)


def row(number, loss, status="success", **others):
    configuration = {"algorithm": "knn", "knn:p": 1}
    base = {"number": number, "configuration": configuration, "status": status, "loss": loss, "fit_seconds": 1.5}
    error = others.pop("error", None)
    return {**base, "error": None if error is None else Cause.parse(error), **others}


def test_best_loss_comes_first_and_the_earlier_of_equals():
    table = leaderboard([row(0, 0.3), row(1, 0.1), row(2, 0.3), row(3, 0.2)])
    assert table["trial"].tolist() == [1, 3, 0, 2]
    assert table["rank"].tolist() == [1, 2, 3, 4]


def test_failures_and_losses_that_are_not_finite_are_left_out():
    rows = [row(0, None, "error"), row(1, float("nan")), row(2, float("inf")), row(3, 0.2)]
    assert leaderboard(rows)["trial"].tolist() == [3]


@pytest.mark.parametrize(
    ("parameter", "chosen", "text"),
    [("epochs", 1, "1 epoch"), ("neighbours", 1.0, "1 neighbour"), ("trees", 10, "10 trees"), ("C", 1.0, "C 1")],
)
def test_what_was_reached_is_counted_in_words(parameter, chosen, text):
    path = FollowedPath(parameter=parameter, positions=(chosen,), losses=(0.5,), chosen=chosen)
    assert reached({"path": path, "fidelity": 1.0, "cut_short": None}) == text


def test_score_is_in_the_direction_of_the_metric():
    accuracy = get_metric("accuracy", TaskType.BINARY)
    assert leaderboard([row(0, 0.25)], scale=accuracy)["score"].tolist() == [0.75]
    assert leaderboard([row(0, 0.25)])["score"].tolist() == [0.25]


def test_weights_are_those_of_the_ensemble():
    table = leaderboard([row(0, 0.2), row(1, 0.1)], weights={0: 0.4, -1: 0.6})
    assert dict(zip(table["trial"], table["weight"], strict=True)) == {1: 0.0, 0: 0.4}


def test_origin_and_configuration_of_each_trial_are_listed():
    other = row(1, 0.1, origin="warm start", configuration={"algorithm": "svm", "svm:C": 2.0})
    table = leaderboard([row(0, 0.2, origin="mod\x1b[31mel"), other])
    assert table["origin"].tolist() == ["warm start", "model"]
    assert table["configuration"].tolist() == [
        {"algorithm": "svm", "svm:C": 2.0},
        {"algorithm": "knn", "knn:p": 1},
    ]


def test_empty_tables_have_their_columns():
    assert tuple(leaderboard([]).columns) == (*LEADERBOARD_COLUMNS, "configuration")
    assert tuple(failures_table([]).columns) == FAILURE_COLUMNS


def test_failures_say_cause_and_what_to_try():
    rows = [row(0, 0.1), row(1, None, "timeout", error="over the time limit of 5 s\nmore"), row(2, None, "error")]
    table = failures_table(rows)
    assert table["trial"].tolist() == [1, 2]
    assert table["cause"].tolist() == ["over the time limit of 5 s", "no cause was recorded"]
    assert "--trial-timeout" in table["what_to_try"][0]


@pytest.mark.parametrize(
    ("status", "cause", "word"),
    [
        ("memory", None, "--memory"),
        ("error", Cause(kind=CauseKind.WORKER_DIED), "logs/"),
        ("error", Cause(kind=CauseKind.WORKER_NOT_READY), "fewer workers"),
        ("error", cause_of_exception(ModuleNotFoundError("No module named 'xgboost'")), "Install"),
        ("error", cause_of_exception(FloatingPointError("knn predicts NaN or infinity on fold 2.")), "converge"),
        ("error", cause_of_exception(ValueError("Input X contains NaN.")), "converge"),
        ("error", cause_of_exception(ValueError("Solver produced non-finite parameter weights.")), "converge"),
        ("error", cause_of_exception(OSError(28, "No space left on device")), "disk space"),
        ("error", cause_of_exception(PermissionError(13, "Permission denied")), "right to write"),
        ("error", cause_of_exception(KeyError(3)), "traceback"),
        ("error", Cause.other("the worker process died"), "traceback"),
    ],
)
def test_advice_fits_the_cause(status, cause, word):
    assert word in what_to_try(status, cause)


def test_stacked_members_share_the_weight():
    assert ensemble_weights({"kind": "stacked", "members": [3, 5]}) == {3: 0.5, 5: 0.5}
    assert ensemble_weights(None) == {}


def test_default_and_custom_metrics_are_known():
    assert stored_metric({"metric": None}, "binary").name == "log_loss"
    assert stored_metric({"metric": "<function f>", "own_objects": ["metric"]}, "binary") is None
    assert stored_metric({"metric": "no such metric"}, "binary") is None
    assert stored_metric({"metric": "rmse"}, None) is None


def test_scores_of_a_custom_metric_have_its_name_and_direction():
    settings = json.loads(json.dumps(RunSettings(metric=metric_from_callable(fbeta_score, name="f2")).to_json()))
    scale = stored_scale(settings, "binary")
    assert (scale.name, scale.score(0.25)) == ("f2", 0.75)
    late = metric_from_callable(mean_pinball_loss, greater_is_better=False, needs="values")
    scale = stored_scale(RunSettings(metric=late).to_json(), "regression")
    assert (scale.name, scale.score(0.25)) == ("mean_pinball_loss", 0.25)
    assert stored_scale(RunSettings(metric=fbeta_score).to_json(), "binary").name == "fbeta_score"
    assert stored_scale({"metric": "<function f>", "own_objects": ["metric"]}, "binary") is None
    assert stored_scale({"metric": None}, "binary").name == "log_loss"


def test_leaderboard_of_a_run_directory(tmp_path):
    folder = make_run(tmp_path / "run", failures=some_failures())
    table, facts = run_leaderboard(folder)
    assert len(table) == 34
    assert table["score"].is_monotonic_decreasing
    assert table["weight"].sum() == pytest.approx(1)
    assert facts.title == "credit_risk: roc_auc, higher is better"
    assert facts.caption.startswith("40 trials, 6 failed; ensemble 0.7")
    assert len(run_failures(folder)) == 6


def test_all_trials_of_a_run_directory(tmp_path):
    folder = make_run(tmp_path / "run", failures=some_failures())
    table, board = run_trials(folder), run_leaderboard(folder)[0].set_index("trial")
    assert table["trial"].tolist() == list(range(40))
    good = table[table["status"] == "success"].set_index("trial")
    assert good["loss"].to_dict() == board["loss"].to_dict()
    assert table["loss"].isna().sum() == table["error"].notna().sum() == 6
    assert not table["error"].str.contains("\n").any() and "memory limit of 2048 MiB" in table["error"][14]
    assert good["param_algorithm"].to_dict() == board["algorithm"].to_dict()


def test_trials_stopped_early_are_not_counted_as_failed(tmp_path):
    folder = make_run(tmp_path / "run", failures={3: (TrialStatus.STOPPED, ""), 5: (TrialStatus.ERROR, "no")})
    table, facts = run_leaderboard(folder)
    assert len(table) == 38
    assert facts.caption.startswith("40 trials, 1 failed; ")


@pytest.mark.parametrize(
    ("scales", "expected"),
    [
        ([2.0, 2.0], "; ensemble calibrated by temperature 0.5, which lowers the loss by 0.012 on unseen rows"),
        ([2.0], None),  # damaged
    ],
)
def test_leaderboard_tells_of_the_calibration(tmp_path, scales, expected):
    calibration = {"scales": scales, "offsets": [0.0, 0.0], "gain": 0.0123}
    _, facts = run_leaderboard(make_run(tmp_path / "run", facts={"calibration": calibration}))
    assert facts.caption.endswith(expected) if expected else "calibrated" not in facts.caption


def test_leaderboard_of_an_unfinished_run(tmp_path):
    table, facts = run_leaderboard(make_run(tmp_path / "run", n_trials=2, finished=False))
    assert len(table) == 2
    assert table["weight"].sum() == 0
    assert "ensemble" not in facts.caption
    assert facts.caption.endswith("; the run has not finished, so weights are not known yet")
    curve = [{"trials": 1, "seconds": 1.0, "ensemble_loss": 0.5}, {"trials": 2, "seconds": 2.0, "ensemble_loss": 0.25}]
    with RunStore(tmp_path / "run") as store:
        store.set_fact("curve", curve)
    _, facts = run_leaderboard(tmp_path / "run")
    assert "; ensemble after 2 trials 0.75; " in facts.caption


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(RunDirectoryError):
        run_leaderboard(tmp_path)
    folder = make_run(tmp_path / "run", n_trials=1)
    (folder / "schema.json").write_text("[")
    with pytest.raises(CorruptStoreError):
        run_leaderboard(folder)


def test_hostile_texts_come_out_clean():
    texts = hostile_texts()
    assert len(texts) >= 200
    for text in texts:
        failure = failures_table([row(0, None, "error", error=text, configuration={"algorithm": text})]).iloc[0]
        for cell in (failure["cause"], failure["algorithm"]):
            assert len(cell) <= 300
            assert cell.isprintable() or "\u200d" in cell or "\u200c" in cell or "＜" in cell
            cell.encode()


def test_clean_text_keeps_what_people_write():
    assert clean_text("Größe (m²) – 大小 😀") == "Größe (m²) – 大小 😀"
    assert clean_text("می\u200cخواهم") == "می\u200cخواهم"


def test_clean_text_cuts_the_middle_of_many_lines():
    lines = "\n".join(f"line {i}" for i in range(100_000))
    text = clean_text(lines, 500, multiline=True)
    assert len(text) <= 500
    assert text.startswith("line 0\n")
    assert text.endswith("line 99999")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('File "/root/a.py"', 'File "~/a.py"'),
        ("/Users/ada/x and C:\\Users\\ada\\y", "~/x and ~\\y"),
        ("/usr/lib/python3/dist-packages/numpy/core.py:3", ".../numpy/core.py:3"),
        ("https://example.org/x?a=1&token=abc", "https://example.org/x?a=1&token=***"),
        ("/data/home/x and /rooted", "/data/home/x and /rooted"),
    ],
)
def test_redact_hides_paths_and_secrets(text, expected):
    assert redact(text) == expected


def test_redact_hides_the_own_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert redact(f"{tmp_path}/data.csv") == "~/data.csv"


def test_cause_is_the_first_line():
    assert cause_of({"error": "\n\nfirst\nsecond"}) == "first"
