from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.followed_candidates import FollowedCandidates, first_without_network
from benchmarks.experiments.outliers import CLIPPING, judged, report, with_twins
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space import make_space
from cashmere.space.component import BuildContext


def test_twins_differ_by_the_clipping_alone():
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=500, n_columns=3, n_classes=2, has_categories=False)
    space = with_twins(make_space("default", profile))
    context = BuildContext(
        task_type=TaskType.BINARY, n_classes=2, n_rows=500, n_features=3, categorical=np.zeros(3, dtype=bool)
    )
    offered = first_without_network(space)
    for name in set(CLIPPING) - {"ridge"}:
        steps = [
            [step for step, _ in space.build(space.completed(offered[key, "first 1"]), context).steps]
            for key in (name, f"{name}_with_outliers")
        ]
        assert steps[0] == ["outliers", *steps[1]]


def test_the_ensemble_is_judged_with_and_without():
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    noise = {"lightgbm": 0.5, "knn": 0.4, "knn_with_outliers": 0.8}
    predictions = {(name, "first 1"): (y + sd * rng.normal(size=300)).astype(np.float32) for name, sd in noise.items()}
    seconds = {("lightgbm", "first 1"): 5.0, ("knn", "first 1"): 2.0, ("knn_with_outliers", "first 1"): 1.0}
    knn, ensemble = judged(FollowedCandidates(y, predictions, seconds), "made up")
    assert (knn.algorithm, ensemble.algorithm) == ("knn", "ensemble")
    assert knn.clipped == pytest.approx(0.4, rel=0.2) and knn.kept == pytest.approx(0.8, rel=0.2)
    assert ensemble.clipped < ensemble.kept
    assert (ensemble.clipped_seconds, ensemble.kept_seconds) == (2.0, 1.0)
    frame = pd.DataFrame([{name: getattr(each, name) for name in each.__slots__} for each in (knn, ensemble)])
    assert [column.header for column in report(frame).columns] == ["table", "knn", "ensemble"]
