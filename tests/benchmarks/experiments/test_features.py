"""Which trials the study of features compares, on which rows, and what it shows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.features import AGAIN, ENSEMBLE, compare, configurations, drawn_rows, reports
from benchmarks.tables.manifest import BenchmarkTable
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space import make_space


@pytest.mark.parametrize("n", [90, 1000])
def test_judging_rows_are_a_third_and_were_not_learned(n):
    learn, test = drawn_rows(n, 300, seed=0)
    assert len(learn) + len(test) == min(n, 300)
    assert len(test) == min(n, 300) // 3
    assert not np.intersect1d(learn, test).size


def test_every_booster_runs_without_features_with_another_seed_and_with_features():
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=100, n_columns=4, n_classes=2)
    space = make_space("default", profile).restricted_to(["lightgbm", "random_forest"])
    found = [(values["algorithm"], features) for values, features in configurations(space)]
    assert found == [
        ("lightgbm", "none"),
        ("lightgbm", AGAIN),
        ("lightgbm", "arithmetic"),
        ("random_forest", "none"),
    ]


def test_reports_show_changes_in_per_cent():
    rows = [("t", "lightgbm", "none", 0.5), ("t", "lightgbm", "arithmetic", 0.4), ("t", "mlp", "none", 0.6)]
    frame = pd.DataFrame(rows, columns=["table", "learner", "features", "test_loss"])
    (shown,) = reports(frame)
    assert [list(column.cells) for column in shown.columns] == [["arithmetic"], ["-20.0"], ["-20.0"]]
    assert reports(frame[:0]) == []


@pytest.mark.slow
def test_a_table_whose_target_is_a_product(tmp_path):
    X = np.random.default_rng(0).normal(size=(900, 4))
    path = tmp_path / "product.parquet"
    pd.DataFrame(X, columns=list("abcd")).assign(target=np.tanh(X[:, 0] * X[:, 1])).to_parquet(path)
    rows = compare(BenchmarkTable(name="product", path=path, task_type=TaskType.REGRESSION), seed=0, n_rows=900)
    losses = {(row.learner, row.features): row.test_loss for row in rows}
    assert losses["lightgbm", "arithmetic"] < 0.7 * losses["lightgbm", "none"]
    assert losses[ENSEMBLE, "arithmetic"] < losses[ENSEMBLE, AGAIN]
