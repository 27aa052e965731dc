"""Calibrations that clearly help, fitted and sharpened ones: one ensemble, judged four times."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.temperatures import WAYS, always, if_clear, run
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.tables.manifest import find_tables


@pytest.mark.slow
def test_an_ensemble_is_judged_once_in_each_way(one_table):
    (table,) = find_tables(one_table, ["small"])
    found = run(table, RunKey("small", "5fold", 0, 6.0, 225))
    assert [each.way for each in found] == list(WAYS)
    assert len({each.best for each in found}) == len({each.trials for each in found}) == 1
    assert found[0].temperature == 1.0 and found[0].trials > 0
    assert np.isfinite([each.test for each in found]).all()


def test_overconfident_probabilities_get_the_temperature_that_made_them_so():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4000, 2))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (rng.random(4000) > p[:, 0]).astype(int)
    overconfident = p**2 / (p**2).sum(axis=1, keepdims=True)
    fitted = always(overconfident, y, "log_loss")
    assert fitted.temperature == pytest.approx(2.0, rel=0.1)
    clear = if_clear(overconfident, y, "log_loss", rng=rng, is_mean_elsewhere=True)
    assert clear is not None and clear.temperature == pytest.approx(2.0, rel=0.1)
    assert if_clear(p, y, "log_loss", rng=rng, is_mean_elsewhere=True) is None
