"""Ways to spend the last third of the time: what they fit, and their report."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.spare_time import NONE, REPEATS, SEARCH, SECOND_LAYER, as_columns, gather, judge, report
from benchmarks.tables.manifest import BenchmarkTable
from cashmere.data.task import TaskType


def test_predictions_become_log_odds_log_probabilities_or_values():
    np.testing.assert_allclose(as_columns(np.array([[0.25, 0.75], [0.5, 0.5]])), [[np.log(3)], [0.0]])
    np.testing.assert_allclose(as_columns(np.array([[0.2, 0.3, 0.5]])), np.log([[0.2, 0.3, 0.5]]))
    np.testing.assert_array_equal(as_columns(np.array([1.5, -2.0])), [[1.5], [-2.0]])
    assert np.isfinite(as_columns(np.array([[0.0, 1.0]]))).all()


def test_report_shows_changes_in_per_cent():
    rows = [("t", NONE, 0.5), ("t", SEARCH, 0.4), ("u", NONE, 1.0), ("u", SEARCH, 1.0)]
    shown = report(pd.DataFrame(rows, columns=["table", "way", "test_loss"]), title="")
    assert list(shown.columns[1].cells) == ["-20.00", "+0.00", "-10.00", "-10.00"]


@pytest.mark.slow
@pytest.mark.parametrize("task", [TaskType.BINARY, TaskType.REGRESSION])
def test_a_small_table(tmp_path, task):
    X = np.random.default_rng(0).normal(size=(240, 3))
    target = X[:, 0] + X[:, 1] ** 2
    target = target if task is TaskType.REGRESSION else np.where(target > 1, "a", "b")
    path = tmp_path / "small.parquet"
    pd.DataFrame(X, columns=list("abc")).assign(target=target).to_parquet(path)
    table = BenchmarkTable(name="small", path=path, task_type=task)
    gathered = gather(table, strategy="random", seed=0, n_rows=240, seconds=3)
    assert {len(fit.test) for fit in (*gathered.first, *gathered.second, *gathered.repeats)} == {80}
    assert {len(fit.out_of_fold) for fit in (*gathered.first, *gathered.second, *gathered.repeats)} == {160}
    first = {fit.number: fit for fit in gathered.first}
    for again in gathered.repeats:  # the same configuration on other folds
        assert again.observation.trial == first[again.number].observation.trial
        assert not np.array_equal(again.out_of_fold, first[again.number].out_of_fold)
    rows = {row.way: row for row in judge(gathered)}
    assert {NONE, SEARCH, SECOND_LAYER, f"{REPEATS}, same weights"} < set(rows)
    assert rows[NONE].new_weight == 0 < rows[f"{REPEATS}, same weights"].new_weight
    assert all(row.test_loss < (0.5 if task is TaskType.BINARY else 1.4) for row in rows.values())
