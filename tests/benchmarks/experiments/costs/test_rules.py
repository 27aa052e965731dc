from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.costs.rules import gittins_index
from cashmere.acquisition.improvement import expected_improvement


def test_at_the_index_the_expected_improvement_is_the_price():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=50), np.exp(rng.normal(size=50))
    price = np.exp(rng.uniform(-12, 4, size=50))
    index = gittins_index(mean, std, np.log(price))
    paid = [float(expected_improvement(m, s, g)) for m, s, g in zip(mean, std, index, strict=True)]
    assert paid == pytest.approx(price, rel=1e-3)


def test_cheap_boxes_come_first_and_free_ones_by_uncertainty():
    equal = np.zeros(2), np.ones(2)
    assert np.diff(gittins_index(*equal, np.log([0.1, 0.2])))[0] > 0
    wide = gittins_index(np.zeros(2), np.array([1.0, 2.0]), np.log([1e-6, 1e-6]))
    assert wide[1] < wide[0]
