"""Recording a table: what is kept, what no search has seen, and that a killed recording continues."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.recordings import record as recorder
from benchmarks.recordings.record import plan_searches
from benchmarks.recordings.recorded_history import load_recorded
from benchmarks.recordings.recorded_rows import MostRows, RecordedRows
from benchmarks.runs import search as search_loop
from benchmarks.tables.manifest import BenchmarkTable
from benchmarks.tables.search_table import SearchTable
from cashmere.data.task import TaskType
from cashmere.execution.in_process import InProcessExecutor


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    folder = tmp_path_factory.mktemp("data")
    labels = np.where(X[:, 0] + 0.5 * rng.normal(size=300) > 0.4, "yes", "no")
    pd.DataFrame(X, columns=list("abc")).assign(target=labels).to_parquet(folder / "made.parquet")
    (folder / "manifest.json").write_text(json.dumps([{"name": "made", "file": "made.parquet", "task": "binary"}]))
    return folder


@pytest.fixture
def in_process(monkeypatch):
    monkeypatch.setattr(search_loop, "one_thread_executor", lambda n, **_: InProcessExecutor())


def command(folder, tmp_path, *words: object) -> None:
    parser = argparse.ArgumentParser()
    recorder.add_arguments(parser)
    words = ("--data", folder, "--tables", "made", "--work", tmp_path / "work", "--out", tmp_path / "out", *words)
    recorder.main(parser.parse_args([str(word) for word in words]))


@pytest.mark.parametrize("n_rows", [50, 300, 30_000])
def test_rows_are_divided_and_bounded(n_rows):
    y = np.arange(n_rows) % 3
    data = argparse.Namespace(y=y, task_type=TaskType.MULTICLASS)
    rows = RecordedRows.of(data, MostRows(), seed=0)
    parts = [rows.training, rows.steering, rows.validation, rows.test]
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together) <= n_rows
    assert len(rows.training) == min(2000, int(0.6 * n_rows))
    assert [len(part) for part in parts[1:]] == ([1000, 2000, 10_000] if n_rows == 30_000 else
                                                 {50: [4, 8, 8], 300: [24, 48, 48]}[n_rows])  # fmt: skip
    for part in parts:
        assert np.ptp(np.bincount(y[part], minlength=3)) <= 2
        assert (np.diff(part) > 0).all()


@pytest.mark.long
def test_recording_continues_where_it_was_stopped(folder, tmp_path, in_process, monkeypatch, capsys):
    monkeypatch.setattr(recorder, "SEARCHES", ("bo", "tpe"))
    evaluated = []
    submit = InProcessExecutor.submit

    def stop_after(n):
        def submit_some(self, objective, trial):
            if len(evaluated) == n:
                raise KeyboardInterrupt
            evaluated.append(trial.key)
            return submit(self, objective, trial)

        monkeypatch.setattr(InProcessExecutor, "submit", submit_some)

    words = ("--configurations", 8, "--found", 8, "--limit", 20)
    stop_after(11)
    with pytest.raises(KeyboardInterrupt):
        command(folder, tmp_path, *words)
    assert not (tmp_path / "out").exists()
    stop_after(99)
    command(folder, tmp_path, *words)
    assert "made-volcano, bo-1: 3 of 4 trials are finished" in capsys.readouterr().out
    history = load_recorded(tmp_path / "out" / "made-volcano.zip")
    # What was in progress is evaluated again, nothing else.
    assert 16 <= len(evaluated) <= 17
    assert set(history.searches) == {"random-0", "bo-1", "tpe-2"}
    assert len(history) == len(set(map(str, history.configurations))) and 12 <= len(history) <= 16
    assert len(history.succeeded) >= 6 and np.isfinite(history.validation[history.succeeded]).all()
    assert [i for i, cause in enumerate(history.causes) if not cause] == history.succeeded.tolist()

    command(folder, tmp_path, *words)
    assert "is there" in capsys.readouterr().out and len(evaluated) <= 17


def test_work_is_not_continued_with_other_settings(folder, tmp_path, in_process):
    command(folder, tmp_path, "--configurations", 2, "--found", 0, "--limit", 20)
    (tmp_path / "out" / "made-volcano.zip").unlink()
    for words in (["--limit", 10], ["--limit", 20, "--training-rows", 50]):
        with pytest.raises(SystemExit, match="was begun with"):
            command(folder, tmp_path, "--configurations", 4, "--found", 0, *words)


def test_no_learner_and_no_search_has_seen_the_recorded_rows(folder, tmp_path, in_process):
    command(folder, tmp_path, "--configurations", 3, "--found", 0)
    history = load_recorded(tmp_path / "out" / "made-volcano.zip")
    table = BenchmarkTable(name="made", path=folder / "made.parquet", task_type=TaskType.BINARY)
    data = SearchTable.read(table)
    rows = RecordedRows.of(data, MostRows(), seed=recorder.SEED)
    assert not set(history.unseen_rows) & {*history.training_rows, *rows.steering}
    np.testing.assert_array_equal(history.training_rows, rows.training)
    y = np.concatenate([history.y_validation, history.y_test])
    np.testing.assert_array_equal(data.y[history.unseen_rows], y)
    # The predictions are those of these rows: better than the same ones in another order.
    predicted = np.concatenate([history.validation, history.test], axis=1)[history.succeeded].argmax(axis=-1)
    assert (predicted == y).mean() > (np.roll(predicted, 1, axis=1) == y).mean() + 0.1


def test_paths_are_chosen_without_the_recorded_rows(folder, tmp_path, in_process, monkeypatch):
    command(folder, tmp_path, "--space", "default", "--configurations", 5, "--found", 0)
    history = load_recorded(tmp_path / "out" / "made-default.zip")
    paths = [path for path in history.paths if path is not None]
    assert paths and all(len(path.positions) == len(path.losses) for path in paths)
    # 24 steering rows; were the 96 recorded rows with their false targets among them, losses would be far higher.
    assert min(min(path.losses) for path in paths) < 0.5


def test_found_configurations_are_shared_out_among_searches():
    plan = plan_searches(600, 600)
    assert [search.trials for search in plan] == [600, *[100] * 6]
    assert len({search.name for search in plan}) == len({search.seed for search in plan}) == 7
    assert [search.strategy for search in plan_searches(5, 0)] == ["random"]
