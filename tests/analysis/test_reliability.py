from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from cashmere.analysis.reliability import reliability_curve, wilson_interval


def test_bins_equal_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 5, 1000)
    z = rng.random(1000) < p**1.3
    found = reliability_curve(z, p, n_bins=10)
    observed, predicted = calibration_curve(z, p, n_bins=10, strategy="quantile")
    np.testing.assert_allclose(found.observed, observed)
    np.testing.assert_allclose(found.predicted, predicted)
    assert found.rows.sum() == 1000
    assert found.rows.min() >= 99
    assert found.error == pytest.approx(np.abs(observed - predicted) @ found.rows / 1000)


def test_intervals_have_their_nominal_coverage():
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(100):
        p = rng.random(400)
        found = reliability_curve(rng.random(400) < p, p)
        inside += ((found.lower <= found.predicted) & (found.predicted <= found.upper)).tolist()
    assert 0.87 < np.mean(inside) < 0.94


def test_weights_act_like_repetitions_on_the_shares():
    rng = np.random.default_rng(2)
    p, z = rng.random(200), rng.random(200) < 0.5
    weight = rng.integers(1, 4, 200)
    found = reliability_curve(z, p, weight=weight, n_bins=1)
    repeated = reliability_curve(np.repeat(z, weight), np.repeat(p, weight), n_bins=1)
    np.testing.assert_allclose(found.observed, repeated.observed)
    assert found.upper - found.lower > repeated.upper - repeated.lower  # repetitions add no information


def test_few_or_equal_rows_share_a_bin():
    assert len(reliability_curve(np.array([True, False]), np.array([0.2, 0.9])).rows) == 1
    found = reliability_curve(np.arange(100) < 30, np.full(100, 0.25))
    assert found.rows.tolist() == [100]
    assert found.error == pytest.approx(0.05)


def test_interval_solves_wilsons_equation():
    share, n = np.array([0.1, 0.7]), np.array([30.0, 12.0])
    for end in wilson_interval(share, n, 0.9):
        np.testing.assert_allclose(np.abs(end - share) / np.sqrt(end * (1 - end) / n), 1.6448536)
