"""Boosters under deviances: a run, and the runs of the command."""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.deviances import _wanted, add_arguments, run
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.tables.manifest import find_tables


@pytest.mark.slow
def test_each_booster_learns_twice(one_table):
    (table,) = find_tables(one_table, ["small"])
    found = run(table, RunKey("small:credit_amount", "tweedie", 0, 0.0, 150))
    assert [each.algorithm for each in found] == ["lightgbm", "xgboost"]
    assert np.isfinite([[each.own, each.squared, each.constant] for each in found]).all()
    assert all(each.own != each.squared for each in found)


def test_gamma_is_for_positive_targets(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 2.0], "c": [-1.0, 1.0, 2.0], "target": ["x", "y", "x"]})
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "manifest.json").write_text('[{"name": "t", "file": "t.parquet", "task": "binary"}]')
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    arguments = parser.parse_args(["--data", str(tmp_path), "--tables", "t:a", "t:b", "t:c"])
    runs = [(key.table, key.variant) for _, key in _wanted(arguments)]
    assert runs == [
        *(("t:a", metric) for metric in ("poisson", "gamma", "tweedie")), *(("t:b", m) for m in ("poisson", "tweedie")),
    ]  # fmt: skip
