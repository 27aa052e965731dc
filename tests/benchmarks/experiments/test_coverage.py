"""How often intervals and sets contain the truth: a run of each kind, and columns as targets."""

from __future__ import annotations

import pytest

from benchmarks.experiments.coverage import COVERAGES, read, run
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.tables.manifest import find_tables


@pytest.mark.slow
def test_sets_of_a_run_are_judged_on_other_rows(one_table):
    (table,) = find_tables(one_table, ["small"])
    found = run(table, RunKey("small", "auto", 0, 3.0, 150))
    assert [one.coverage for one in found] == list(COVERAGES)
    assert all(0.6 < one.covered <= 1 and 1 <= one.size <= 2 and one.n_train == 150 for one in found)


def test_a_column_may_be_the_target(one_table):
    (table,) = find_tables(one_table, ["small"])
    X, y = table.read()
    column = next(name for name in X if X[name].dtype.kind == "f" or X[name].dtype.kind == "i")
    features, target, is_class = read(table, f"small:{column}")
    assert not is_class and column not in features and "small" in features
    assert (
        target.tolist() == X[column].dropna().tolist() and features["small"].tolist() == y[X[column].notna()].tolist()
    )
    assert read(table, "small")[2]
