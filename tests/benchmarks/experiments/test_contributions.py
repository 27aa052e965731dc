"""What each algorithm brings to the first ensemble."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from benchmarks.experiments.contributions import contributions, report
from benchmarks.experiments.followed_candidates import FollowedCandidates, first_without_network
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space import make_space


@pytest.fixture(scope="module")
def followed():
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    scales = {("xgboost", "first 1"): 0.5, ("xgboost", "first 2"): 0.6, ("mlp", "first 1"): 0.5, ("knn", "first 1"): 9}
    predictions = {key: (y + scale * rng.normal(size=400)).astype(np.float32) for key, scale in scales.items()}
    return FollowedCandidates(y, predictions, dict(zip(scales, (1.0, 2.0, 4.0, 8.0), strict=True)))


def test_an_algorithm_is_left_out_with_all_its_configurations(followed):
    rows = {row.algorithm: row for row in contributions(followed, "made up")}
    assert rows.keys() == {"xgboost", "mlp", "knn"}
    xgboost = rows["xgboost"]
    assert (xgboost.n_rows, xgboost.n_classes, xgboost.seconds, xgboost.others_seconds) == (400, 1, 3.0, 12.0)
    assert xgboost.without == followed.ensemble_loss([("mlp", "first 1"), ("knn", "first 1")])
    assert xgboost.loss == pytest.approx(0.5, rel=0.1)  # that of the better one
    assert {row.everyone for row in rows.values()} == {followed.ensemble_loss(followed.predictions)}


def test_errors_of_its_own_make_an_algorithm_useful(followed):
    rows = {row.algorithm: row for row in contributions(followed, "made up")}
    assert rows["mlp"].everyone < 0.95 * rows["mlp"].without
    assert rows["knn"].everyone > 0.99 * rows["knn"].without


def test_the_report_shows_tables_and_means(followed):
    console = Console(record=True, width=200)
    console.print(report(pd.DataFrame(contributions(followed, "made up"))))
    shown = console.export_text()
    assert "made up" in shown and "(53)" in shown and "mean" in shown and "median" in shown


def test_everything_that_a_search_begins_with_takes_part():
    space = make_space("default", TaskProfile(task_type=TaskType.BINARY, n_rows=500, n_columns=4, n_classes=2))
    found = {space.completed(values) for values in first_without_network(space).values()}
    assert found == {c for c in space.first_configurations() if c["algorithm"] != "realmlp"}
