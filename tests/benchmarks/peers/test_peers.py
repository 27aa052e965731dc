"""Comparison with other systems; a stand-in, a real scikit-learn script, is called as the runners of peers are."""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from rich.console import Console

from benchmarks.peers import environments as peer_environments
from benchmarks.peers import runs as peer_runs
from benchmarks.peers import study as peer_study
from benchmarks.peers.environments import RUNNERS, Peer, find_peers, peer_names, require_installed
from benchmarks.peers.report import make_tables, to_frame
from benchmarks.peers.runs import PeerProtocol, PeerRun, give, judge, read_predictions, run_peer, split
from benchmarks.peers.supervised import run_supervised
from benchmarks.runs.finished_runs import FinishedRuns
from benchmarks.runs.suite_runs import SuiteKey
from benchmarks.tables.manifest import BenchmarkTable
from cashmere.data.task import TaskType
from cashmere.exceptions import DataError, UnknownNameError

PROTOCOL = PeerProtocol(seconds=100, threads=1)  # never used up: the machine may be busy

STAND_IN = """
import json, sys, time
from pathlib import Path
import pandas as pd

folder = Path(sys.argv[1])
train, test = pd.read_parquet(folder / "train.parquet"), pd.read_parquet(folder / "test.parquet")
settings = json.loads((folder / "settings.json").read_text())
X, y, X_test = train[["c0", "c1"]], train["target"], test[["c0", "c1"]]
PREDICT
predictions.to_parquet(folder / "predictions.parquet")
facts = {"fit_seconds": 0.1, "models": 1, "versions": {"stand-in": "1"}}
(folder / "facts.json").write_text(json.dumps(facts))
"""

TREE = """
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

if settings["task"] == "regression":
    model = DecisionTreeRegressor(min_samples_leaf=10, random_state=settings["seed"]).fit(X, y)
    predictions = pd.DataFrame({"value": model.predict(X_test)})
else:
    model = DecisionTreeClassifier(min_samples_leaf=10, random_state=settings["seed"]).fit(X, y)
    predictions = pd.DataFrame(model.predict_proba(X_test), columns=model.classes_)
"""

MEAN = """
predictions = pd.DataFrame({"value": [y.mean()] * len(X_test)})
"""


def stand_in(folder: Path, predict: str, name: str = "stand_in") -> Peer:
    script = folder / f"{name}.py"
    script.write_text(STAND_IN.replace("PREDICT", predict))
    return Peer(name=name, python=Path(sys.executable), script=script)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with a binary table, one of three classes and one of values: text, missing cells, odd names."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("data")
    X = pd.DataFrame(rng.normal(size=(160, 2)), columns=['"a" {x}', "b"])
    X["colour"] = pd.Series(rng.choice(["red", "blue"], 160)).where(rng.random(160) > 0.1)
    signal = X["b"] + rng.normal(size=160) / 3
    targets = {
        "binary": np.where(signal > 0, "1", "0"),
        "multiclass": pd.cut(signal, [-9, -0.5, 0.5, 9], labels=["low", "mid", "high"]).astype(str),
        "regression": signal,
    }
    for task, target in targets.items():
        X.assign(target=target).to_parquet(folder / f"{task}.parquet")
    entries = [{"name": task, "file": f"{task}.parquet", "task": task} for task in targets]
    (folder / "manifest.json").write_text(json.dumps(entries))
    return folder


@pytest.fixture(params=["binary", "multiclass", "regression"])
def table(request, data):
    return make_table(data, request.param)


def make_table(data: Path, task: str) -> BenchmarkTable:
    return BenchmarkTable(name=task, path=data / f"{task}.parquet", task_type=TaskType(task))


# ---------------------------------------------------------------- what a peer is given


def test_peers_of_a_seed_share_the_split_and_seeds_do_not(data):
    y = make_table(data, "multiclass").read()[1].to_numpy()
    train, test = split(y, PROTOCOL, 0, classes=True)
    again = split(y, dataclasses.replace(PROTOCOL, seconds=5, threads=7), 0, classes=True)
    np.testing.assert_array_equal(test, again[1])
    assert not np.array_equal(test, split(y, PROTOCOL, 1, classes=True)[1])
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(160))
    shares = [pd.Series(y[rows]).value_counts(normalize=True) for rows in (train, test)]
    assert (shares[0] - shares[1]).abs().max() < 0.03


def test_runner_sees_no_label_of_the_test_rows(table, tmp_path):
    y_train, y_test = give(tmp_path, table, PROTOCOL, seed=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["settings.json", "test.parquet", "train.parquet"]
    train, test = (pd.read_parquet(tmp_path / f"{part}.parquet") for part in ("train", "test"))
    assert list(train.columns) == ["c0", "c1", "c2", "target"]
    assert list(test.columns) == ["c0", "c1", "c2"]
    assert (len(train), len(test)) == (120, 40)
    np.testing.assert_array_equal(train["target"].to_numpy(dtype=y_train.dtype), y_train)
    X, y = table.read()
    rows = split(y.to_numpy(), PROTOCOL, 3, classes=table.is_classification)[1]
    np.testing.assert_array_equal(test["c1"], X["b"].to_numpy()[rows])
    np.testing.assert_array_equal(y_test.astype(str), y.to_numpy()[rows].astype(str))
    settings = json.loads((tmp_path / "settings.json").read_text())
    metric = "log_loss" if table.is_classification else "rmse"
    assert settings == {"task": table.name, "metric": metric, "seconds": 100, "seed": 3, "threads": 1}


def test_runner_may_use_the_given_number_of_threads(data, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    check = "import os; assert os.environ['OMP_NUM_THREADS'] == str(settings['threads']) == '2'"
    protocol = dataclasses.replace(PROTOCOL, threads=2)
    assert run_peer(stand_in(tmp_path, MEAN + check), make_table(data, "regression"), protocol, 0).failure is None


# ---------------------------------------------------------------- how it is judged


@pytest.mark.long
def test_run_is_judged_by_the_measures_of_its_task(table, tmp_path):
    run = run_peer(stand_in(tmp_path, TREE), table, PROTOCOL, seed=0)
    assert run.failure is None
    names = {
        "binary": {"log_loss", "error", "roc_auc"},
        "multiclass": {"log_loss", "error"},
        "regression": {"rmse", "r2"},
    }
    assert run.measures.keys() == names[table.name]
    assert run.measures.get("error", run.measures.get("rmse")) < 0.5
    assert 0 < run.seconds < 200
    assert run.facts["versions"] == {"stand-in": "1"}
    assert run.circumstances["threads"] == 1


def test_measures_by_hand():
    predictions = pd.DataFrame({"0": [0.8, 0.4, 0.3], "1": [0.2, 0.6, 0.7]})
    measures = judge(np.array(["0", "1", "0"]), predictions, TaskType.BINARY)
    assert measures["log_loss"] == pytest.approx(-np.log(0.8 * 0.6 * 0.3) / 3)
    assert measures["error"] == pytest.approx(1 / 3)
    assert measures["roc_auc"] == pytest.approx(1 / 2)
    values = judge(np.array([0.0, 2.0]), pd.DataFrame({"value": [1.0, 2.0]}), TaskType.REGRESSION)
    assert values == {"rmse": pytest.approx(np.sqrt(0.5)), "r2": pytest.approx(0.5)}


def test_class_that_no_training_row_has_costs_every_peer_the_same():
    predictions = pd.DataFrame({"a": [0.9, 0.5], "c": [0.1, 0.5]})
    measures = judge(np.array(["a", "b"]), predictions, TaskType.MULTICLASS)
    assert measures["error"] == 0.5
    assert measures["log_loss"] == pytest.approx((-np.log(0.9) - np.log(np.finfo(float).eps)) / 2)


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda frame: frame.drop(columns="mid"), r"expected \['high', 'low', 'mid'\]"),
        (lambda frame: frame.replace(0.5, np.nan), "1 predictions are not finite"),
        (lambda frame: frame[:-1], "2 rows are predicted; expected 3"),
        (lambda frame: frame * 2, "sum to 2"),
        (lambda frame: frame - 0.1, "as low as -0.1"),
    ],
)
def test_bad_predictions_are_named(tmp_path, spoil, named):
    good = pd.DataFrame({"high": [0.0, 0.2, 0.5], "low": [0.1, 0.4, 0.4], "mid": [0.9, 0.4, 0.1]})
    spoil(good).to_parquet(tmp_path / "predictions.parquet")
    with pytest.raises(DataError, match=named):
        read_predictions(tmp_path, 3, ["high", "low", "mid"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("predict", "named"),
    [
        (MEAN + "predictions.loc[3] = float('nan')", "1 predictions are not finite"),
        ("sys.exit()", "left no predictions.parquet"),
        ("raise RuntimeError('out of luck')", "ended with status 1: "),
        (MEAN + "predictions.to_parquet(folder / 'predictions.parquet'); sys.exit()", "FileNotFoundError: "),
    ],
)
def test_failures_of_a_run_are_named(data, tmp_path, predict, named):
    run = run_peer(stand_in(tmp_path, predict), make_table(data, "regression"), PROTOCOL, 0)
    assert named in run.failure
    assert run.measures == {}
    assert run.is_final == ("status" not in named)


def test_columns_of_predictions_may_come_in_any_order(tmp_path):
    pd.DataFrame({"b": [0.25], "a": [0.75]}).to_parquet(tmp_path / "predictions.parquet")
    assert read_predictions(tmp_path, 1, ["a", "b"]).to_dict("list") == {"a": [0.75], "b": [0.25]}
    with pytest.raises(DataError, match="value"):
        read_predictions(tmp_path, 1, None)


# ---------------------------------------------------------------- how it is ended

SLEEPER = """
import subprocess, sys, time
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
children = [subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)]
open(sys.argv[1], "w").write(" ".join(str(child.pid) for child in children))
"""


@pytest.mark.long
@pytest.mark.parametrize("waits", [True, False])
def test_children_are_killed_even_in_sessions_of_their_own(tmp_path, waits):
    pids = tmp_path / "pids"
    command = [sys.executable, "-c", SLEEPER + ("time.sleep(600)" if waits else "sys.exit(5)"), str(pids)]
    ended = run_supervised(command, limit_seconds=4 if waits else 60, log=tmp_path / "log", environment={})
    assert ended.code == (None if waits else 5)
    assert ended.seconds < 60
    children = pids.read_text().split()
    assert len(children) == 2
    for child in map(int, children):
        assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


@pytest.mark.long
def test_memory_of_all_processes_is_measured(tmp_path):
    """Two processes of 150 MiB each, one in a session of its own."""
    block = "block = bytearray(150 * 2**20); import time; time.sleep(2)"
    program = (
        f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {block!r}], start_new_session=True); {block}"
    )
    ended = run_supervised([sys.executable, "-c", program], limit_seconds=60, log=tmp_path / "log", environment={})
    assert ended.code == 0
    assert 300 < ended.peak_mib < 400


@pytest.mark.long
def test_run_is_killed_at_twice_the_budget_and_counts_as_a_failure(data, tmp_path):
    start = time.monotonic()
    protocol = dataclasses.replace(PROTOCOL, seconds=2)
    run = run_peer(stand_in(tmp_path, "time.sleep(600)"), make_table(data, "regression"), protocol, 0)
    assert run.failure == "killed at 2 x the budget"
    assert 4 <= run.seconds <= time.monotonic() - start < 20
    assert run.is_final and run.measures == {}


# ---------------------------------------------------------------- the command


def compare(data, work, peers, *, n_workers=1, seeds=range(2), out=None) -> str:
    console = Console(file=io.StringIO(), width=160, record=True)
    tables = [make_table(data, "regression")]
    file = FinishedRuns(work / "peers.jsonl", PeerRun, SuiteKey)
    for peer in peers:  # a stand-in needs nothing installed
        (work / "environments" / peer.name).mkdir(parents=True, exist_ok=True)
        (work / "environments" / peer.name / peer_environments.INSTALLED).touch()
    peer_study.compare(
        peers,
        tables,
        PROTOCOL,
        seeds,
        file=file,
        environments=work / "environments",
        n_workers=n_workers,
        console=console,
        out=out,
    )
    return console.export_text()


@pytest.mark.long
def test_comparison_continues_where_it_was_stopped(data, tmp_path):
    peers = [stand_in(tmp_path, MEAN), stand_in(tmp_path, "raise SystemExit('no luck')", name="broken")]
    first = compare(data, tmp_path / "work", peers, seeds=range(1))
    assert "0 of 2 runs are finished" in first
    lines = (tmp_path / "work" / "peers.jsonl").read_text().splitlines()
    assert len(lines) == 2
    peers[1].script.write_text(peers[0].script.read_text())  # repaired
    second = compare(data, tmp_path / "work", peers, out=tmp_path / "out")
    assert "1 of 4 runs are finished" in second  # the failed runs are tried again
    assert (tmp_path / "work" / "peers.jsonl").read_text().splitlines()[:2] == lines
    assert "Failures" not in second
    rows = pd.read_csv(tmp_path / "out" / "results.csv")
    assert len(rows) == 4
    assert rows["rmse"].notna().all() and rows["log_loss"].isna().all()
    assert {"machine", "date", "versions", "load", "overrun"} <= set(rows.columns)
    by_peer = rows.pivot(index=["table", "seed"], columns="peer", values="loss")
    assert (by_peer["stand_in"] == by_peer["broken"]).all()  # the same rows, the same seeds
    assert "### RMSE" in (tmp_path / "out" / "summary.md").read_text()
    assert "4 of 4 runs are finished" in compare(data, tmp_path / "work", peers, n_workers=0)


def test_runs_by_another_runner_are_reported(data, tmp_path):
    peer = stand_in(tmp_path, MEAN)
    FinishedRuns(tmp_path / "peers.jsonl", PeerRun, SuiteKey).add(
        run_peer(peer, make_table(data, "regression"), PROTOCOL, 0)
    )
    peer.script.write_text(peer.script.read_text() + "\n# changed")
    assert "1 of 1 runs were made by different code" in compare(data, tmp_path, [peer], n_workers=0, seeds=[0])


def made_runs() -> pd.DataFrame:
    """Three peers, two data sets, two seeds: `a` wins once, `b` once; `c` failed once."""
    losses = {("x", "a"): [0.1, 0.3], ("x", "b"): [0.4, 0.4], ("x", "c"): [0.5, 0.7]}
    losses |= {("y", "a"): [0.9, 0.7], ("y", "b"): [0.5, 0.5], ("y", "c"): [0.1, None]}
    circumstances = {"machine": "2 cores", "load": 0.0, "threads": 2, "date": "2026-11-21"}
    return to_frame(
        [
            PeerRun(
                key=PROTOCOL.key(table, peer, seed),
                failure="killed at 2 x the budget" if loss is None else None,
                seconds=200.0 if loss is None else 50.0,
                code="",
                peak_mib=512.0,
                measures={} if loss is None else {"log_loss": loss},
                facts={}
                if loss is None
                else {
                    "fit_seconds": 9.0,
                    "models": 3,
                    "seconds_per_1000": 0.5,
                    "model_mib": 1.25,
                    "versions": {peer: "1.0"},
                },
                circumstances=circumstances,
            )
            for (table, peer), values in losses.items()
            for seed, loss in enumerate(values)
        ]
    )


def test_report_by_hand():
    ranks, losses, failures = make_tables(made_runs())
    shown = [dict(zip(ranks.columns, row, strict=True)) for row in ranks.rows]
    assert [row["average rank"] for row in shown] == ["1.50", "1.50", "3.00"]
    assert [row["wins"] for row in shown] == ["1", "1", "0"]
    # a: 0 on x, 1 - 0.5 / 0.8 on y; b: 1 - 0.2 / 0.4 and 0; c: 1 - 0.2 / 0.6, and a failure
    assert [row["improvability, %"] for row in shown] == ["18.8", "25.0", "83.3"]
    assert [row["seconds / budget"] for row in shown] == ["0.50", "0.50", "0.88"]
    assert [row["largest"] for row in shown] == ["0.50", "0.50", "2.00"]
    assert [row["failures"] for row in shown] == ["0 of 4", "0 of 4", "1 of 4"]
    measured = ("peak MiB", "model MiB", "seconds per 1,000 rows", "models")
    assert {tuple(row[name] for name in measured) for row in shown} == {("512", "1.2", "0.500", "3")}
    assert losses.rows[0] == ("x", "0.2000 ± 0.1000", "0.4000 ± 0.0000", "0.6000 ± 0.1000")
    assert losses.rows[1][1:] == ("0.8000 ± 0.1000", "0.5000 ± 0.0000", "failed")
    assert losses.best == {(0, 1), (1, 2)}
    assert failures.rows == (("c", "y", "1", "200", "killed at 2 x the budget"),)


def test_cashmere_is_compared_with_each_of_the_others_and_the_best():
    runs = made_runs()
    runs["peer"] = runs["peer"].replace({"a": "cashmere"})
    pairs = make_tables(runs)[1]
    shown = {row[0]: row[1:5] for row in pairs.rows}
    assert shown["b"] == ("1", "0", "1", f"{np.sqrt(0.2 / 0.4 * 0.8 / 0.5):.3f}")
    assert shown["c"] == ("2", "0", "0", "0.333")  # c failed on y, which leaves x for the ratio
    assert shown["the best other"] == shown["b"]


def test_data_set_counts_for_ranks_when_all_peers_have_its_seeds():
    runs = made_runs()
    (ranks, *_) = make_tables(runs[~((runs["table"] == "y") & (runs["peer"] == "b") & (runs["seed"] == 1))])
    assert [row[1] for row in ranks.rows] == ["1.00", "2.00", "3.00"]
    assert "1 data sets" in ranks.note


# ---------------------------------------------------------------- the environments


def test_peer_that_is_not_installed_is_named_with_the_command(tmp_path):
    assert [peer.name for peer in find_peers(["cashmere", "flaml", "h2o"], tmp_path)] == ["cashmere", "flaml", "h2o"]
    with pytest.raises(SystemExit, match=r"python -m benchmarks peers --install flaml h2o"):
        require_installed(["cashmere", "flaml", "h2o", "h2o"], tmp_path)
    with pytest.raises(UnknownNameError, match="Did you mean 'flaml'"):
        find_peers(["flamel"], tmp_path)


@pytest.mark.slow
def test_peer_is_installed_into_an_environment_of_its_own(tmp_path, monkeypatch):
    """With the real venv and pip, but nothing to fetch."""
    runners = tmp_path / "runners"
    runners.mkdir()
    (runners / "run_none.py").touch()
    (runners / "none.txt").write_text("# nothing is required\n")
    monkeypatch.setattr(peer_environments, "RUNNERS", runners)
    python = peer_environments.install("none", tmp_path / "environments")
    prefix = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True).stdout
    assert Path(prefix.strip()) == tmp_path / "environments" / "none"
    assert find_peers(["none"], tmp_path / "environments")[0].python == python


def test_peers_may_share_an_environment(tmp_path):
    (tmp_path / "autogluon").mkdir()
    (tmp_path / "autogluon" / peer_environments.INSTALLED).touch()
    require_installed(["autogluon", "autogluon_portfolio"], tmp_path)
    first, second = find_peers(["autogluon", "autogluon_portfolio"], tmp_path)
    assert first.python == second.python and first.digest != second.digest


def test_only_cashmere_is_another_peer_with_another_package(tmp_path, monkeypatch):
    peers = find_peers(["cashmere", "flaml"], tmp_path)
    before = [peer.digest for peer in peers]
    monkeypatch.setattr(peer_environments, "package_digest", lambda: "changed")
    assert [peer.digest == digest for peer, digest in zip(peers, before, strict=True)] == [False, True]


def test_failed_installation_is_reported(tmp_path):
    environments = tmp_path / "file"
    environments.touch()
    with pytest.raises(SystemExit, match=r"flaml could not be installed: .* -m venv"):
        peer_environments.install("flaml", environments)
    assert not peer_environments.is_installed("flaml", environments)


@pytest.mark.parametrize("name", sorted(set(peer_names()) - {"cashmere", *peer_environments.SHARED}))
def test_every_requirement_is_pinned(name):
    lines = (RUNNERS / f"{name}.txt").read_text().splitlines()
    assert f"-c {name}.constraints.txt" in lines
    pins = (RUNNERS / f"{name}.constraints.txt").read_text().lower()
    required = [line.split(">=")[0].split("[")[0] for line in lines if ">=" in line]
    assert required and all(f"\n{package}==" in pins for package in required)


def test_runners_import_nothing_of_ours():
    for path in RUNNERS.glob("*.py"):
        text = path.read_text()
        assert "benchmarks" not in "".join(line for line in text.splitlines() if "import" in line), path
        assert path.stem == "run_cashmere" or not re.search("(import|from) cashmere", text), path


@pytest.mark.long
def test_cashmere_runs_as_a_peer(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(peer_runs, "PATIENCE", 20)  # the machine may be busy
    (peer,) = find_peers(["cashmere"], tmp_path)
    protocol = PeerProtocol(seconds=4, threads=1)
    FinishedRuns(tmp_path / "peers.jsonl", PeerRun, SuiteKey).add(
        run_peer(peer, make_table(data, "binary"), protocol, 0)
    )
    words = ["--data", str(data), "--tables", "binary", "--budget", "4s", "--repeats", "1", "--threads", "1"]
    words += ["--workers", "0", "--work", str(tmp_path), "--out", str(tmp_path)]
    parser = argparse.ArgumentParser()
    peer_study.add_arguments(parser)
    peer_study.main(parser.parse_args(words))
    assert "1 of 1 runs are finished" in capsys.readouterr().out
    (row,) = pd.read_csv(tmp_path / "results.csv", keep_default_na=False).to_dict("records")
    assert row["failure"] == ""
    assert row["log_loss"] < 1
    assert "cashmere-automl" in row["versions"]
