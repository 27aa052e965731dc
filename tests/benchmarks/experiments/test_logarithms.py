"""Learners of logarithms: a run."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.logarithms import ENSEMBLE, run
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.tables.manifest import find_tables


@pytest.mark.long
def test_every_learner_learns_values_and_logarithms(one_table):
    (table,) = find_tables(one_table, ["small"])
    found = run(table, RunKey("small:credit_amount", "2fold", 0, 0.0, 60))
    assert {each.metric for each in found} == {"rmse", "rmsle"}
    assert [each.learner for each in found].count(ENSEMBLE) == 2
    assert len({each.learner for each in found}) == len(found) / 2
    assert np.isfinite([[each.on_values, each.on_logarithms] for each in found]).all()
    assert all(np.isfinite(each.on_both) == (each.learner == ENSEMBLE) for each in found)
