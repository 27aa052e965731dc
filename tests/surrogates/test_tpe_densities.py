from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, ks_1samp, truncnorm

from cashmere.exceptions import InvalidParameterError
from cashmere.surrogates.tpe import fit_categorical, fit_parzen, forgetting_weights, n_below

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "tpe.json").read_text())

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(200)

values = st.lists(st.floats(0, 1), max_size=60)


@pytest.mark.parametrize(("n", "hyperopt", "quantile"), VECTORS["n_below"]["rows"])
def test_number_of_good_observations_agrees_with_vectors(n, hyperopt, quantile):
    assert n_below(n) == n_below(n, "sqrt") == hyperopt
    assert n_below(n, "quantile") == quantile


def test_unknown_rule_is_refused():
    with pytest.raises(InvalidParameterError, match="sqrt"):
        n_below(10, "half")


@pytest.mark.parametrize("case", VECTORS["adaptive_parzen_uniform_prior"])
def test_parzen_estimator_agrees_with_vectors(case):
    mixture = fit_parzen(case["obs"], np.ones(len(case["obs"])), low=case["low"], high=case["high"])
    assert mixture.weights == pytest.approx(case["weights"])
    assert mixture.means == pytest.approx(case["mus"])
    assert mixture.deviations == pytest.approx(case["sigmas"])
    assert mixture.log_density(case["x"]) == pytest.approx(case["log_density"], rel=1e-12)


def test_categorical_posterior_agrees_with_vector():
    case = VECTORS["categorical"]
    codes = np.array(case["obs"])
    posterior = fit_categorical(codes, forgetting_weights(len(codes)), case["prior"], prior_weight=case["prior_weight"])
    assert posterior == pytest.approx(case["posterior"])


def test_weights_rise_linearly_up_to_the_newest_ones():
    assert forgetting_weights(25).tolist() == [1.0] * 25
    assert forgetting_weights(26).tolist() == [1 / 26] + [1.0] * 25
    weights = forgetting_weights(100)
    assert weights[[0, 74, 75, 99]] == pytest.approx([0.01, 1, 1, 1])
    assert np.ptp(np.diff(weights[:75])) < 1e-12


def test_weights_follow_their_observations_through_the_sort():
    mixture = fit_parzen([0.9, 0.1], [0.2, 0.6], prior_weight=0.2)
    assert mixture.means.tolist() == [0.1, 0.5, 0.9]
    assert mixture.weights == pytest.approx([0.6, 0.2, 0.2])


def test_prior_stands_before_observations_of_its_value():
    mixture = fit_parzen([0.5, 0.7], [1, 1])
    assert mixture.deviations == pytest.approx([1.0, 0.25, 0.25])  # 0.2 raised to 1/4
    mixture = fit_parzen([0.5, 0.5, 0.8, 0.81], np.ones(4))
    assert mixture.deviations == pytest.approx([1.0, 1 / 6, 0.3, 0.3, 1 / 6])


@given(values, st.floats(0.1, 5), st.integers(1, 30))
def test_density_integrates_to_one(x, prior_weight, n_full):
    mixture = fit_parzen(x, forgetting_weights(len(x), n_full=n_full), prior_weight=prior_weight)
    density = np.exp(mixture.log_density(0.5 * (NODES + 1)))
    assert 0.5 * density @ NODE_WEIGHTS == pytest.approx(1, abs=1e-6)
    assert mixture.log_mass([0.0], [1.0]) == pytest.approx([0.0], abs=1e-12)


@given(values, st.integers(1, 50))
def test_masses_of_bins_sum_to_one_and_approach_the_density(x, n_bins):
    mixture = fit_parzen(x, np.ones(len(x)))
    edges = np.linspace(0, 1, n_bins + 1)
    assert np.exp(mixture.log_mass(edges[:-1], edges[1:])).sum() == pytest.approx(1)
    centres = np.linspace(0.01, 0.99, n_bins)
    narrow = mixture.log_mass(centres - 1e-6, centres + 1e-6) - np.log(2e-6)
    assert narrow == pytest.approx(mixture.log_density(centres), abs=1e-5)


def test_mass_of_an_unresolved_interval_is_finite():
    assert np.isfinite(fit_parzen([0.3], [1.0]).log_mass([0.5], [0.5])).all()


@given(values, st.integers(0, 2**32 - 1))
def test_sampled_values_lie_within_the_bounds(x, seed):
    mixture = fit_parzen(-3 + 10 * np.array(x), np.ones(len(x)), low=-3.0, high=7.0)
    drawn = mixture.sample(50, np.random.default_rng(seed))
    assert drawn.shape == (50,)
    assert np.all((drawn >= -3) & (drawn <= 7))
    assert np.all(np.isfinite(mixture.log_density(drawn)))


@given(st.lists(st.integers(0, 99), max_size=40), st.floats(0.1, 100), st.floats(-50, 50))
def test_affine_maps_of_the_range_change_nothing_else(hundredths, scale, shift):
    x = 0.003 + 0.01 * np.array(hundredths)  # never the prior's mean, whose rounding might change the order
    unit = fit_parzen(x, np.ones(len(x)))
    moved = fit_parzen(shift + scale * x, np.ones(len(x)), low=shift, high=shift + scale)
    at = np.linspace(0, 1, 7)
    assert moved.log_density(shift + scale * at) == pytest.approx(unit.log_density(at) - np.log(scale), abs=1e-6)


@pytest.mark.parametrize("x", [[], [0.02], [0.0, 0.01, 0.5, 0.97, 1.0], np.linspace(0.6, 0.7, 40)])
def test_draws_follow_the_density(x):
    mixture = fit_parzen(x, forgetting_weights(len(x)))
    drawn = mixture.sample(20_000, np.random.default_rng(0))
    # The distribution function, put together from cut components by scipy.
    parts = [
        truncnorm((0 - m) / s, (1 - m) / s, loc=m, scale=s)
        for m, s in zip(mixture.means, mixture.deviations, strict=True)
    ]
    inside = mixture._inside() / mixture._inside().sum()
    assert ks_1samp(drawn, lambda at: sum(w * p.cdf(at) for w, p in zip(inside, parts, strict=True))).pvalue > 0.01
    edges = np.linspace(0, 1, 21)
    expected = np.exp(mixture.log_mass(edges[:-1], edges[1:]))
    assert chisquare(np.histogram(drawn, edges)[0], expected * len(drawn)).pvalue > 0.01


@given(st.lists(st.integers(0, 4), max_size=40), st.floats(0.1, 10))
def test_categorical_probabilities_are_positive_and_sum_to_one(codes, prior_weight):
    codes = np.array(codes, dtype=np.int64)
    prior = np.array([0.1, 0.2, 0.3, 0.4, 0.0])
    posterior = fit_categorical(codes, forgetting_weights(len(codes)), prior, prior_weight=prior_weight)
    assert posterior.sum() == pytest.approx(1)
    assert np.all(posterior[:4] > 0)
    assert (posterior[4] > 0) == (4 in codes)


def test_without_observations_the_posterior_is_the_prior():
    none = np.array([], dtype=np.int64)
    assert fit_categorical(none, [], [0.7, 0.3], prior_weight=2.0) == pytest.approx([0.7, 0.3])
