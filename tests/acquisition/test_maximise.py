from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

from cashmere.acquisition.maximise import draw_candidates
from cashmere.space.encoding.encoder import SpaceEncoder


@pytest.fixture
def encoder():
    return SpaceEncoder(ConfigurationSpace({"x": (0.0, 1.0), "y": (1, 1000), "z": ["a", "b", "c"]}, seed=0))


def history(encoder, n):
    rng = np.random.default_rng(0)
    return encoder.sample(n, rng), rng.random(n)


@pytest.mark.parametrize("n_observations", [1, 7, 30])
def test_candidates_are_distinct_and_new(encoder, n_observations):
    rows, losses = history(encoder, n_observations)
    candidates = draw_candidates(encoder, rows, losses, np.random.default_rng(1), n_global=950, n_local=50)
    assert candidates.shape == (1000, 3)
    keys = encoder.keys(candidates)
    assert len(np.unique(keys)) == 1000
    assert not np.isin(keys, encoder.keys(rows)).any()


def test_neighbours_of_the_ten_best_come_first(encoder):
    rows, losses = history(encoder, 30)
    rows = np.concatenate([rows, rows[np.argmin(losses)][None]])  # the best twice: it counts once
    losses = np.append(losses, losses.min())
    candidates = draw_candidates(encoder, rows, losses, np.random.default_rng(1), n_global=100, n_local=50)
    best = np.concatenate([np.argsort(losses, kind="stable")[:1], np.argsort(losses, kind="stable")[2:11]])
    for i, candidate in enumerate(candidates[:50]):
        assert (candidate != rows[best[i // 5]]).sum() == 1


def test_few_observations_share_the_local_candidates(encoder):
    rows, losses = history(encoder, 3)
    candidates = draw_candidates(encoder, rows, losses, np.random.default_rng(1), n_global=10, n_local=17)
    distance = (candidates[:, None, :] != rows[None]).sum(axis=2)
    assert np.all(np.count_nonzero(distance[:17] == 1, axis=0) >= 5)
    assert len(candidates) == 27


def test_without_history_all_candidates_are_global(encoder):
    candidates = draw_candidates(encoder, np.empty((0, 3)), np.empty(0), np.random.default_rng(1), n_global=10)
    assert candidates.shape == (10, 3)


def test_excluded_rows_are_not_drawn():
    encoder = SpaceEncoder(ConfigurationSpace({"a": [0, 1, 2, 3], "b": [0, 1, 2, 3]}, seed=0))
    everything = encoder.enumerate(16)
    rows, pending, left = everything[:8], everything[8:12], everything[12:]
    candidates = draw_candidates(
        encoder, rows, np.arange(8.0), np.random.default_rng(0), n_global=100, n_local=20, excluded=pending
    )
    assert sorted(encoder.keys(candidates)) == sorted(encoder.keys(left))


def test_same_generator_same_candidates(encoder):
    rows, losses = history(encoder, 12)
    one, two = (draw_candidates(encoder, rows, losses, np.random.default_rng(4), n_global=50) for _ in range(2))
    assert np.array_equal(one, two)
