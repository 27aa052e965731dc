from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from cashmere.base.threads import one_blas_thread
from cashmere.surrogates.gaussian_process import (
    GaussianProcess,
    GaussianProcessPrior,
    fit_prior,
    matern52,
    negative_log_likelihood,
)
from contracts.surrogate_contract import SurrogateContract

PRIOR = GaussianProcessPrior(
    mean=0.3, signal_variance=1.3, noise_variance=0.02, length_scales=np.array([0.4, 1.1, 0.7, 2.0])
)


class TestGaussianProcess(SurrogateContract):
    @pytest.fixture
    def surrogate(self):
        return GaussianProcess


def smooth(X):
    return np.sin(5 * X[:, 0]) + X[:, -1] ** 2


def points(n, d, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, smooth(X) + noise * rng.normal(size=n)


def oracle(prior):
    return GaussianProcessRegressor(
        ConstantKernel(prior.signal_variance) * Matern(prior.length_scales, nu=2.5),
        alpha=prior.noise_variance,
        optimizer=None,
    )


def test_kernel_is_that_of_scikit_learn():
    (a, _), (b, _) = points(20, 4), points(7, 4, seed=1)
    np.testing.assert_allclose(
        matern52(a, b, PRIOR.length_scales), Matern(PRIOR.length_scales, nu=2.5)(a, b), atol=1e-12
    )
    np.testing.assert_allclose(np.diag(matern52(a, a, PRIOR.length_scales)), 1, atol=1e-12)


def test_posterior_is_that_of_scikit_learn():
    X, y = points(25, 4)
    Z = np.vstack([np.random.default_rng(2).random((50, 4)), X[:5]])
    mean, variance = GaussianProcess(prior=PRIOR).fit(X, y).predict(Z)
    expected, std = oracle(PRIOR).fit(X, y - PRIOR.mean).predict(Z, return_std=True)
    np.testing.assert_allclose(mean, PRIOR.mean + expected, atol=1e-8)
    np.testing.assert_allclose(variance, std**2, atol=1e-8)


def test_likelihood_is_that_of_scikit_learn():
    X, y = points(25, 4)
    value, _ = negative_log_likelihood(PRIOR.theta, X, y)
    assert value == pytest.approx(-oracle(PRIOR).fit(X, y - PRIOR.mean).log_marginal_likelihood_value_, abs=1e-8)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 25), st.integers(1, 5), st.integers(0, 2**32))
def test_gradient_is_that_of_finite_differences(n, d, seed):
    X, y = points(n, d, seed=seed)
    theta = np.random.default_rng(seed).normal([0, 0, -3] + [-0.5] * d, 0.7)
    numeric = approx_fprime(theta, lambda t: negative_log_likelihood(t, X, y)[0], 1e-6)
    np.testing.assert_allclose(negative_log_likelihood(theta, X, y)[1], numeric, rtol=1e-3, atol=1e-3)


def test_prior_and_parameters_convert_both_ways():
    again = GaussianProcessPrior.of(PRIOR.theta)
    np.testing.assert_allclose(again.theta, PRIOR.theta)
    np.testing.assert_allclose(again.length_scales, PRIOR.length_scales)


def test_fit_improves_on_other_priors():
    X, y = points(30, 3)
    found = fit_prior([(X, y)])
    value, _ = negative_log_likelihood(found.theta, X, y)
    rng = np.random.default_rng(0)
    others = [negative_log_likelihood(found.theta + 0.7 * rng.normal(size=6), X, y)[0] for _ in range(20)]
    assert value < np.min(others)
    assert found.length_scales[1] > 2 * found.length_scales[0]  # the coordinate that does not matter


def test_isotropic_fit_improves_on_other_common_scales():
    X, y = points(30, 3)
    found = fit_prior([(X, y)], isotropic=True)
    assert np.ptp(found.length_scales) == 0
    value, gradient = negative_log_likelihood(found.theta, X, y)
    for change in (-1.0, 1.0):
        assert value < negative_log_likelihood(found.theta + change * (np.arange(6) >= 3), X, y)[0]
    assert abs(gradient[3:].sum()) < 2  # the weak priors move it a little from the top of the likelihood


def test_one_prior_for_several_data_sets_finds_what_they_were_drawn_from():
    rng = np.random.default_rng(0)
    true = GaussianProcessPrior(mean=5.0, signal_variance=4.0, noise_variance=0.04, length_scales=np.array([0.2, 1.0]))
    datasets = []
    for _ in range(20):
        X = rng.random((30, 2))
        K = true.signal_variance * matern52(X, X, true.length_scales) + true.noise_variance * np.eye(30)
        datasets.append((X, true.mean + np.linalg.cholesky(K) @ rng.normal(size=30)))
    found = fit_prior([*datasets, (np.empty((0, 2)), np.empty(0))])
    assert found.mean == pytest.approx(5.0, abs=1.0)
    np.testing.assert_allclose(np.log(found.length_scales), np.log(true.length_scales), atol=0.3)
    assert found.signal_variance == pytest.approx(4.0, rel=0.4)
    assert found.noise_variance == pytest.approx(0.04, rel=0.4)


@settings(max_examples=20, deadline=None)
@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_predictions_move_and_stretch_with_the_losses(shift, factor):
    X, y = points(12, 2)
    Z = np.random.default_rng(3).random((9, 2))
    mean, variance = GaussianProcess().fit(X, y).predict(Z)
    moved, stretched = GaussianProcess().fit(X, shift + factor * y).predict(Z)
    np.testing.assert_allclose(moved, shift + factor * mean, rtol=1e-3, atol=1e-3 * factor)
    np.testing.assert_allclose(stretched, factor**2 * variance, rtol=0.02)


def test_a_prior_is_enough_without_observations():
    mean, variance = GaussianProcess(prior=PRIOR).fit(np.empty((0, 4)), np.empty(0)).predict(np.zeros((3, 4)))
    np.testing.assert_allclose(mean, PRIOR.mean)
    np.testing.assert_allclose(variance, PRIOR.signal_variance)
    assert np.isfinite(GaussianProcess().fit(np.empty((0, 4)), np.empty(0)).predict(np.zeros((3, 4)))).all()


def test_points_without_coordinates_share_one_mean():
    mean, variance = GaussianProcess().fit(np.empty((3, 0)), np.array([0.1, 0.2, 0.3])).predict(np.empty((2, 0)))
    np.testing.assert_allclose(mean, 0.2, atol=0.02)
    assert (variance > 0).all()


def test_repeated_points_and_few_levels_are_survived():
    X = np.repeat(np.random.default_rng(0).integers(0, 3, size=(10, 2)) / 2, 6, axis=0)
    mean, variance = GaussianProcess().fit(X, np.round(smooth(X), 1)).predict(X)
    assert np.isfinite(mean).all() and (variance > 0).all()


def test_imagined_losses_remove_uncertainty_and_keep_the_mean():
    X, y = points(15, 2)
    process = GaussianProcess().fit(X, y)
    Z = np.random.default_rng(1).random((40, 2))
    later = process.imagine(Z[:3])
    (mean, variance), (after, less) = process.predict(Z), later.predict(Z)
    np.testing.assert_allclose(after, mean, atol=1e-6)
    assert (less <= variance + 1e-12).all()
    assert (less[:3] < 0.5 * variance[:3]).all()


def test_a_fit_takes_milliseconds():
    X, y = points(25, 4)
    with one_blas_thread():
        GaussianProcess().fit(X, y)
        start = time.process_time()
        for _ in range(5):
            GaussianProcess().fit(X, y)
    assert (time.process_time() - start) / 5 < 0.05  # 10 ms on an idle machine


def test_a_prior_around_zero_keeps_its_scales_and_the_share_of_its_noise():
    prior = GaussianProcessPrior(
        mean=2.0, signal_variance=3.0, noise_variance=1.0, length_scales=np.array([0.2, 0.7])
    ).around_zero(8.0)
    assert (prior.mean, prior.signal_variance, prior.noise_variance) == (0.0, 6.0, 2.0)
    np.testing.assert_array_equal(prior.length_scales, [0.2, 0.7])
