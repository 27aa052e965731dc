from __future__ import annotations

import argparse
import csv
import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import real_runs


@pytest.fixture
def data(tmp_path):
    """A folder with one table: a class that two of three columns tell, with noise."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    frame["target"] = np.where(frame["a"] + frame["b"] + rng.normal(size=120) / 2 > 0, "yes", "no")
    folder = tmp_path / "data"
    folder.mkdir()
    frame.to_parquet(folder / "made.parquet")
    (folder / "manifest.json").write_text(json.dumps([{"name": "made", "file": "made.parquet", "task": "binary"}]))
    return folder


def run_command(data, out, *more: str) -> None:
    parser = argparse.ArgumentParser()
    real_runs.add_arguments(parser)
    real_runs.main(parser.parse_args(["--data", str(data), "--out", str(out), *more]))


def test_row_of_a_run(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    out = tmp_path / "out"
    run_command(
        data, out, "--table", "made", "--strategies", "random", "--trials", "6", "--resampling", "holdout",
        "--workers", "1",
    )  # fmt: skip
    with (out / "runs.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert list(row) == ["table", "seed", *real_runs.COLUMNS]
    assert (row["table"], row["seed"], row["strategy"], row["trials"]) == ("made", "0", "random", "6")
    number = {name: float(row[name]) for name in real_runs.COLUMNS[1:]}
    assert number["failed"] == 0
    assert 0 < number["deciding"] < number["seconds"] < 60
    assert 0 < number["training"] < number["seconds"]  # one worker
    assert number["ensembles"] > 0
    assert 0 < number["validation"] < np.log(2)
    assert 0 < number["test"] < np.log(2)
    assert number["test_error"] * 30 == pytest.approx(round(number["test_error"] * 30))
    assert 0 <= number["min_diversity"] <= 1
    assert 1 <= number["effective_50"] <= number["updates_50"] <= 6
    assert (out / "made-random-0").is_dir()
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 40
    assert all(name in shown for name in real_runs.COLUMNS)


def test_table_has_a_column_per_strategy():
    rows = [dict.fromkeys(real_runs.COLUMNS, 0.123456) | {"strategy": name, "trials": 6} for name in ("bo", "divbo")]
    table = real_runs.to_table(rows, "made, 6 trials")
    assert [column.header for column in table.columns] == ["strategy", "bo", "divbo"]
    assert list(table.columns[0].cells) == real_runs.COLUMNS[1:]
    assert list(table.columns[2].cells)[:2] == ["6", "0.1235"]


def test_unknown_table_is_refused(data, tmp_path):
    with pytest.raises(SystemExit, match="there are made"):
        run_command(data, tmp_path / "out", "--table", "other")
