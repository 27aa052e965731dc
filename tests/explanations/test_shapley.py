"""Contributions of columns: sampled Shapley values against exact ones."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.explanations.shapley import shapley_values

N = 4


def game(function, row, background):
    """Return what `shapley_values` calls."""
    return lambda mask, starts: function(np.where(mask, row, background[starts]))


def exact_values(function, row, background):
    """Sum over all coalitions, as in Shapley's definition."""
    n = len(row)

    def value(coalition):
        mask = np.isin(np.arange(n), coalition)
        return function(np.where(mask, row, background)).mean()

    found = np.zeros(n)
    for j in range(n):
        others = [k for k in range(n) if k != j]
        for size in range(n):
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            found[j] += weight * sum(value([*s, j]) - value(s) for s in map(list, combinations(others, size)))
    return found


def wild(X):
    return X[:, 0] * X[:, 1] + np.maximum(X[:, 2], X[:, 1]) * X[:, 0] + np.sin(3 * X[:, 2]) * (X[:, 1] > 0)


@pytest.mark.parametrize("seed", range(3))
def test_sampled_values_are_the_exact_ones_within_their_errors(seed):
    rng = np.random.default_rng(seed)
    row, background = rng.normal(size=N), rng.normal(size=(20, N))
    found = shapley_values(game(wild, row, background), N, 20, n_paths=4000, rng=rng)
    exact = exact_values(wild, row, background)
    assert np.abs(found.values - exact).max() < 0.1
    assert (np.abs(found.values - exact) <= 4.5 * found.standard_errors + 1e-12).all()
    assert found.values[3] == 0  # the function ignores it
    assert found.base == pytest.approx(wild(background).mean())


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_pairs=st.integers(1, 9))
def test_values_sum_to_what_the_row_is_away_from_the_base(seed, n_pairs):
    rng = np.random.default_rng(seed)
    row, background = rng.normal(size=N), rng.normal(size=(7, N))
    found = shapley_values(game(wild, row, background), N, 7, n_paths=2 * n_pairs, rng=rng)
    assert found.values.sum() == pytest.approx(wild(row[None])[0] - found.base)


def test_a_pair_of_columns_shares_evenly_what_they_do_together():
    row, background = np.array([1.0, 1.0]), np.zeros((1, 2))
    product = game(lambda X: X[:, 0] * X[:, 1], row, background)
    found = shapley_values(product, 2, 1, n_paths=2, rng=np.random.default_rng())
    np.testing.assert_allclose(found.values, [0.5, 0.5])
    assert np.isnan(found.standard_errors).all()


def test_blocks_of_paths_give_what_all_at_once_give(monkeypatch):
    rng = np.random.default_rng(0)
    row, background = rng.normal(size=N), rng.normal(size=(20, N))

    def found():
        return shapley_values(game(wild, row, background), N, 20, n_paths=50, rng=np.random.default_rng(1)).values

    whole = found()
    monkeypatch.setattr("cashmere.explanations.shapley._MOST_CELLS", 1)
    np.testing.assert_allclose(found(), whole)


def test_without_columns_nothing_contributes():
    found = shapley_values(lambda mask, starts: np.full(len(mask), 0.25), 0, 7, n_paths=6, rng=np.random.default_rng(0))
    assert found.base == 0.25 and found.values.shape == found.standard_errors.shape == (0,)
