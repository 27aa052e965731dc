from __future__ import annotations

import argparse
import csv
import json
import shutil
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments import real_runs
from benchmarks.runs.row_file import RowFile

pytestmark = pytest.mark.long

QUICK = ["--table", "made", "--strategies", "random", "--trials", "6", "--resampling", "holdout", "--workers", "1"]
FOLDER = "made-6trials-log_loss-volcano-holdout-lookahead8-1workers-20s"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with one table: two of three columns determine the class, with noise."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    frame["target"] = np.where(frame["a"] + frame["b"] + rng.normal(size=120) / 2 > 0, "yes", "no")
    folder = tmp_path_factory.mktemp("data")
    frame.to_parquet(folder / "made.parquet")
    (folder / "manifest.json").write_text(json.dumps([{"name": "made", "file": "made.parquet", "task": "binary"}]))
    return folder


def run_command(data, out, *more: str) -> None:
    parser = argparse.ArgumentParser()
    real_runs.add_arguments(parser)
    real_runs.main(parser.parse_args(["--data", str(data), "--out", str(out), *QUICK, *more]))


def read_row(out) -> dict[str, str]:
    with (out / "runs.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    return row


@pytest.fixture(scope="module")
def out(data, tmp_path_factory):
    """The files that the command leaves."""
    folder = tmp_path_factory.mktemp("out")
    run_command(data, folder)
    return folder


def test_row_of_a_run(out):
    row = read_row(out)
    assert list(row) == real_runs.COLUMNS
    assert (row["table"], row["seed"], row["strategy"], row["trials"]) == ("made", "0", "random", "6")
    assert (row["metric"], row["space"], row["lookahead"], row["workers"]) == ("log_loss", "volcano", "8", "1")
    number = {name: float(row[name]) for name in real_runs.RESULTS}
    assert number["failed"] == 0
    assert 0 <= number["deciding"] < number["seconds"] < 60
    assert 0 < number["training"] < number["seconds"]  # one worker
    assert number["ensembles"] > 0
    assert 0 < number["validation"] < np.log(2)
    assert 0 < number["test"] < np.log(2)
    assert number["test_error"] * 30 == pytest.approx(round(number["test_error"] * 30))
    assert 0 <= number["min_diversity"] <= 1
    assert 1 <= number["effective_50"] <= number["updates_50"] <= 6
    assert (out / FOLDER / "random-0" / "run.json").exists()


def test_repeated_command_shows_the_row_and_runs_nothing(data, out, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(real_runs, "run", None)
    row = read_row(out)
    run_command(data, out)
    assert read_row(out) == row
    shown = capsys.readouterr().out
    assert "(finished earlier)" in shown
    assert f"{float(row['test']):.4g}" in shown
    assert max(map(len, shown.splitlines())) <= 40
    assert all(name in shown for name in real_runs.RESULTS)


def test_run_without_its_row_is_continued(data, out, tmp_path):
    interrupted = shutil.copytree(out, tmp_path / "out")
    (interrupted / "runs.csv").unlink()
    run_command(data, interrupted)
    before, after = read_row(out), read_row(interrupted)
    assert all(after[name] == before[name] for name in ("training", "validation", "test", "min_diversity"))


@pytest.mark.parametrize(
    "other",
    [
        {"metric": "accuracy"},
        {"trials": 7},
        {"space": "default"},
        {"lookahead": 1},
        {"workers": 2},
        {"limit": 5.0},
        {"strategy": "bo:n_initial=3"},
        {"seed": 1},
    ],
)
def test_other_runs_have_other_folders_and_rows(out, other):
    file = RowFile(out / "runs.csv", real_runs.FinishedRun)
    texts = {"table": "made", "strategy": "random", "metric": "log_loss", "space": "volcano", "resampling": "holdout"}
    key = real_runs.RunKey(seed=0, trials=6, lookahead=8, workers=1, limit=20.0, **texts)
    assert len(file.frame(**asdict(key))) == 1
    different = replace(key, **other)
    assert different.folder != key.folder
    assert file.frame(**asdict(different)).empty


def test_rows_with_other_columns_are_not_mixed_with_ours(data, tmp_path):
    (tmp_path / "runs.csv").write_text("table,seed,strategy\nmade,0,random\n")
    with pytest.raises(SystemExit, match="another --out"):
        run_command(data, tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--strategies", "random", "bo:n_intial=3"], "bo:n_intial=3: .*Did you mean 'n_initial'"),
        (["--strategies", "random", "divbo:tau=-1"], "divbo:tau=-1: tau must be positive"),
        (["--strategies", "random", "optdivbo:measure=mse"], "'black_box'"),
        (["--metric", "rmse"], "does not fit"),
        (["--space", "vulcano"], "'volcano'"),
        (["--limit", "soon"], "--limit"),
        (["--trials", "0"], "--trials must be at least 1; got 0."),
        (["--workers", "2", "--lookahead", "1"], "--workers must be from 1 to the lookahead, 1; got 2."),
    ],
)
def test_mistakes_are_reported_before_the_first_run(data, tmp_path, options, message):
    out = tmp_path / "out"
    with pytest.raises(SystemExit, match=message) as caught:
        run_command(data, out, *options)
    assert len(str(caught.value).splitlines()) == 1
    assert not out.exists()


def test_table_has_a_column_per_strategy():
    rows = [dict.fromkeys(real_runs.COLUMNS, 0.123456) | {"strategy": name, "failed": 6} for name in ("bo", "divbo")]
    table = real_runs.to_table(rows, "made, 6 trials")
    assert [column.header for column in table.columns] == ["strategy", "bo", "divbo"]
    assert list(table.columns[0].cells) == real_runs.RESULTS
    assert list(table.columns[2].cells)[:2] == ["6", "0.1235"]
