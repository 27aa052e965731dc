"""What a changed default does to the first ensemble."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.followed_candidates import FollowedCandidates
from benchmarks.experiments.swaps import CHANGES, absent, judged, offers, parse_change, report
from cashmere.data.task import TaskProfile, TaskType
from cashmere.space import make_space

SPACE = make_space("default", TaskProfile(task_type=TaskType.BINARY, n_rows=500, n_columns=4, n_classes=2))


def test_a_change_is_made_to_the_default_of_its_algorithm():
    offered = offers(CHANGES, SPACE)
    changed = {key: values for key, values in offered.items() if not key[1].startswith("first ")}
    assert set(changed) == {("extra_trees", CHANGES[0]), ("knn", CHANGES[1])}
    (default,) = (c for c in SPACE.default_configurations() if c["algorithm"] == "knn")
    assert changed["knn", CHANGES[1]] == {**default, "knn:p": 1}
    assert SPACE.completed(changed["knn", CHANGES[1]])["knn:p"] == 1


def test_changes_that_a_space_lacks_are_left_out():
    assert all(key[1].startswith("first ") for key in offers(["ridge:basis=bins", "knn:encoding=target"], SPACE))


@pytest.mark.parametrize("text", ["knn", "knn:p", "p=1"])
def test_what_is_no_change_ends_with_what_was_expected(text):
    with pytest.raises(SystemExit, match="ALGORITHM:NAME=VALUE"):
        parse_change(text)


def test_the_ensemble_is_judged_with_the_changed_default_instead_and_beside():
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    noise = {("mlp", "first 1"): 0.5, ("knn", "first 1"): 0.8, ("knn", "first 2"): 3.0, ("knn", "knn:p=1"): 0.4}
    predictions = {key: (y + sd * rng.normal(size=300)).astype(np.float32) for key, sd in noise.items()}
    (found,) = judged(FollowedCandidates(y, predictions, dict(zip(noise, (1.0, 2.0, 3.0, 4.0), strict=True))), "made")
    assert (found.table, found.change, found.n_rows) == ("made", "knn:p=1", 300)
    assert (found.seconds, found.changed_seconds) == (2.0, 4.0)
    assert found.loss == pytest.approx(0.8, rel=0.2) and found.changed_loss == pytest.approx(0.4, rel=0.2)
    assert found.instead < found.ensemble and found.beside < found.ensemble
    assert absent(["knn:p=1", "knn:pp=1"], [found]) == ["knn:pp=1"]
    shown = report(pd.DataFrame([found]))
    assert [column.header for column in shown.columns] == ["table", "knn:p=1, instead", "knn:p=1, beside"]
