from __future__ import annotations

import numpy as np
import pytest

from cashmere.exceptions import ArrayError
from cashmere.pretraining.label_searches import search_recorded
from cashmere.surrogates.latent_space import Encoders, PretrainedEmbedding


def recorded(n: int = 60, seed: int = 0):
    """Return losses of two algorithms, the second better, both with a valley."""
    rng = np.random.default_rng(seed)
    tasks = np.arange(n) % 2
    vectors = rng.random((n, 2))
    losses = 0.4 - 0.1 * tasks + 0.3 * np.square(vectors - 0.3).sum(axis=1)
    return losses, tasks, vectors


def embedding(seed: int = 1) -> PretrainedEmbedding:
    drawn = Encoders.draw(n_algorithms=2, width=2, q=2, rng=np.random.default_rng(seed), n_hidden=16)
    return PretrainedEmbedding(drawn, 0.1, "drawn")


@pytest.mark.parametrize("pretrained", [embedding(), None], ids=["pretrained", "scratch"])
def test_the_curve_falls_to_the_least_loss_sooner_than_by_chance(pretrained):
    losses, tasks, vectors = recorded()
    curves = [
        search_recorded(losses, tasks, vectors, pretrained, np.random.default_rng(seed), n_iterations=20)
        for seed in range(4)
    ]
    assert all(len(curve) == 21 and (np.diff(curve) <= 0).all() for curve in curves)
    by_chance = [np.minimum.accumulate(np.random.default_rng(seed).permutation(losses)[:24])[-1] for seed in range(200)]
    assert np.mean([curve[-1] for curve in curves]) < np.mean(by_chance)


def test_equal_states_of_the_generator_begin_with_the_same_configurations():
    losses, tasks, vectors = recorded()
    first, second = (
        search_recorded(losses, tasks, vectors, embedding(seed), np.random.default_rng(5), n_iterations=0)
        for seed in (1, 2)
    )
    np.testing.assert_array_equal(first, second)


def test_the_curve_is_constant_once_nothing_is_better():
    losses, tasks, vectors = recorded(12)
    curve = search_recorded(losses, tasks, vectors, embedding(), np.random.default_rng(0), n_iterations=30)
    assert len(curve) == 31 and curve[-1] == losses.min()


def test_failures_count_as_the_worst_and_failures_only_are_refused():
    losses, tasks, vectors = recorded()
    losses[::3] = np.nan
    curve = search_recorded(losses, tasks, vectors, embedding(), np.random.default_rng(0), n_iterations=10)
    assert np.isfinite(curve).all() and curve[-1] >= np.nanmin(losses)
    with pytest.raises(ArrayError, match="at least one finite"):
        search_recorded(np.full(60, np.nan), tasks, vectors, embedding(), np.random.default_rng(0), n_iterations=1)
