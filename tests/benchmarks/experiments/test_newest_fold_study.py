"""Which fold models predict the rows that follow: a run, and the rows it is judged on."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.newest_fold import run
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.tables.manifest import find_tables


@pytest.mark.slow
def test_a_run_is_judged_on_the_rows_that_follow(one_table):
    (table,) = find_tables(one_table, ["small"])
    (found,) = run(table, RunKey("small", "3fold", 1, 3.0, 120))
    assert found.n_train == 120
    assert 0 < found.n_test <= 120 // 9
    losses = (
        found.all_folds,
        found.newest_three,
        found.newest_two,
        found.newest_fold,
        found.refit,
        found.refit_and_two,
    )
    assert np.isfinite(losses).all()
    assert found.all_folds == found.newest_three != found.newest_fold  # there are three folds
    assert 0 <= found.covered <= 1
