"""The study of openings: its candidates, their replay, and what is compared."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.opening import study
from benchmarks.experiments.opening.candidates import counterparts, offered, opening_candidates
from benchmarks.experiments.opening.judgement import ReplayedTable, by_rate, cheapest_first, then_random
from benchmarks.tables.manifest import find_tables
from cashmere.data.task import TaskProfile, TaskType
from cashmere.metalearning.opening import load_opening
from cashmere.space import make_space

pytestmark = pytest.mark.long

CANDIDATES = {
    ("knn", "default"): {"algorithm": "knn"},
    ("logistic_regression", "default"): {"algorithm": "logistic_regression"},
    ("knn", "draw 0"): {"algorithm": "knn", "knn:n_neighbors": 9},
    ("logistic_regression", "draw 0"): {
        "algorithm": "logistic_regression", "logistic_regression:basis": "bins",
        "logistic_regression:encoding": "target",
    },
    ("logistic_regression", "draw 1"): {
        "algorithm": "logistic_regression", "logistic_regression:encoding": "target",
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    entries = []
    for seed, (name, task) in enumerate({"one": "binary", "two": "regression", "three": "binary"}.items()):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"a": rng.normal(size=150), "b": rng.normal(size=150)})
        value = X["a"] * X["b"] + X["a"] + 0.3 * rng.normal(size=150)
        target = value if task == "regression" else np.where(value > 0, "yes", "no")
        X.assign(target=target).to_parquet(folder / f"{name}.parquet")
        entries.append({"name": name, "file": f"{name}.parquet", "task": task, "origin": name})
    (folder / "manifest.json").write_text(json.dumps(entries))
    return folder


@pytest.fixture(scope="module")
def recorded(data, tmp_path_factory):
    """Return the arguments of a study that has been made, and the folder of the package's openings."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "candidates.json").write_text(json.dumps([[*key, values] for key, values in CANDIDATES.items()]))
    arguments = argparse.Namespace(
        data=data, tables=["one", "two", "three"], rows=120, candidates=5, steps=3, work=folder,
        out=folder / "rows.csv", write=True,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "SHIPPED", folder)
        study.main(arguments)
    return arguments


def read_tables(arguments):
    candidates = opening_candidates(arguments.work)
    return [
        ReplayedTable.read(table, candidates, arguments.work, arguments.rows)
        for table in find_tables(arguments.data, arguments.tables)
    ]


def test_study_writes_rows_and_an_opening(recorded):
    rows = pd.read_csv(recorded.out)
    assert set(rows["table"]) == {"one", "two", "three"}
    assert set(rows["order"]) == {"defaults", "defaults, then any", "random", "opening", "without defaults"}
    assert np.isfinite(rows["loss"]).all()
    opening = load_opening(recorded.work / "default.json")
    assert len(opening.steps) <= 6  # the linear ones for both kinds of target
    assert opening.first_gain > 0
    linear = [s.values for s in opening.steps if s.values["algorithm"] == "logistic_regression"]
    ridge = [s.values for s in opening.steps if s.values["algorithm"] == "ridge"]
    assert len(linear) == len(ridge)
    assert [s["name"] for s in opening.sources] == ["one", "two", "three"]


def test_followed_candidates_are_not_followed_again(recorded, monkeypatch):
    before = {path: path.stat().st_mtime_ns for path in recorded.work.glob("*.npz")}
    assert len(before) == 3
    monkeypatch.setattr(study, "SHIPPED", recorded.work)
    study.main(recorded)
    assert {path: path.stat().st_mtime_ns for path in recorded.work.glob("*.npz")} == before


def test_candidates_that_are_equal_on_a_table_are_followed_once(recorded):
    table = read_tables(recorded)[0]  # without categories there is no choice of encoding
    assert table.source.same_as == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    assert set(table.source.predictions) == {0, 1, 2, 3}
    assert table.tried([4, 1, 0]) == [1, 0]


def test_replayed_orders(recorded):
    table = read_tables(recorded)[0]
    assert set(cheapest_first(table, [0, 1])) == {0, 1}
    assert by_rate(table, {0: 0.0, 1: 100.0}) == [1, 0]
    assert then_random(table, [3], [2, 3, 4], seed=0)[0] == 3
    total = sum(table.source.seconds.values())
    nothing, everything = table.losses([0, 1, 2, 3], [0.0, total + 1])
    assert nothing > everything


def test_compared_counts_origins_once_and_bounds_the_ratio():
    rows = pd.DataFrame(
        [
            {"table": t, "origin": o, "order": order, "seconds": 5.0, "loss": loss}
            for t, o, ratio in (("a1", "a", 0.8), ("a2", "a", 0.8), ("b", "b", 1.0), ("c", "c", 0.9))
            for order, loss in (("defaults", 2.0), ("opening", 2.0 * ratio))
        ]
    )
    (found,) = study.compared(rows).to_dict("records")
    assert found["ratio"] == pytest.approx((0.8 * 1.0 * 0.9) ** (1 / 3))
    assert 0.8 <= found["low"] < found["ratio"] < found["high"] <= 1.0
    assert (found["better"], found["worse"]) == (3, 0)


@pytest.mark.parametrize("task", [TaskType.MULTICLASS, TaskType.REGRESSION])
@pytest.mark.parametrize("categories", [True, False])
def test_all_candidates_are_points_of_the_space(tmp_path, task, categories):
    n_classes = 3 if task.is_classification else 1
    profile = TaskProfile(task_type=task, n_rows=900, n_columns=4, n_classes=n_classes, has_categories=categories)
    space = make_space("default", profile)
    candidates = opening_candidates(tmp_path)
    assert opening_candidates(tmp_path) == candidates  # drawn once
    found = counterparts(candidates, space)
    for _, values in found.values():
        space.completed(values)
    assert len(found) == len(candidates)
    differing = offered(candidates, space)
    assert 100 < len(differing) <= len(candidates)
    assert all(key == found[key][0] for key in differing)
    defaults = [key for key in candidates if key[1] == "default"]
    assert defaults == list(differing)[: len(defaults)]
