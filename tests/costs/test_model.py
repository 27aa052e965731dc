from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import truncnorm

from cashmere.costs.model import NOISE, LinearModel, _mean_above


def scaled_features(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.hstack([np.full((n, 1), 5.0), rng.normal(size=(n, 3))])


def test_weights_are_those_of_ridge_regression():
    rng = np.random.default_rng(0)
    Z, new = scaled_features(rng, 20), scaled_features(rng, 4)
    y = Z @ np.array([0.3, 1.0, -1.0, 0.5]) + 0.1 * rng.normal(size=20)
    mean = LinearModel.fit(Z, y, np.zeros(20, dtype=bool)).mean(new)
    weights = np.linalg.solve(Z.T @ Z + NOISE**2 * np.eye(4), Z.T @ y)
    assert mean == pytest.approx(new @ weights)


def test_without_trials_predictions_are_the_prior():
    model = LinearModel.fit(np.empty((0, 2)), np.empty(0), np.empty(0, dtype=bool))
    assert model.mean(np.array([[3.0, 0.0]])) == pytest.approx([0.0])
    assert model.std(np.array([[3.0, 0.0]])) == pytest.approx([np.hypot(3.0, NOISE)])


def test_censored_values_raise_predictions_above_their_bounds():
    rng = np.random.default_rng(1)
    Z = scaled_features(rng, 30)
    y = Z @ np.array([0.2, 1.0, 0.0, 0.0])
    limit = np.quantile(y, 0.7)
    cut, censored = np.minimum(y, limit), y > limit
    as_bounds = LinearModel.fit(Z, cut, censored).mean(Z)
    as_values = LinearModel.fit(Z, cut, np.zeros(30, dtype=bool)).mean(Z)
    assert np.abs(as_bounds - y).mean() < 0.7 * np.abs(as_values - y).mean()


def test_noisier_trials_widen_the_spread():
    rng = np.random.default_rng(2)
    Z, noise = scaled_features(rng, 40), rng.normal(size=40)
    none = np.zeros(40, dtype=bool)
    narrow = LinearModel.fit(Z, 0.1 * noise, none).std(Z)
    wide = LinearModel.fit(Z, 2.0 * noise, none).std(Z)
    assert (wide > 2 * narrow).all()


def test_mean_above_a_bound_is_that_of_the_truncated_normal_distribution():
    z = np.array([-8.0, -1.0, 0.0, 2.0, 8.0, 30.0])
    assert _mean_above(z) == pytest.approx(truncnorm.mean(z, np.inf), rel=1e-6)
