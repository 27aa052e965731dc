"""What boosters learn under absolute errors: a run, and the runs of the command."""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.absolute_errors import _wanted, add_arguments, run
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.tables.manifest import find_tables


@pytest.mark.slow
def test_a_run_is_judged_on_other_rows(one_table):
    (table,) = find_tables(one_table, ["small"])
    (found,) = run(table, RunKey("small:credit_amount", "mape/median", 0, 3.0, 120))
    assert np.isfinite([found.validation, found.test, found.constant]).all()
    assert found.skewness > 0.5
    assert found.trials > 0


def test_percentage_errors_are_those_of_positive_targets(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 2.0], "target": ["x", "y", "x"]})
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "manifest.json").write_text('[{"name": "t", "file": "t.parquet", "task": "binary"}]')
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    arguments = parser.parse_args(["--data", str(tmp_path), "--tables", "t:a", "t:b", "--seeds", "2"])
    runs = [(key.seed, key.table, key.variant) for _, key in _wanted(arguments)]
    assert runs == [
        (seed, name, f"{metric}/{learned}")
        for seed in (0, 1)
        for name, metric in (("t:a", "mae"), ("t:a", "mape"), ("t:b", "mae"))
        for learned in ("mean", "median", "logarithms")
    ]
