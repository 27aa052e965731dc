from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import psutil
import pytest
import typer
from processes import running, wait_until
from sklearn.metrics import f1_score
from typer.testing import CliRunner

from cashmere.cli import app
from cashmere.cli.terminal import typed_errors
from cashmere.data.demo import demo_table
from cashmere.exceptions import ClusterError, ClusterVersionError, RunDirectoryError, RunLockedError
from cashmere.model.predictor import Predictor
from cashmere.report.summary import summarise_run

CASHMERE = [sys.executable, "-m", "cashmere"]
COMMANDS = typer.main.get_command(app).commands


def cashmere(*arguments) -> str:
    """Run a command in this process; return what it printed."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.output


def refused(*arguments, status=2) -> str:
    """Run a command that must end with one of our own errors, or another status; return the message."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == status, (result.output, result.exception)
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "credit.csv"
    demo_table().sample(240, random_state=1).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "first"
    output = cashmere(
        "fit", table, "--target", "target", "--budget", "4trials", "--resampling", "holdout", "--out", folder
    )
    assert "4 trials, 0 failed" in output
    assert "all trials are first configurations of the space; a larger budget lets the search choose others" in output
    assert "Digest: " in output
    return folder


def test_run_directory_holds_what_the_design_says(run):
    for name in (
        "run.json",
        "schema.json",
        "run.sqlite",
        "predictions",
        "members",
        "model/manifest.json",
        "report.html",
    ):
        assert (run / name).exists(), name
    schema = json.loads((run / "schema.json").read_text())
    assert {c["name"] for c in schema["columns"]["columns"]} >= {"credit_amount", "purpose"}


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_predictions_have_the_columns_of_the_contract(run, table, tmp_path, suffix):
    output = tmp_path / f"out{suffix}"
    cashmere("predict", run, table, "-o", output, "--proba", "--quiet")
    frame = pd.read_parquet(output) if suffix == ".parquet" else pd.read_csv(output)
    assert list(frame.columns) == ["prediction", "proba_bad", "proba_good"]
    assert len(frame) == 240
    np.testing.assert_allclose(frame["proba_bad"] + frame["proba_good"], 1, atol=1e-6)
    assert (frame["prediction"] == np.where(frame["proba_bad"] >= 0.5, "bad", "good")).mean() > 0.99


@pytest.mark.long
@pytest.mark.filterwarnings("default:Column:UserWarning")
def test_texts_that_mean_missing_and_dates_that_cannot_be_read_are_told(tmp_path):
    rng = np.random.default_rng(0)
    day = pd.date_range("2024-01-01", periods=120).strftime("%Y-%m-%d").to_numpy(dtype=object)
    income = rng.normal(size=120).round(4).astype(str).astype(object)
    income[::30] = "unknown"
    frame = pd.DataFrame({"day": day, "income": income, "paid": rng.integers(0, 2, 120)})
    frame.to_csv(tmp_path / "table.csv", index=False)
    options = ("--target", "paid", "--budget", "1trial", "--resampling", "holdout", "--workers", 1)
    told = cashmere("fit", tmp_path / "table.csv", *options, "--out", tmp_path / "run")
    assert "'income' holds numbers and a few other texts, such as 'unknown', which are read as missing" in told
    (kept,) = [each for each in summarise_run(tmp_path / "run")["warnings"] if "income" in each]
    assert kept in " ".join(told.split())
    frame.loc[:2, "day"] = "soon"
    frame.to_csv(tmp_path / "new.csv", index=False)
    told = cashmere("predict", tmp_path / "run", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert "3 values of column 'day' not read as dates, treated as missing" in told and "income" not in told


@pytest.mark.long
def test_columns_are_ignored_or_read_as_categories_where_asked(tmp_path):
    rng = np.random.default_rng(0)
    zips = rng.integers(1, 6, 120)
    frame = pd.DataFrame(
        {"policy": 50001 + np.arange(120), "zip": [f"010{z:02d}" for z in zips], "age": rng.random(120)}
    )
    frame.assign(claims=zips % 3).to_csv(tmp_path / "table.csv", index=False)
    told = cashmere("inspect", tmp_path / "table.csv", "--ignore", "policy", "--categorical", "zip")
    assert re.search(r"zip +category +categorical", told) and "policy" not in told
    told = cashmere("inspect", tmp_path / "table.csv", "--ignore", "policy, age", "--categorical", "zip,claims")
    assert re.search(r"claims +category +categorical", told) and not re.search("policy|age", told)
    options = (
        "--target",
        "claims",
        "--metric",
        "rmse",
        "--budget",
        "1trial",
        "--resampling",
        "holdout",
        "--workers",
        1,
    )
    columns = ("--ignore", "policy,age", "--categorical", "zip", "--out", tmp_path / "run")
    assert "rmse: ensemble" in cashmere("fit", tmp_path / "table.csv", *options, *columns)  # a metric of values
    known = {c["name"]: c for c in json.loads((tmp_path / "run" / "schema.json").read_text())["columns"]["columns"]}
    assert known["zip"]["categories"][0] == "01001" and not {"policy", "age"} & set(known)
    frame.to_csv(tmp_path / "new.csv", index=False)
    told = cashmere("predict", tmp_path / "run", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert "zip" not in told  # the levels are those of training
    assert "'policies'" in refused(
        "fit", tmp_path / "table.csv", *options, "--ignore", "policies", "--out", tmp_path / "b"
    )


def test_rows_without_a_target_are_left_out_where_asked(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"income": rng.normal(size=120), "client": np.arange(120) // 2, "paid": rng.integers(0, 2, 120)}
    )
    frame["paid"] = frame["paid"].astype("Int64").where(np.arange(120) % 10 > 0)
    frame.to_csv(tmp_path / "table.csv", index=False)
    options = ("--target", "paid", "--groups", "client", "--budget", "1trial", "--out", tmp_path / "run")
    assert "with --drop-missing-target" in refused("fit", tmp_path / "table.csv", *options)
    told = cashmere("fit", tmp_path / "table.csv", *options, "--drop-missing-target")
    assert "12 rows without a target left out." in told
    assert list(Predictor.load(tmp_path / "run" / "model").classes_) == [0, 1]


@pytest.mark.long
def test_values_that_stand_for_no_target_are_left_out(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.normal(size=150)})
    frame["price"] = (3 * frame["income"] + rng.normal(size=150)).round(2).astype(str)
    frame.loc[::30, "price"], frame.loc[1::75, "price"] = "on request", "-"
    frame.to_csv(tmp_path / "table.csv", index=False)
    options = ("--target", "price", "--missing-target", "on request", "--missing-target", "-")
    told = cashmere("inspect", tmp_path / "table.csv", *options)
    assert "7 rows without a target left out." in told and "regression, values from" in told
    table, run = tmp_path / "table.csv", tmp_path / "run"
    told = cashmere("fit", table, *options, "--budget", "1trial", "--out", run)
    assert "7 rows without a target left out." in told and "rmse" in told
    assert "leave out their rows (with --missing-target" in refused("score", run, table)
    assert "7 rows without a target" in cashmere("score", run, table, *options[2:])
    assert "7 rows without a target" in cashmere("retrain", run, table, *options[2:], "--out", tmp_path / "newer")
    unknown = refused("fit", table, "--target", "price", "--missing-target", "none", "--budget", "1trial", "--out", run)
    assert "--missing-target must be a value of the target 'price'; got 'none'" in unknown


@pytest.mark.long
def test_nearly_perfect_scores_are_doubted(tmp_path):
    frame = pd.DataFrame({"noise": np.arange(200) % 7, "copy": np.arange(200) % 2, "bad": np.arange(200) % 2})
    frame.to_csv(tmp_path / "table.csv", index=False)
    options = ("--target", "bad", "--budget", "4trials", "--resampling", "holdout", "--workers", 1)
    options = (*options, "--out", tmp_path / "run")
    assert "The ensemble is nearly perfect" in cashmere("fit", tmp_path / "table.csv", *options)
    assert "predicts alone" in cashmere("inspect", tmp_path / "table.csv", "--target", "bad")


@pytest.mark.long
def test_decision_threshold_decides_the_predictions(table, tmp_path):
    folder, output = tmp_path / "run", tmp_path / "out.csv"
    options = ("--target", "target", "--budget", "2trials", "--resampling", "holdout", "--workers", 1, "--out", folder)
    assert "Decision threshold: good from a probability of 0.8 (balanced_accuracy better by" in cashmere(
        "fit", table, *options, "--decision-threshold", "0.8"
    )
    cashmere("predict", folder, table, "-o", output, "--proba")
    frame = pd.read_csv(output)
    np.testing.assert_array_equal(frame["prediction"] == "good", frame["proba_good"] >= 0.8)
    assert "Decision" in (folder / "report.html").read_text()


@pytest.mark.long
def test_decision_threshold_reaches_a_rate(table, tmp_path):
    folder, refined, output = tmp_path / "run", tmp_path / "refined", tmp_path / "out.csv"
    options = ("--target", "target", "--budget", "2trials", "--resampling", "3fold", "--workers", 1, "--out", folder)
    options = (*options, "--pos-label", "bad")
    shown = cashmere("fit", table, *options, "--decision-threshold", "sensitivity>=0.9")
    assert re.search(r"bad from a probability of 0\.\d+ \(for recall>=0\.9; balanced_accuracy", shown)
    assert "chosen for recall&gt;=0.9 on validation rows" in (folder / "report.html").read_text()
    cashmere("refine", folder, "--decision-threshold", "precision>=0.5", "--out", refined)
    found = {}
    for run in (folder, refined):
        cashmere("predict", run, table, "-o", output)
        found[run] = pd.read_csv(output)["prediction"] == "bad"
    is_bad = pd.read_csv(table)["target"] == "bad"
    assert found[folder][is_bad].mean() > 0.85
    assert 0 < found[refined].mean() < 0.8 * found[folder].mean()
    assert is_bad[found[refined]].mean() > 0.45


@pytest.mark.long
def test_positive_class_may_be_the_first(table, tmp_path):
    folder, output = tmp_path / "run", tmp_path / "out.csv"
    options = ("--target", "target", "--budget", "2trials", "--resampling", "holdout", "--workers", 1, "--out", folder)
    shown = cashmere("fit", table, *options, "--decision-threshold", "0.2", "--pos-label", "bad", "--metric", "f1")
    assert "Decision threshold: bad from a probability of 0.2" in shown
    cashmere("predict", folder, table, "-o", output, "--proba")
    frame = pd.read_csv(output)
    np.testing.assert_array_equal(frame["prediction"] == "bad", frame["proba_bad"] >= 0.2)
    score = f1_score(pd.read_csv(table)["target"], frame["prediction"], pos_label="bad")
    assert f"{score:.5g}" in cashmere("score", folder, table, "--metric", "f1")
    assert "--pos-label must be one of the two classes" in refused(
        "fit", table, *options[:-1], tmp_path / "none", "--pos-label", "worst"
    )


def test_class_that_is_never_predicted_is_mentioned(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "left": np.where(rng.random(300) < 0.06, "yes", "no")})
    frame.to_csv(tmp_path / "t.csv", index=False)
    options = ("--target", "left", "--budget", "1trials", "--include", "logistic_regression", "--workers", 1)
    cashmere("fit", tmp_path / "t.csv", *options, "--out", tmp_path / "run")
    told = cashmere("predict", tmp_path / "run", tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    assert "no row is predicted as 'yes', whose probability is at most 0." in " ".join(told.split())
    frame.head(9).to_csv(tmp_path / "few.csv", index=False)
    told = cashmere("predict", tmp_path / "run", tmp_path / "few.csv", "-o", tmp_path / "p.csv")
    assert "no row" not in told


def test_run_can_be_moved(run, table, tmp_path):
    import shutil

    moved = shutil.copytree(run, tmp_path / "elsewhere")
    before, after = tmp_path / "before.csv", tmp_path / "after.csv"
    cashmere("predict", run, table, "-o", before)
    cashmere("predict", moved, table, "-o", after)
    assert before.read_text() == after.read_text()
    assert "6 trials" in cashmere("resume", moved, "--budget", "2trials")


def test_ensemble_is_retrained_on_newer_rows(run, table, tmp_path):
    newer = pd.read_csv(table).sample(160, random_state=2).assign(comment="new")
    newer.to_csv(tmp_path / "newer.csv", index=False)
    output = cashmere("retrain", run, tmp_path / "newer.csv", "--out", tmp_path / "new", "--workers", 1)
    assert "1 column that the run does not know left out: 'comment'." in output
    n_members = len(json.loads((run / "model" / "manifest.json").read_text())["ensemble"]["members"])
    assert f"{n_members} trial" in output and "Report: " in output
    assert "Note: the trials are members of an earlier run. To search on: cashmere resume" in " ".join(output.split())
    assert len(cashmere("predict", tmp_path / "new", table, "-o", tmp_path / "p.csv")) > 0
    newer.drop(columns="purpose").to_csv(tmp_path / "fewer.csv", index=False)
    message = refused("retrain", run, tmp_path / "fewer.csv", "--out", tmp_path / "fewer")
    assert "has learned from 1 column that the table lacks: 'purpose'" in message
    assert not (tmp_path / "fewer").exists()


def test_retraining_finds_the_column_of_row_weights(table, tmp_path):
    pd.read_csv(table).assign(persons=2.5).to_csv(tmp_path / "weighted.csv", index=False)
    options = ("--target", "target", "--budget", "1trials", "--include", "logistic_regression", "--workers", 1)
    cashmere("fit", tmp_path / "weighted.csv", *options, "--sample-weight", "persons", "--out", tmp_path / "run")
    cashmere("retrain", tmp_path / "run", tmp_path / "weighted.csv", "--out", tmp_path / "new", "--workers", 1)
    assert json.loads((tmp_path / "new" / "run.json").read_text())["settings"]["weight_name"] == "persons"
    arguments = ("retrain", tmp_path / "run", tmp_path / "weighted.csv", "--out", tmp_path / "other")
    assert "'persons'?" in refused(*arguments, "--sample-weight", "person")


def test_model_of_a_run_that_has_not_finished_says_so(table, tmp_path, monkeypatch):
    from cashmere.run.session import Session

    def die(self, stop_reason):
        raise MemoryError

    options = ("--target", "target", "--budget", "2trials", "--include", "logistic_regression", "--workers", 1)
    with monkeypatch.context() as patch:
        patch.setattr(Session, "finish", die)
        CliRunner().invoke(app, [*map(str, ("fit", table, *options, "--out", tmp_path / "run"))])
    note = "the run has not finished; this is its model after"
    board = " ".join(cashmere("leaderboard", tmp_path / "run").split())
    assert "the run has not finished, so weights are not known yet" in board and " weight " not in board
    for arguments in (
        ("predict", tmp_path / "run", table, "-o", tmp_path / "p.csv"),
        ("score", tmp_path / "run", table),
    ):
        assert note in " ".join(cashmere(*arguments).split())
    cashmere("resume", tmp_path / "run")
    assert note not in " ".join(cashmere("score", tmp_path / "run", table).split())


def test_tables_are_wider_than_a_narrow_terminal(monkeypatch, capsys):
    from rich.table import Table

    from cashmere.cli.terminal import print_whole

    monkeypatch.setenv("COLUMNS", "30")
    grid = Table(box=None)
    for name in ("metric", "score", "95 % interval"):
        grid.add_column(name, no_wrap=True)
    grid.add_row("balanced_accuracy", "0.031142", "-0.0234 to +0.00123")
    print_whole(grid)
    assert "balanced_accuracy  0.031142  -0.0234 to +0.00123" in capsys.readouterr().out


def test_leaderboard_and_report_read_the_run(run, tmp_path):
    output = cashmere("leaderboard", run)
    assert "4 trials written to" in cashmere("leaderboard", run, "-o", tmp_path / "board.csv")
    board = pd.read_csv(tmp_path / "board.csv")
    assert board["loss"].is_monotonic_increasing
    assert all(name in output for name in board["algorithm"])  # none is broken, however narrow the terminal
    assert "fit (s)" in output and all(f"{seconds:.3g}\n" in output for seconds in board["fit_seconds"])
    assert set(board["origin"]) == {"warm start"} and "warm start" in output
    assert [json.loads(text)["algorithm"] for text in board["configuration"]] == board["algorithm"].tolist()
    cashmere("leaderboard", run, "-o", tmp_path / "board.json")
    found = json.loads((tmp_path / "board.json").read_text())
    assert [row["loss"] for row in found] == pytest.approx(board["loss"].tolist(), rel=1e-14)
    assert [row["configuration"]["algorithm"] for row in found] == board["algorithm"].tolist()
    assert cashmere("report", run).strip().endswith("report.html")


def test_kept_columns_are_copied_as_they_are_written(run, table, tmp_path):
    frame = pd.read_csv(table).head(4).assign(id=["007", "", "=1+1", "1e5"], note=["NA", "a;b", "x", '"q"'])
    frame.to_csv(tmp_path / "new.csv", index=False)
    keep = ("--keep", "note", "--keep", "id", "--keep", "note")
    told = cashmere("predict", run, tmp_path / "new.csv", "-o", tmp_path / "out.csv", "--proba", *keep)
    assert "1 text that a spreadsheet would run" in told
    written = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    assert list(written)[:3] == ["note", "id", "prediction"] and len(written) == 4
    assert written["id"].tolist() == ["007", "", "'=1+1", "1e5"] and written["note"].tolist() == frame["note"].tolist()
    frame.to_parquet(tmp_path / "new.parquet")
    cashmere("predict", run, tmp_path / "new.parquet", "-o", tmp_path / "out.parquet", "--keep", "credit_amount")
    kept = pd.read_parquet(tmp_path / "out.parquet")
    assert kept["credit_amount"].tolist() == frame["credit_amount"].tolist()
    assert "Unknown column 'ID'. Did you mean 'id'" in refused(
        "predict", run, tmp_path / "new.csv", "-o", tmp_path / "other.csv", "--keep", "ID"
    )
    frame.assign(prediction=1).to_csv(tmp_path / "new.csv", index=False)
    told = refused("predict", run, tmp_path / "new.csv", "-o", tmp_path / "other.csv", "--keep", "prediction")
    assert "--keep must be columns with other names" in told and not (tmp_path / "other.csv").exists()


def test_new_rows_are_scored_by_member(run, table, tmp_path):
    told = cashmere("score", run, table)
    assert "240 of 240 rows are among those that the run has learned from" in " ".join(told.split())
    assert "Ensemble on 240 rows" in told and "roc_auc" in told and "Its members, best first" in told
    assert "Scores of" in cashmere("score", run, table, "--metric", "mcc", "-o", tmp_path / "scores.csv")
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert list(scores) == ["model", "algorithm", "weight", "mcc"] and scores["model"][0] == "ensemble"
    assert scores["weight"][1:].sum() == pytest.approx(1)
    told = cashmere("score", run, table, "--by", "housing", "--by", "job", "-o", tmp_path / "scores.json")
    subgroups = json.loads((tmp_path / "scores.json").read_text())["subgroups"]
    assert {row["subgroup"] for row in subgroups} > {"all rows", "housing own", "job skilled"}
    assert "--by must be the name of one column; got 'housing,job'" in refused(
        "score", run, table, "--by", "housing,job"
    )
    told = cashmere("score", run, table, "--by", "housing", "-o", tmp_path / "scores.json")
    written = json.loads((tmp_path / "scores.json").read_text())
    decisions, means = written["decisions"], written["means"]
    shown = f"{means['observed']:.4g}, mean probability: {means['predicted']:.4g}"
    assert f"share of '{decisions['positive']}': {shown}\n" in told
    line = f"'{decisions['positive']}' from a probability of {decisions['threshold']:.3g}: "
    assert f"{line}{decisions['true_positives']} true positives, {decisions['false_positives']} false " in told
    assert sum(n for name, n in decisions.items() if "tives" in name) == 240
    assert f"; recall {decisions['recall']:.3g}, specificity {decisions['specificity']:.3g}, precision" in told
    assert "Ensemble by subgroup" in told and "for free" in told and "observed" in told
    subgroups = json.loads((tmp_path / "scores.json").read_text())["subgroups"]
    assert {row["subgroup"] for row in subgroups} > {"all rows", "own"}
    told = cashmere("score", run, table, "--interval", "0.8", "--by-class", "-o", tmp_path / "scores.json")
    assert "Rows within sets of 80 %" in told and "class bad" in told
    covered = json.loads((tmp_path / "scores.json").read_text())["covered"]
    assert [row["part"] for row in covered] == ["all rows", "class", "class"]
    other = tmp_path / ("a path that no title of eighty columns would hold " * 2).strip()
    other.symlink_to(run, target_is_directory=True)
    told = cashmere("score", run, table, "--against", other, "-o", tmp_path / "scores.json")
    assert f"Compared with {other}\n" in told and "unclear" in told
    assert f"that {other} has learned from" in told.replace("\n", " ")
    compared = json.loads((tmp_path / "scores.json").read_text())["compared"]
    assert [row["difference"] for row in compared] == [0.0] * len(compared)
    assert "does not exist" in refused("score", run, table, "--against", tmp_path / "missing")
    assert "--interval must be" in refused("score", run, table, "--interval", "80")
    assert "need --interval" in refused("score", run, table, "--by-class")
    frame = pd.read_csv(table).rename(columns={"target": "result"})
    frame.loc[:9, "result"] = None
    frame.to_csv(tmp_path / "other.csv", index=False)
    assert "Unknown column 'target'" in refused("score", run, tmp_path / "other.csv")
    told = cashmere("score", run, tmp_path / "other.csv", "--target", "result")
    assert "10 rows without a target left out" in told and "Ensemble on 230 rows" in told


def test_refined_thresholds_say_what_they_do(run, tmp_path):
    told = cashmere("refine", run, "--decision-threshold", "0.3", "--out", tmp_path / "model")
    assert "Validation rows: 'good' from a probability of 0.3: " in told and " false positives, " in told
    assert "Validation rows" not in cashmere("refine", run, "--out", tmp_path / "other")


def test_required_scores_decide_the_status(run, table, tmp_path):
    assert "Requirement" not in cashmere("score", run, table, "--require", "accuracy=0.3", "--require", "log_loss=9")
    told = refused("score", run, table, "--require", "AUC=1.01", "--require", "log_loss=-1", status=1)
    assert "roc_auc is " in told and "not at least 1.01" in told and "log_loss is " in told and "not at most -1" in told
    for bounds in (("log_loss=-1", "log_loss=9"), ("log_loss=9", "log_loss=-1"), ("neg_log_loss=1",)):
        told = refused("score", run, table, *(part for bound in bounds for part in ("--require", bound)), status=1)
        assert told.count("log_loss is") == 1 and "not at most -1" in told
    cashmere("score", run, table, "--require", "neg_log_loss=-9")
    assert "--require must be of the form METRIC=SCORE" in refused("score", run, table, "--require", "accuracy")
    assert "Unknown metric 'sharpness'" in refused("score", run, table, "--require", "sharpness=1")


@pytest.mark.long
def test_weights_and_groups_are_columns(table, tmp_path):
    weighted = pd.read_csv(table)
    weighted["persons"] = np.arange(len(weighted)) % 3
    weighted["household"] = np.arange(len(weighted)) // 4
    weighted.to_csv(tmp_path / "weighted.csv", index=False)
    options = ("--target", "target", "--budget", "2trials", "--groups", "household", "--sample-weight", "persons")
    cashmere("fit", tmp_path / "weighted.csv", *options, "--workers", 1, "--out", tmp_path / "run")
    columns = [column.name for column in Predictor.load(tmp_path / "run").schema.columns]
    assert len(columns) == weighted.shape[1] - 3 and {"target", "persons", "household"}.isdisjoint(columns)
    options = ("--groups", "household", "--sample-weight", "persons", "-o", tmp_path / "scores.json")
    n_rows = int((weighted["persons"] > 0).sum())
    assert f"Ensemble on {n_rows} rows" in cashmere("score", tmp_path / "run", tmp_path / "weighted.csv", *options)
    assert "Unknown column 'person'" in refused(
        "fit", tmp_path / "weighted.csv", "--target", "target", "--sample-weight", "person", "--out", tmp_path / "other"
    )


def test_many_learned_rows_are_written_as_all_numbers_are(run, table, monkeypatch):
    monkeypatch.setattr("cashmere.cli.scoring._count_learned", lambda *_: 1234)
    assert "Note: 1,234 of 240 rows are among those" in cashmere("score", run, table)


@pytest.mark.long
def test_groups_of_the_run_are_those_of_scores(tmp_path):
    frame = demo_table().sample(300, random_state=3)[["credit_amount", "age", "target"]]
    frame["client"] = [f"c{i // 3}" for i in range(300)]
    frame[:200].to_csv(tmp_path / "older.csv", index=False)
    frame[180:].assign(age=frame["age"] + 1).to_csv(tmp_path / "newer.csv", index=False)
    options = ("--target", "target", "--groups", "client", "--budget", "1trial", "--include", "logistic_regression")
    run, newer = tmp_path / "run", tmp_path / "newer.csv"
    cashmere("fit", tmp_path / "older.csv", *options, "--out", run)

    def told(*arguments):
        return " ".join(cashmere("score", run, *arguments).split())

    def intervals():
        return json.loads((tmp_path / "scores.json").read_text())["intervals"]

    text = told(newer, "-o", tmp_path / "scores.json")
    assert "intervals say how scores vary from group to group in 'client'" in text
    assert "7 of 40 groups in 'client' are named like those that the run has learned from." in text
    unasked = intervals()
    assert "vary from group" not in told(newer, "--groups", "client", "-o", tmp_path / "scores.json")
    assert intervals() == unasked
    told(newer, "--groups", "age", "-o", tmp_path / "scores.json")
    assert intervals() != unasked
    frame[210:].to_csv(newer, index=False)  # only new clients
    assert "are named like" not in told(newer)
    frame[210:].drop(columns="client").to_csv(newer, index=False)
    assert "group" not in told(newer)
    frame[200:].assign(client="c1").to_csv(newer, index=False)
    text = told(newer)
    assert "intervals are by rows, as the groups in 'client' are missing in some rows, or all the same" in text
    assert "1 of 1 group in 'client' are" not in text and "1 of 1 group in 'client' is named like" in text
    with np.load(run / "table.npz") as arrays:
        kept = {name: arrays[name] for name in arrays.files if name != "group_digests"}
    np.savez(run / "table.npz", **kept)  # as earlier versions wrote it
    assert "whether the run has learned from groups in 'client' is not known" in told(newer)


@pytest.mark.long
def test_labels_are_scored_as_they_are_written(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=120), "when": "2024-01-05"})
    frame["label"] = np.select([frame["x"] < -0.5, frame["x"] < 0.5], ["None", "01"], "07x")
    frame.to_parquet(tmp_path / "train.parquet")
    frame["when"] = "soon"
    options = ("--target", "label", "--budget", "2trials", "--resampling", "holdout", "--out", tmp_path / "run")
    cashmere("fit", tmp_path / "train.parquet", *options)
    frame.to_csv(tmp_path / "test.csv", index=False)
    assert "Ensemble on 120 rows" in cashmere("score", tmp_path / "run", tmp_path / "test.csv")
    frame[frame["label"] == "01"].to_csv(tmp_path / "one.csv", index=False)
    told = cashmere("score", tmp_path / "run", tmp_path / "one.csv", "-o", tmp_path / "scores.json")
    found = json.loads((tmp_path / "scores.json").read_text())
    assert found["n_rows"] == (frame["label"] == "01").sum() and f"on {found['n_rows']} rows" in told
    scores = {each["metric"]: each for each in found["intervals"]}
    assert scores["roc_auc"]["score"] is None and scores["accuracy"]["lower"] <= scores["accuracy"]["upper"]
    assert found["models"][0]["model"] == "ensemble"


def test_constant_model_is_warned_of_even_quietly(table, tmp_path):
    options = ("--target", "target", "--budget", "1ms", "--out", tmp_path / "run", "--quiet")
    assert "Warning: No trial has succeeded, so the model predicts a constant." in cashmere("fit", table, *options)


@pytest.mark.long
def test_strategies_are_compared_on_a_table(table, tmp_path):
    options = ["--target", "target", "--budget", "2trials", "--resampling", "holdout", "--seeds", 2, "--workers", 1]
    both = [*options, "--strategy", "random", "--strategy", "bo", "--out", tmp_path / "both"]
    told = cashmere("compare", table, *both)
    assert told.count(" on 60 test rows, 2 trials, ") == 4 and "loss against random" in told
    assert "All trials are first configurations, the same for all strategies" in told
    assert len(pd.read_csv(tmp_path / "both" / "runs.csv")) == 4
    assert "test rows" not in cashmere("compare", table, *both)  # all is there
    told = refused("compare", table, *options, "--strategy", "bo", "--out", tmp_path / "one")
    assert "strategies must be two or more" in told


@pytest.mark.long
@pytest.mark.usefixtures("ctrl_c")
def test_interrupted_comparison_shows_its_finished_runs(table, tmp_path):
    # Enough trials to be there in time, even on a busy machine.
    options = ["--target", "target", "--budget", "8trials", "--resampling", "holdout", "--seeds", 2, "--workers", 1]
    both = ["compare", table, *options, "--strategy", "random", "--strategy", "bo", "--out", tmp_path / "both"]
    with running([*CASHMERE, *both], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: list((tmp_path / "both").glob("bo-*-0/lock")), by=process)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "Interrupted; finished runs are kept." in errors, errors
    assert "random, seed 0" in output and "Traceback" not in errors
    assert list(pd.read_csv(tmp_path / "both" / "runs.csv")["strategy"]) == ["random"]


def test_resume_of_a_finished_run_says_so(run):
    assert "The budget was already spent; add more with --budget." in cashmere("resume", run)


@pytest.mark.parametrize(
    ("option", "wrong", "told"),
    [
        ("--strategy", "optdivb", "Unknown strategy 'optdivb'. Did you mean 'optdivbo'"),
        ("--strategy", "bo:tau=1", "Unknown 'bo' option 'tau'"),
        ("--strategy", "bo:n_initial=many", "n_initial of strategy 'bo' must be a whole number"),
        ("--metric", "acuracy", "Unknown metric 'acuracy'. Did you mean 'accuracy'"),
        ("--space", "defalt", "Unknown space 'defalt'. Did you mean 'default'"),
        ("--resampling", "5fld", "--resampling must be 'auto'"),
    ],
)
def test_wrong_names_are_told_before_the_table_is_read(tmp_path, option, wrong, told):
    table, out = tmp_path / "not there.csv", tmp_path / "run"
    assert told in refused("fit", table, "--target", "y", "--budget", "1trial", "--out", out, option, wrong)


OWN_STRATEGY = """
from pathlib import Path

from cashmere.strategies import RandomSearch

Path(__file__).with_name("imported").touch()


class Mine:
    def __init__(self, space):
        self.chance = RandomSearch(space)

    def suggest(self, history, rng):
        return self.chance.suggest(history, rng)
"""


@pytest.mark.long
def test_own_strategy_is_imported_only_for_whom_names_it(table, tmp_path, monkeypatch):
    """A run that comes from elsewhere must not choose what is imported."""
    (tmp_path / "strategy_of_mine.py").write_text(OWN_STRATEGY)
    imported = tmp_path / "imported"
    path, run = "strategy_of_mine.Mine", tmp_path / "run"
    options = (
        "--target",
        "target",
        "--resampling",
        "holdout",
        "--workers",
        1,
        "--include",
        "lightgbm,logistic_regression",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    cashmere("fit", table, *options, "--budget", "3trials", "--strategy", path, "--out", run)
    assert imported.exists()
    sys.modules.pop("strategy_of_mine")
    imported.unlink()
    assert (
        f"was started with a custom strategy. If you trust it, name it again: cashmere resume {run} --strategy {path}"
        in (refused("resume", run, "--budget", "1trial"))
    )
    assert "started with the strategy strategy_of_mine.Mine, not bo" in refused("resume", run, "--strategy", "bo")
    cashmere("leaderboard", run)
    cashmere("report", run)
    cashmere("refine", run, "--max-size", "100MB")
    assert not imported.exists()
    assert "4 trials" in cashmere("resume", run, "--budget", "1trial", "--strategy", path)
    assert imported.exists()
    assert "There is no module 'no_module'" in refused(
        "fit", table, *options, "--strategy", "no_module.Mine", "--out", tmp_path / "no"
    )


@pytest.mark.long
def test_quiet_prints_nothing(table, tmp_path):
    options = ["--target", "target", "--budget", "2trials", "--workers", "1", "--out", tmp_path / "q", "--quiet"]
    result = subprocess.run([*CASHMERE, "fit", table, *options], capture_output=True, check=True)
    assert (result.stdout, result.stderr) == (b"", b"")


@pytest.mark.slow  # tests/study/test_study.py shows the same without the command line
def test_same_seed_same_digest_for_one_and_two_workers(table, tmp_path):
    digests = set()
    for workers in (1, 2):
        arguments = ["--budget", "12trials", "--resampling", "holdout", "--workers", workers, "--seed", 7]
        output = cashmere("fit", table, "--target", "target", *arguments, "--out", tmp_path / str(workers))
        digests.add(re.search(r"Digest: (\w+)", output)[1])
    assert len(digests) == 1


def test_regression_on_tab_separated_gzip(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    frame = pd.DataFrame({"x": x, "group": rng.choice(list("abc"), 200), "price": 3 * x + rng.normal(size=200)})
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        frame.to_csv(file, sep="\t", index=False)
    options = ["--target", "price", "--budget", "3trials", "--workers", 1, "--out", tmp_path / "r"]
    cashmere("fit", tmp_path / "t.csv.gz", *options)
    cashmere("predict", tmp_path / "r", tmp_path / "t.csv.gz", "-o", tmp_path / "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")["prediction"]
    assert np.corrcoef(predicted, frame["price"])[0, 1] > 0.8
    assert "--proba" in refused("predict", tmp_path / "r", tmp_path / "t.csv.gz", "-o", tmp_path / "p.csv", "--proba")


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_interrupt_leaves_a_usable_model_and_says_how_to_resume(table, tmp_path, number):
    folder = tmp_path / "run"
    command = [*CASHMERE, "fit", str(table), "--target", "target", "--budget", "10m", "--out", str(folder)]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: list((folder / "members").glob("0*.skops")), by=process)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert workers and not psutil.wait_procs(workers, timeout=30)[1]
    assert f"cashmere resume {folder}" in errors
    assert "interrupted by the user" in output
    assert len(Predictor.load(folder).predict(pd.read_csv(table))) == 240
    assert (folder / "report.html").exists()


def test_interrupt_while_the_commands_are_loaded_is_no_traceback(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'cashmere.cli.searching': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    result = subprocess.run(
        [sys.executable, "-m", "cashmere", "fit"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert (result.returncode, result.stderr) == (130, "Interrupted.\n")


@pytest.mark.usefixtures("ctrl_c")
def test_interrupt_outside_the_search_says_what_is_kept(run, tmp_path, capsys):
    for folder, told in (
        (run, f"finished trials are kept. Continue with: cashmere resume {run}"),
        (tmp_path, "nothing"),
        (None, "Interrupted.\n"),
    ):
        for number in (signal.SIGINT, signal.SIGTERM):
            with pytest.raises(typer.Exit) as left, typed_errors(folder):
                signal.raise_signal(number)
            assert left.value.exit_code == 130
            assert told in capsys.readouterr().err


@pytest.mark.alone
def test_time_budget_covers_the_whole_call(table, tmp_path):
    budget = 20  # what is reserved for the end does not depend on it: on a slow machine, 3 s
    start = time.perf_counter()
    command = [*CASHMERE, "fit", table, "--target", "target", f"--budget={budget}s", "--out", tmp_path / "r", "--quiet"]
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - start
    assert 0.75 * budget < seconds < 1.05 * budget + 2
    assert (tmp_path / "r" / "report.html").exists()


@pytest.mark.long
def test_bad_arguments_are_explained(run, table, tmp_path):
    new = ["--out", tmp_path / "new"]
    fit = ["fit", table, "--target", "target"]
    assert "Did you mean 'target'" in refused("fit", table, "--target", "traget", *new)
    assert "'balanced_accuracy'" in refused(*fit, "--metric", "ballanced_accuracy", *new)
    assert "'random'" in refused(*fit, "--strategy", "randm", *new)
    assert "'black_box'" in refused(*fit, "--strategy", "optdivbo:measure=mse", *new)
    assert not new[1].exists()  # else a resume would repeat the error
    assert "--workers must be at most the lookahead, 1; got 2" in refused(
        *fit, "--lookahead", "1", "--workers", "2", *new
    )
    assert "'volcano'" in refused(*fit, "--space", "vulcano", *new)
    assert "got '-5m'" in refused(*fit, "--budget=-5m", *new)
    assert "250trials" in refused(*fit, "--budget", "soon", *new)
    assert "5fold" in refused(*fit, "--resampling", "often", *new)
    assert "4GiB" in refused(*fit, "--memory", "lots", *new)
    assert "60s" in refused(*fit, "--trial-timeout", "never", *new)
    assert "does not fit" in refused(*fit, "--metric", "rmse", *new)
    assert "got 1.5" in refused(*fit, "--decision-threshold", "1.5", *new)
    assert "'tune'" in refused(*fit, "--decision-threshold", "tuned", *new)
    assert "cashmere resume" in refused(*fit, "--out", run)
    assert "not empty" in refused(*fit, "--out", table.parent)
    assert "is a file" in refused(*fit, "--out", table)
    assert "no such" in refused("fit", tmp_path / "none.csv", "--target", "y", *new).lower()
    assert "text" in refused(*fit, "--task", "regression", *new)
    assert "does not exist" in refused("resume", tmp_path / "nowhere")
    assert "not the directory of a cashmere run" in refused("resume", table.parent)
    assert "manifest.json" in refused("predict", table.parent, table, "-o", tmp_path / "p.csv")
    assert ".parquet" in refused("predict", run, table, "-o", tmp_path / "p.xlsx")
    for command in (["predict", run, table], ["leaderboard", run], ["contest", run]):
        assert "there is no folder" in refused(*command, "-o", tmp_path / "gone" / "p.csv")
    assert "--interval must be" in refused("predict", run, table, "-o", tmp_path / "p.csv", "--interval", "90")
    assert "manifest.json" in refused("export", tmp_path / "nowhere", "--onnx", tmp_path / "m.onnx")
    assert "run.json" in refused("leaderboard", table.parent)
    assert "is a file" in refused("leaderboard", table)
    assert "run.json" in refused("report", table.parent)


def test_version_and_strategies_are_told():
    from cashmere import __version__
    from cashmere.strategies import status, strategy_names

    assert cashmere("--version") == f"cashmere {__version__}\n"
    output = cashmere("strategies")
    assert all(f"{name} ({status(name)})\n" in output for name in strategy_names())
    assert "Bergstra" in output


def test_reference_of_a_strategy_is_printed():
    from cashmere.strategies import cite, strategy_names

    assert [cashmere("cite", name) for name in strategy_names()] == [f"{cite(name)}\n" for name in strategy_names()]
    assert cashmere("cite", "divbo:tau=0.1") == cashmere("cite", "divbo")
    message = refused("cite", "divob")
    assert "'divob'" in message and "Did you mean 'divbo'" in message and "optdivbo" in message
    assert "cashmere strategies" in " ".join(cashmere("fit", "--help").split())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_shows_every_text_whole(name, monkeypatch):
    """Markup would swallow texts in brackets."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = "".join(cashmere(name, "--help").split())
    for parameter in COMMANDS[name].params:
        assert "".join(parameter.help.split()) in shown


@pytest.mark.parametrize("name", ["fit", "pretrain"])
def test_help_names_every_space(name):
    from cashmere.space import SPACES

    option = next(parameter for parameter in COMMANDS[name].params if parameter.name == "space")
    assert option.help == f"Search space: {', '.join(SPACES)}."


def test_list_of_commands_has_a_whole_sentence_for_each(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "..." not in cashmere("--help").partition("Commands:")[2]


def test_wrong_table_at_predict_is_refused_by_name(run, table, tmp_path):
    frame = pd.read_csv(table)
    frame.drop(columns=["duration", "purpose"]).to_csv(tmp_path / "less.csv", index=False)
    message = refused("predict", run, tmp_path / "less.csv", "-o", tmp_path / "p.csv")
    assert "'duration'" in message and "'purpose'" in message
    frame["duration"] = "long"
    frame.to_csv(tmp_path / "text.csv", index=False)
    message = refused("predict", run, tmp_path / "text.csv", "-o", tmp_path / "p.csv")
    assert "duration" in message and "long" in message


def test_directory_in_use_is_refused(run, table):
    from cashmere.storage.store import RunStore

    with RunStore(run):
        assert "another process" in refused("resume", run, status=75)


def test_fit_is_repeated_until_its_budget_is_spent(table, tmp_path):
    from cashmere.storage.store import RunStore

    fit = ["fit", table, "--target", "target", "--resampling", "holdout", "--out", tmp_path / "run", "--resume"]
    fit += ["--include", "logistic_regression,knn"]
    assert "2 trials, 0 failed" in cashmere(*fit, "--budget", "2trials,10h")
    assert "3 trials, 0 failed" in cashmere(*fit, "--budget", "3trials,10h")
    with RunStore(tmp_path / "run") as store:
        store.set_fact("elapsed_seconds", 35_999.5)
    output = cashmere(*fit, "--budget", "4trials,10h")
    assert "3 trials, 0 failed" in output and "The budget was already spent; give a larger --budget." in output
    with RunStore(tmp_path / "run") as store:
        before = store.facts().goal
    cashmere(*fit, "--budget", "5s")  # changes nothing that a later resume goes by
    with RunStore(tmp_path / "run") as store:
        assert store.facts().goal == before
    assert "was started with metric=None and cannot continue with 'brier'" in refused(*fit, "--metric", "brier")
    assert "other columns: X lacks 'age'. Use those from before" in refused(*fit, "--ignore", "age")
    assert "holds a run already" in refused(*[each for each in fit if each != "--resume"])


def test_budgets_of_resumes_add_up(table, tmp_path):
    from cashmere.records.budget import Budget
    from cashmere.run import RunDirectory

    folder = tmp_path / "run"
    options = ["--target", "target", "--budget", "2trials", "--resampling", "holdout", "--workers", 1, "--out", folder]
    cashmere("fit", table, *options)
    with RunDirectory.open(folder) as opened:
        assert opened.extend(None) is None
        assert opened.extend(Budget(trials=5)) == Budget(trials=7)
        assert opened.extend(Budget(trials=1)) == Budget(trials=3)  # this call only
        assert opened.extend(None) == Budget(trials=7)  # the rest of the largest


@pytest.mark.long
def test_interrupt_while_workers_start_prints_no_traceback(table, tmp_path):
    folder = tmp_path / "run"
    command = [*CASHMERE, "fit", str(table), "--target", "target", "--budget", "10m", "--out", str(folder)]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        wait_until((folder / "model" / "manifest.json").exists, by=process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the group
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in output + errors
    assert f"cashmere resume {folder}" in errors


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A folder of three tables, one of them a regression, with a manifest."""
    folder = tmp_path_factory.mktemp("sources")
    rng = np.random.default_rng(0)
    for name in ("one", "two", "price"):
        y = np.arange(60) % 2
        frame = pd.DataFrame({"x": rng.normal(size=60) + y, "group": rng.choice(["a", "b", "c"], 60)})
        frame["target"] = rng.normal(size=60) if name == "price" else np.array(["no", "yes"])[y]
        frame.to_parquet(folder / f"{name}.parquet")
    tasks = {"one": "binary", "two": "binary", "price": "regression"}
    entries = [{"name": n, "file": f"{n}.parquet", "group": ["few"], "task": task} for n, task in tasks.items()]
    (folder / "manifest.json").write_text(json.dumps(entries))
    return folder


@pytest.mark.long
def test_pretrain_makes_an_opening_of_runs_for_later_ones(table, tmp_path, run):
    out, arguments = tmp_path / "out", ["pretrain", "--opening", "--space", "default", "--out", tmp_path / "out"]
    assert "--runs" in refused(*arguments)
    output = cashmere(*arguments, "--runs", run)
    assert re.search(r"The defaults, and 0 more of 4 configurations of 1 runs, in", output)
    assert cashmere(*arguments, "--runs", run, "--quiet") == ""
    options = ["--target", "target", "--budget", "5s", "--resampling", "holdout", "--workers", 1, "--out"]
    told = cashmere("fit", table, *options, tmp_path / "later", "--opening", out / "opening.json")
    assert "0 failed" in told and "time budget spent" in told
    assert "no such file" in refused("fit", table, *options, tmp_path / "never", "--opening", out / "none.json")


@pytest.mark.long
def test_pretrain_collects_goes_on_after_an_interrupt_and_adds_runs(sources, tmp_path, run):
    from cashmere.metalearning.observations import SourceObservations

    out = tmp_path / "out"
    arguments = ["pretrain", "--data", sources, "--group", "few", "--space", "default", "--configs", 2]
    arguments += ["--workers", 1, "--time-limit", "20s", "--collect-only", "--out", out]
    with running([*CASHMERE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until((out / "work" / "one.jsonl").exists, by=process)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Interrupted; everything is kept" in errors and "Run the same command to continue." in errors
    assert "Traceback" not in output + errors
    output = cashmere(*arguments, "--runs", run)
    assert "price: left out" in output and "regression" in output
    assert re.search(r"two: \d+ configurations \(\d+ failed\)", output)
    found = SourceObservations.load(out / "observations.npz")
    assert [table.name.split("-")[0] for table in found.tables] == ["one", "two", "first"]
    assert (found.space, found.tables[0].metric, found.tables[2].metric) == ("default", "accuracy", "log_loss")
    assert np.isfinite(found.tables[0].losses).all()
    assert cashmere(*arguments, "--quiet") == ""
    assert all(len(table.meta_features) == 40 for table in found.tables)
    own = ["pretrain", "--runs", run, "--space", "default", "--collect-only", "--out", tmp_path / "runs"]
    assert "1 tables in" in cashmere(*own)
    assert "3 tables in" in cashmere(*own, "--base", out / "observations.npz")
    assert "at least 3 origins" in refused(*[a for a in own if a != "--collect-only"])
    assert "rows=" in refused(*arguments, "--rows", 50)


@pytest.mark.long
def test_pretrain_interrupted_after_the_last_table_ends(sources, tmp_path):
    for name in ("one", "two"):
        shutil.copy(sources / f"{name}.parquet", tmp_path)
    arguments = ["pretrain", "--data", tmp_path, "--space", "sklearn12", "--configs", 1, "--rows", 20, "--collect-only"]
    arguments += ["--workers", 1, "--time-limit", "20s", "--out", tmp_path / "out"]
    with running([*CASHMERE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        next(line for line in process.stdout if line == "Describing 2 tables\n")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "Interrupted; everything is kept. Run the same command to continue.\n")


@pytest.mark.long
def test_pretrain_explains_bad_arguments(sources, run, tmp_path):
    out = ["--out", tmp_path / "out"]
    data = ["pretrain", "--data", sources]
    assert "--runs" in refused("pretrain", *out)
    assert "'60s'" in refused(*data, "--time-limit", "soon", *out)
    assert "Known: few" in refused(*data, "--group", "many", *out)
    assert "no such folder" in refused("pretrain", "--data", tmp_path / "nowhere", *out)
    assert "'sklearn12'" in refused(*data, "--space", "sklearn21", *out)
    assert "Expected a run on the space 'sklearn12'." in refused(*data, "--runs", run, *out)
    assert "none of the 3 tables" in refused(*data, "--target", "x_y", *out)
    assert "no source observations" in refused(*data, "--base", sources / "manifest.json", *out)


def test_status_says_whether_to_try_again(tmp_path, capsys):
    for error, status in (
        (RunLockedError(tmp_path, "is in use by process 1."), 75),
        (ClusterError("tcp://x:1", "does not answer."), 75),
        (ClusterVersionError("tcp://x:1", "has other packages."), 2),
        (RunDirectoryError(tmp_path, "does not exist."), 2),
    ):
        with pytest.raises(typer.Exit) as left, typed_errors():
            raise error
        assert left.value.exit_code == status
        assert type(error).__name__ in capsys.readouterr().err
