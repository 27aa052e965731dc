from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.costs.first_seconds import FirstSeconds, timed
from benchmarks.experiments.costs.timed_candidates import read_candidates
from benchmarks.experiments.followed_candidates import FollowedCandidates
from benchmarks.runs.row_file import RowFile


@pytest.fixture
def data(tmp_path):
    """A folder with one table of three classes."""
    X = np.random.default_rng(0).normal(size=(90, 2))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(target=np.repeat(["x", "y", "z"], 30))
    frame.to_parquet(tmp_path / "three.parquet")
    (tmp_path / "manifest.json").write_text(
        json.dumps([{"name": "three", "file": "three.parquet", "task": "multiclass", "origin": "made up"}])
    )
    return tmp_path


def test_seconds_of_first_configurations_are_read_back_with_the_number_of_classes(data):
    seconds = {
        ("lightgbm", "first 1"): 2.0,
        ("lightgbm", "first 2"): 3.0,
        ("knn", "first 1"): 0.1,
        ("gone", "first 1"): 1,
    }
    followed = FollowedCandidates(np.zeros(90), {}, seconds)
    RowFile(data / "rows.csv", FirstSeconds).add(timed(followed, "three", "made up"))
    (table,) = read_candidates(data / "rows.csv", data)
    assert (table.origin, table.n_classes) == ("made up", 3)
    assert [c["algorithm"] for c in table.configurations] == ["lightgbm", "lightgbm", "knn"]
    assert [c.get("lightgbm:extra_trees") for c in table.configurations] == [False, True, None]
    np.testing.assert_array_equal(table.seconds, [2.0, 3.0, 0.1])
