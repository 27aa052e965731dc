"""Contributions of columns: sampled Shapley values against exact ones."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.explanations.shapley import _draw_starts, shapley_values

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
    found = shapley_values(game(wild, row, background), N, wild(background), n_paths=4000, rng=rng)
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
    found = shapley_values(game(wild, row, background), N, wild(background), n_paths=2 * n_pairs, rng=rng)
    assert found.base == pytest.approx(wild(background).mean())
    assert found.values.sum() == pytest.approx(wild(row[None])[0] - found.base)


def test_the_base_is_that_of_the_whole_background_whatever_the_seed():
    rng = np.random.default_rng(0)
    row, background = np.array([0.4, 0.0]), rng.normal(size=(500, 2))

    def main(X):
        return X[:, 0] + 0.1 * X[:, 1]

    exact = row * [1, 0.1] - background.mean(axis=0) * [1, 0.1]
    errors, claimed = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        found = shapley_values(game(main, row, background), 2, main(background), n_paths=100, rng=rng)
        assert found.base == pytest.approx(main(background).mean())
        errors.append(found.values - exact)
        claimed.append(found.standard_errors)
    spread = np.sqrt(np.mean(np.square(errors), axis=0))
    assert (spread < 0.02).all()  # 50 starts drawn without strata or regression: 0.14
    np.testing.assert_allclose(spread, np.mean(claimed, axis=0), rtol=0.35)


def test_starts_of_rows_come_equally_often_and_spread_over_their_predictions():
    background = np.random.default_rng(0).permutation(7.0 + np.arange(7))
    counts = np.zeros(7)
    for seed in range(2000):
        starts = _draw_starts(background, 10, np.random.default_rng(seed))
        counts += np.bincount(starts, minlength=7)
        assert np.bincount(starts, minlength=7).min() == 1 and len(starts) == 10
        assert background[starts[7:]].min() <= 9 and background[starts[7:]].max() >= 11
    np.testing.assert_allclose(counts / 2000, 10 / 7, atol=0.06)


@pytest.mark.parametrize("n_paths", [2, 4, 6])
def test_few_starts_with_like_predictions_do_not_upset_the_values(n_paths):
    row, background = np.ones(2), np.array([[0.0, 0.0]] * 30 + [[1e-9, 0.0]] * 30 + [[-4.0, 0.0]])

    def noisy(X):  # the second column matters only in company, by turns
        return X[:, 0] + X[:, 1] * np.where(X[:, 0] == 0, 3, -1)

    exact = exact_values(noisy, row, background)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        found = shapley_values(game(noisy, row, background), 2, noisy(background), n_paths=n_paths, rng=rng)
        assert np.abs(found.values - exact).max() < 5
        assert found.values.sum() == pytest.approx(noisy(row[None])[0] - found.base)


def test_a_row_predicted_like_all_starts_shares_what_is_left_evenly():
    row, background = np.ones(2), np.array([[1.0, 1.0]] * 9 + [[0.0, 1.0]])
    found = [
        shapley_values(
            game(lambda X: X[:, 0], row, background), 2, background[:, 0], n_paths=2, rng=np.random.default_rng(seed)
        )
        for seed in range(20)
    ]
    assert all(each.values.sum() == pytest.approx(0.1) for each in found)
    assert {tuple(each.values.round(9)) for each in found} == {(0.05, 0.05), (0.1, 0.0)}


def test_a_pair_of_columns_shares_evenly_what_they_do_together():
    row, background = np.array([1.0, 1.0]), np.zeros((1, 2))
    product = game(lambda X: X[:, 0] * X[:, 1], row, background)
    found = shapley_values(product, 2, np.zeros(1), n_paths=2, rng=np.random.default_rng())
    np.testing.assert_allclose(found.values, [0.5, 0.5])
    assert np.isnan(found.standard_errors).all()


def test_blocks_of_paths_give_what_all_at_once_give(monkeypatch):
    rng = np.random.default_rng(0)
    row, background = rng.normal(size=N), rng.normal(size=(20, N))

    def found():
        rng = np.random.default_rng(1)
        return shapley_values(game(wild, row, background), N, wild(background), n_paths=50, rng=rng).values

    whole = found()
    monkeypatch.setattr("cashmere.explanations.shapley._MOST_CELLS", 1)
    np.testing.assert_allclose(found(), whole)


def test_without_columns_nothing_contributes():
    rng, constant = np.random.default_rng(0), np.full(7, 0.25)
    found = shapley_values(lambda mask, starts: np.full(len(mask), 0.25), 0, constant, n_paths=6, rng=rng)
    assert found.base == 0.25 and found.values.shape == found.standard_errors.shape == (0,)
