"""Calibrations around equal classes and around their mean probabilities: one run, judged three times."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.rare_classes import CENTRES, equal_classes, run
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.tables.manifest import find_tables
from cashmere.ensembles.calibration import centre_of


@pytest.mark.slow
def test_a_run_is_judged_once_for_each_centre(one_table):
    (table,) = find_tables(one_table, ["small"])
    found = run(table, RunKey("small", "auto", 0, 6.0, 225))
    assert [each.centre for each in found] == list(CENTRES)
    assert len({each.observed for each in found}) == len({each.trials for each in found}) == 1
    assert found[0].temperature == 1.0 and found[0].trials > 0
    assert np.isfinite([each.test for each in found]).all()


def test_equal_classes_are_where_balanced_probabilities_have_their_mean():
    probabilities = np.array([[0.2, 0.8], [0.8, 0.2]])
    z, w = np.log(probabilities), np.full(2, 0.5)
    np.testing.assert_allclose(equal_classes(z, w), centre_of(z, w))
