"""The filter finds pairs that explain more together than alone, and nothing in noise."""

from __future__ import annotations

import time

import numpy as np
import pytest

from cashmere.space.estimators.interactions import InteractionFilter, level_bins, number_bins


def made(X, y, n_classes=1, categorical=(), seed=0):
    return InteractionFilter(X, np.isin(np.arange(X.shape[1]), categorical), y, n_classes, seed)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 8)).astype(np.float32)
    X[:, 6:] = rng.integers(0, 12, size=(4000, 2))
    return X


@pytest.mark.parametrize(("a", "b"), [(0, 3), (2, 5)])
@pytest.mark.parametrize("n_classes", [1, 2, 5])
def test_the_pair_that_acts_together_comes_first(rows, a, b, n_classes):
    score = np.sign(rows[:, a] - np.median(rows[:, a])) * np.sign(rows[:, b] - np.median(rows[:, b])) + rows[:, 1]
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes)) if n_classes > 1 else score
    assert made(rows, y, n_classes, (6, 7)).pairs(np.arange(6), 3)[0] == (a, b)


def test_little_is_found_in_noise(rows):
    y = np.random.default_rng(1).normal(size=len(rows))
    found = made(rows, y, 1, (6, 7))
    gains = [found.gain(number_bins(rows[:, a] * rows[:, b])) for a in range(6) for b in range(a)]
    assert max(gains) < 0.01 * len(rows)


def test_what_is_explained_is_not_found_again(rows):
    found = made(rows, rows[:, 0] * rows[:, 1])
    cells = number_bins(rows[found.rows, 0] * rows[found.rows, 1])
    before = found.gain(cells)
    assert found.choose([cells, cells], 2)[0] == 0
    assert found.gain(cells) < 0.05 * before


def test_gaps_and_rare_levels_have_separate_bins():
    assert number_bins(np.array([np.nan, 1.0, 2.0, 2.0, np.nan])).tolist()[0] == 0
    assert number_bins(np.full(3, np.nan)).tolist() == [0, 0, 0]
    codes = np.array([np.nan, 5, 5, 2, *range(100, 200)])
    bins = level_bins(codes)
    assert bins[0] == 0
    assert bins[1] == bins[2] == 1
    assert bins.max() < 50
    assert len(np.unique(bins)) == bins.max() + 1


def test_a_long_table_takes_less_than_a_second():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 30)).astype(np.float32)
    clock = time.process_time()
    made(X, X[:, 0] * X[:, 1]).pairs(np.arange(30), 60)
    assert time.process_time() - clock < 1.0
