"""Candidates for defaults: which are compared, and what other origins choose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments import learners
from benchmarks.experiments.followed_candidates import FollowedCandidates, follow_once
from benchmarks.experiments.learners import (
    CANDIDATES,
    EARLIER,
    additions_without,
    best_without,
    held_out,
    judged,
    log_ratio,
    log_ratios,
    offered_candidates,
)
from benchmarks.tables.manifest import BenchmarkTable
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space import make_space


def rows(instead, beside=None):
    """Return rows of one algorithm on tables of three origins, of which the first has two tables."""
    tables = {"a1": "a", "a2": "a", "b": "b", "c": "c"}
    made = []
    for candidate, losses in instead.items():
        for k, (table, origin) in enumerate(tables.items()):
            of_pool = losses[k] if beside is None else beside[candidate][k]
            made.append((table, origin, "lightgbm", candidate, losses[k], 1.0, losses[k], of_pool))
    names = ["table", "origin", "algorithm", "candidate", "loss", "cpu_seconds", "instead", "beside"]
    return pd.DataFrame(made, columns=names)


MADE = rows({EARLIER: [1.0, 1.0, 1.0, 1.0], "good on a": [0.1, 0.1, 1.1, 1.1], "good": [1.2, 0.9, 0.9, 0.9]})


def test_tables_of_the_held_out_origin_do_not_count():
    assert best_without(log_ratios(MADE, "instead"), ["a1", "a2"]) == {"lightgbm": "good"}
    assert best_without(log_ratios(MADE, "instead"), ["b"]) == {"lightgbm": "good on a"}
    found = np.exp(held_out(MADE, "loss").loc["lightgbm"])
    assert found.to_dict() == pytest.approx({"a1": 1.2, "a2": 0.9, "b": 1.1, "c": 1.1})


def test_only_candidates_that_lower_the_loss_of_the_others_join_the_defaults():
    assert additions_without(MADE, ["a1", "a2"], most=3) == [("lightgbm", "good")]
    bad = rows({EARLIER: [1.0] * 4, "bad": [1.1] * 4})
    assert additions_without(bad, ["b"], most=3) == []


def test_a_table_without_the_candidate_counts_as_unchanged():
    some = MADE[(MADE["table"] != "c") | (MADE["candidate"] != "good")]
    assert log_ratios(some, "instead")["c"]["lightgbm", "good"] == 0.0


@pytest.mark.parametrize("task", [TaskType.MULTICLASS, TaskType.REGRESSION])
@pytest.mark.parametrize("has_categories", [True, False])
def test_candidates_are_points_of_the_space(task, has_categories):
    n_classes = 3 if task.is_classification else 1
    profile = TaskProfile(task_type=task, n_rows=500, n_columns=4, n_classes=n_classes, has_categories=has_categories)
    space = make_space("default", profile)
    offered = offered_candidates(space)
    for values in offered.values():
        space.completed(values)
    names = {name for name, _ in offered}
    assert {name for name, candidate in offered if candidate == EARLIER} == names
    assert (("lightgbm", "smooth categories") in offered) == has_categories
    if has_categories and task.is_classification:
        assert set(offered) == {(name, candidate) for name in names for candidate in CANDIDATES[name]}


@pytest.mark.parametrize("predictions", [{}, {("knn", "first 1"): np.array([0.1, 0.9])}])
def test_failures_are_kept_too(tmp_path, monkeypatch, predictions):
    followed = FollowedCandidates(np.array([0.0, 1.0]), predictions, dict.fromkeys(predictions, 1.0))
    if predictions:
        followed.save(tmp_path / "t.npz")
    failed = {("svm", "first 1"): 2.0}
    monkeypatch.setattr(FollowedCandidates, "completed", lambda *_, **__: replace(followed, failed=failed))
    table = BenchmarkTable(name="t", path=tmp_path / "t.parquet", task_type=TaskType.REGRESSION)
    follow_once(table, tmp_path, offered_candidates, n_rows=2)
    read = FollowedCandidates.read(tmp_path / "t.npz")
    assert read.failed == failed
    assert list(read.predictions) == list(predictions)


def test_candidates_of_other_settings_are_refused(tmp_path, monkeypatch):
    pd.DataFrame({"a": range(60), "target": range(60)}).to_parquet(tmp_path / "t.parquet")
    table = BenchmarkTable(name="t", path=tmp_path / "t.parquet", task_type=TaskType.REGRESSION)
    monkeypatch.setattr(learners, "CANDIDATES", {"knn": {EARLIER: {}}})
    follow_once(table, tmp_path, offered_candidates, n_rows=50, most_seconds=5.0)
    with pytest.raises(SystemExit, match="50 other rows"):
        follow_once(table, tmp_path, offered_candidates, n_rows=40, most_seconds=5.0)
    with pytest.raises(SystemExit, match="ended after 5 s, not 6"):
        follow_once(table, tmp_path, offered_candidates, n_rows=50, most_seconds=6.0)


def test_a_candidate_that_stands_for_another_configuration_is_followed_again(tmp_path, monkeypatch):
    pd.DataFrame({"a": range(60), "target": np.arange(60) % 7}).to_parquet(tmp_path / "t.parquet")
    table = BenchmarkTable(name="t", path=tmp_path / "t.parquet", task_type=TaskType.REGRESSION)
    predicted = []
    for values in ({"weights": "uniform"}, {"weights": "distance"}, {"weights": "distance"}):
        monkeypatch.setattr(learners, "CANDIDATES", {"knn": {EARLIER: values}})
        before = (tmp_path / "t.npz").stat().st_mtime_ns if predicted else 0
        followed = follow_once(table, tmp_path, offered_candidates, n_rows=50)
        predicted.append(followed.predictions["knn", EARLIER])
    assert not np.array_equal(predicted[0], predicted[1])
    np.testing.assert_array_equal(predicted[1], predicted[2])
    assert (tmp_path / "t.npz").stat().st_mtime_ns == before


@pytest.mark.long
def test_followed_candidates_are_kept_and_not_followed_again(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=120), "b": rng.normal(size=120)})
    X.assign(target=np.where(X["a"] + 0.3 * rng.normal(size=120) > 0, "yes", "no")).to_parquet(tmp_path / "t.parquet")
    table = BenchmarkTable(name="t", path=tmp_path / "t.parquet", task_type=TaskType.BINARY)
    few = {"linear": CANDIDATES["linear"], "knn": CANDIDATES["knn"]}
    monkeypatch.setattr(learners, "CANDIDATES", {"knn": few["knn"]})
    first = FollowedCandidates.read(tmp_path / "t.npz").completed(table, offered_candidates, n_rows=80)
    assert len(first.y) == 80
    first.save(tmp_path / "t.npz")
    monkeypatch.setattr(learners, "CANDIDATES", few)
    again = FollowedCandidates.read(tmp_path / "t.npz").completed(table, offered_candidates, n_rows=80)
    assert again.predictions["knn", EARLIER] is not first.predictions["knn", EARLIER]
    np.testing.assert_array_equal(again.predictions["knn", EARLIER], first.predictions["knn", EARLIER])
    rows_of_table = judged(again, "t", "origin of t")
    assert {(row.algorithm, row.candidate) for row in rows_of_table} == set(again.predictions)
    assert log_ratio(again, [(name, EARLIER) for name in few]) == 0.0
    assert log_ratio(again, [("linear", EARLIER), ("knn", "not offered")]) == 0.0
    linear = [row for row in rows_of_table if row.algorithm == "linear"]
    assert all(row.loss < 0.6 and row.instead < 0.6 for row in linear)
