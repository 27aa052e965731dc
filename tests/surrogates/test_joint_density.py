from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import chisquare, truncnorm

from cashmere.surrogates.joint_density import fit_joint, neighbour_deviations, smooth_choices
from cashmere.surrogates.tpe import forgetting_weights

PRIORS = [np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.4])]

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(60)
NODES, NODE_WEIGHTS = 0.5 * (NODES + 1), 0.5 * NODE_WEIGHTS

counts = st.integers(0, 40)
seeds = st.integers(0, 2**32)


def density_of(n, seed, *, p=2, priors=PRIORS, prior_weight=1.0):
    """Return the joint density of n random observations of p numbers and some choices, with the observations."""
    rng = np.random.default_rng(seed)
    numbers = np.round(rng.random((n, p)), 2)  # some are the same
    codes = np.array([rng.integers(0, len(prior), n) for prior in priors], dtype=np.int64).reshape(len(priors), n).T
    weights = forgetting_weights(n, n_full=5)
    return fit_joint(numbers, codes, weights, priors, prior_weight=prior_weight), numbers, codes, weights


def cells(n_bins, priors):
    """Return all cells of a grid over two numbers and some choices: lower and upper ends, codes."""
    edges = np.linspace(0, 1, n_bins + 1)
    corners = np.array(list(itertools.product(range(n_bins), range(n_bins), *(range(len(p)) for p in priors))))
    return edges[corners[:, :2]], edges[corners[:, :2] + 1], corners[:, 2:]


@settings(max_examples=20)
@given(st.integers(0, 8), seeds, st.floats(0.1, 10))
def test_density_over_numbers_and_choices_integrates_to_one(n, seed, prior_weight):
    density, *_ = density_of(n, seed, prior_weight=prior_weight)
    points = np.array(list(itertools.product(NODES, NODES)))
    heights = [
        density.log_density(points, points, np.tile(pair, (len(points), 1)))
        for pair in itertools.product(range(3), range(2))
    ]
    area = np.outer(NODE_WEIGHTS, NODE_WEIGHTS).ravel()
    assert np.exp(heights).sum(axis=0) @ area == pytest.approx(1, abs=1e-6)


@given(counts, seeds)
def test_density_of_one_number_integrates_to_one(n, seed):
    density, *_ = density_of(n, seed, p=1, priors=[])
    at = NODES[:, None]
    assert np.exp(density.log_density(at, at, np.empty((len(at), 0), dtype=np.int64))) @ NODE_WEIGHTS == pytest.approx(
        1, abs=1e-6
    )


@given(counts, seeds, st.integers(1, 6))
def test_probabilities_of_bins_and_choices_sum_to_one(n, seed, n_bins):
    density, *_ = density_of(n, seed)
    assert np.exp(density.log_density(*cells(n_bins, PRIORS))).sum() == pytest.approx(1)


@given(counts, seeds)
def test_draws_stay_in_bounds(n, seed):
    density, *_ = density_of(n, seed)
    numbers, codes = density.sample(50, np.random.default_rng(seed))
    assert numbers.shape == codes.shape == (50, 2)
    assert np.all((numbers >= 0) & (numbers <= 1))
    assert np.all((codes >= 0) & (codes < [3, 2]))
    assert np.all(np.isfinite(density.log_density(numbers, numbers, codes)))


@pytest.mark.parametrize("n", [0, 1, 2, 30])
def test_draws_follow_the_density(n):
    density, *_ = density_of(n, 4)
    numbers, codes = density.sample(20_000, np.random.default_rng(0))
    lower, upper, choices = cells(4, PRIORS)
    expected = np.exp(density.log_density(lower, upper, choices)) * len(numbers)
    cell = np.ravel_multi_index((*np.minimum(4 * numbers, 3).astype(int).T, *codes.T), (4, 4, 3, 2))
    assert chisquare(np.bincount(cell, minlength=len(expected)), expected).pvalue > 0.01


@pytest.mark.parametrize(("n", "prior_weight"), [(0, 1.0), (1, 1.0), (7, 0.6)])
def test_density_is_the_mixture_of_products(n, prior_weight):
    density, numbers, codes, weights = density_of(n, 1, prior_weight=prior_weight)
    sigma = neighbour_deviations(numbers)
    rng = np.random.default_rng(2)
    lower = rng.random((20, 2))
    upper = np.stack([np.minimum(lower[:, 0] + 0.1, 1), lower[:, 1]], axis=1)  # a bin and a density
    at = rng.integers(0, 2, (20, 2))
    expected = np.zeros(20)
    for i in range(n + 1):
        mu, s, w = (numbers[i], sigma[i], weights[i]) if i < n else (np.full(2, 0.5), np.ones(2), prior_weight)
        normal = [truncnorm(-m / d, (1 - m) / d, loc=m, scale=d) for m, d in zip(mu, s, strict=True)]
        part = (normal[0].cdf(upper[:, 0]) - normal[0].cdf(lower[:, 0])) * normal[1].pdf(lower[:, 1])
        for j, prior in enumerate(PRIORS):
            share = len(prior) * prior_weight / (n + 1)
            kernel = (np.eye(len(prior))[codes[i, j]] + share * prior) / (1 + share) if i < n else prior
            part = part * kernel[at[:, j]]
        expected += w * part / (weights.sum() + prior_weight)
    assert density.log_density(lower, upper, at) == pytest.approx(np.log(expected))


@given(st.integers(2, 30), seeds)
def test_order_of_observations_does_not_matter(n, seed):
    rng = np.random.default_rng(seed)
    numbers, codes, weights = rng.random((n, 2)), rng.integers(0, 3, (n, 1)), rng.random(n) + 0.1
    moved = rng.permutation(n)
    at, choices = rng.random((9, 2)), rng.integers(0, 3, (9, 1))
    one = fit_joint(numbers, codes, weights, PRIORS[:1])
    two = fit_joint(numbers[moved], codes[moved], weights[moved], PRIORS[:1])
    assert two.log_density(at, at, choices) == pytest.approx(one.log_density(at, at, choices))


def test_observations_together_are_more_likely_than_their_parts():
    corners = np.array([[0.1, 0.1], [0.12, 0.15], [0.9, 0.9], [0.87, 0.92]])
    codes = np.array([[0], [0], [1], [1]])
    density = fit_joint(corners, codes, np.ones(4), [[0.5, 0.5]])
    at = np.array([[0.1, 0.1], [0.1, 0.1], [0.1, 0.9], [0.9, 0.9]])
    together, other_choice, across, _ = density.log_density(at, at, np.array([[0], [1], [0], [1]]))
    assert together > other_choice + 0.5 and together > across + 1


def test_deviations_span_the_space_to_the_neighbours():
    assert neighbour_deviations(np.empty((0, 3))).shape == (0, 3)
    assert neighbour_deviations(np.array([[0.2, 0.9]])).tolist() == [[0.8, 0.9]]
    x = np.array([[0.8], [0.1], [0.5], [0.5]])
    assert neighbour_deviations(x).ravel() == pytest.approx([0.3, 0.4, 0.4, 0.3])
    assert neighbour_deviations(np.full((4, 1), 0.3)).ravel().tolist() == [1 / 6] * 4
    assert neighbour_deviations(np.full((300, 1), 0.3)).max() == 0.01


@given(hnp.arrays(np.float64, st.tuples(st.integers(0, 20), st.integers(1, 3)), elements=st.floats(0, 1)))
def test_deviations_of_a_column_depend_on_it_alone(x):
    together = neighbour_deviations(x)
    assert np.all((together >= 1 / (len(x) + 2)) & (together <= 1))
    for j in range(x.shape[1]):
        assert np.array_equal(neighbour_deviations(x[:, [j]]), together[:, [j]])


@given(st.lists(st.integers(0, 2), max_size=20), st.floats(0.1, 10))
def test_smoothed_choices_sum_to_one_and_favour_what_was_observed(codes, prior_weight):
    prior = np.array([0.5, 0.5, 0.0])
    probabilities = smooth_choices(np.array(codes, dtype=np.int64), prior, prior_weight=prior_weight)
    assert probabilities.shape == (len(codes), 3)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(len(codes)))
    for row, code in zip(probabilities, codes, strict=True):
        assert row[code] > prior[code] and np.all(np.delete(row, code) <= np.delete(prior, code))


def test_choices_without_prior_have_a_finite_density():
    density = fit_joint(np.empty((2, 0)), np.array([[0], [1]]), np.ones(2), [[0.5, 0.5, 0.0]])
    nothing = np.empty((3, 0))
    logs = density.log_density(nothing, nothing, np.array([[0], [1], [2]]))
    assert np.all(np.isfinite(logs)) and logs[2] < -600
    assert set(density.sample(200, np.random.default_rng(0))[1].ravel()) == {0, 1}
