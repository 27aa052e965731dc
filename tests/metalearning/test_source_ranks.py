from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from toy_artefact import toy_artefact, toy_observations

from cashmere.exceptions import ObservationsError
from cashmere.metalearning.observed_vectors import FOREIGN, observed_vectors
from cashmere.metalearning.source_ranks import SourceRanks, agreement, best_agreeing, fit_line, rank_shares
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.space.encoding.encoder import SpaceEncoder
from contracts.strategy_contract import cash_space

BLOCKS = AlgorithmBlocks(SpaceEncoder(cash_space()))
ARTEFACT = toy_artefact(cash_space())
OBSERVATIONS = toy_observations(cash_space())
EXACT = [replace(prior, noise_variance=1e-9) for prior in ARTEFACT.priors]


def test_ranks_run_from_zero_to_one_and_failures_come_last():
    np.testing.assert_allclose(rank_shares(np.array([5.0, 1.0, np.nan, 1.0])), [2 / 3, 1 / 6, 1.0, 1 / 6])
    np.testing.assert_allclose(rank_shares(np.array([2.0])), [0.0])


@given(seed=st.integers(0, 2**20), n=st.integers(3, 20))
def test_agreement_is_the_rank_correlation(seed, n):
    rng = np.random.default_rng(seed)
    ranks, losses = rng.integers(0, 6, size=(4, n)) / 5, rng.integers(0, 5, size=n) / 4
    expected = [0.0 if np.ptp(row) == 0 or np.ptp(losses) == 0 else spearmanr(row, losses).statistic for row in ranks]
    np.testing.assert_allclose(agreement(ranks, losses), expected, atol=1e-12)


def test_the_best_agreeing_come_first_and_without_losses_the_first():
    losses = np.array([0.1, 0.2, 0.3, 0.4])
    ranks = np.array([[3, 2, 1, 0], [0, 1, 2, 3], [0, 2, 1, 3], [1, 1, 1, 1]]) / 3
    assert best_agreeing(ranks, losses, 3).tolist() == [1, 2, 3]
    assert best_agreeing(ranks[:, :0], losses[:0], 2).tolist() == [0, 1]


@given(seed=st.integers(0, 2**20))
def test_the_line_is_that_of_least_squares_unless_it_falls(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.random(8), rng.random(8)
    slope, intercept = np.polyfit(x, y, 1)
    expected = (intercept, slope) if slope > 0 else (y.mean(), 0.0)
    np.testing.assert_allclose(fit_line(x, y), expected, atol=1e-9)


def test_a_single_point_has_a_flat_line():
    assert fit_line(np.array([0.4]), np.array([2.0])) == (2.0, 0.0)


def test_recorded_configurations_have_their_ranks():
    learned = SourceRanks.learn(OBSERVATIONS, ARTEFACT.sources, BLOCKS, EXACT)
    tasks, vectors = observed_vectors(OBSERVATIONS, BLOCKS)
    expected = np.array([rank_shares(table.losses) for table in OBSERVATIONS.tables])
    np.testing.assert_allclose(learned.predict(tasks, vectors), expected, atol=1e-4)
    np.testing.assert_allclose(learned.predict(tasks, vectors, np.array([2])), expected[2:3], atol=1e-4)


def test_noise_smooths_ranks_towards_the_mean_of_the_algorithm():
    noisy = [replace(prior, noise_variance=1e6) for prior in ARTEFACT.priors]
    learned = SourceRanks.learn(OBSERVATIONS, ARTEFACT.sources, BLOCKS, noisy)
    tasks, vectors = observed_vectors(OBSERVATIONS, BLOCKS)
    ranks = rank_shares(OBSERVATIONS.tables[0].losses)
    for task in np.unique(tasks):
        np.testing.assert_allclose(
            learned.predict(tasks, vectors)[0, tasks == task], ranks[tasks == task].mean(), atol=1e-4
        )


def test_only_named_sources_count_and_what_they_never_tried_is_average():
    tasks, vectors = observed_vectors(OBSERVATIONS, BLOCKS)
    own = np.flatnonzero(tasks == tasks[0])
    first = OBSERVATIONS.tables[0]
    few = replace(first, configurations=own, losses=first.losses[own], seconds=first.seconds[own])
    observations = replace(OBSERVATIONS, tables=(few, *OBSERVATIONS.tables[1:]))
    learned = SourceRanks.learn(observations, [first.name], BLOCKS, EXACT)
    ranks = learned.predict(tasks, vectors)
    assert ranks.shape == (1, len(tasks))
    np.testing.assert_allclose(ranks[0, own], rank_shares(first.losses[own]), atol=1e-4)
    assert np.all(ranks[0, tasks != tasks[0]] == 0.5)


def test_configurations_outside_the_space_are_left_out():
    foreign = ({"algorithm": "unheard of"}, *OBSERVATIONS.configurations[1:])
    observations = replace(OBSERVATIONS, configurations=foreign)
    tasks, vectors = observed_vectors(observations, BLOCKS)
    assert tasks[0] == FOREIGN and not vectors[0].any() and FOREIGN not in tasks[1:]
    learned = SourceRanks.learn(observations, ARTEFACT.sources, BLOCKS, EXACT)
    expected = rank_shares(observations.tables[0].losses[1:])
    np.testing.assert_allclose(learned.predict(tasks[1:], vectors[1:])[0], expected, atol=1e-4)


def test_without_observations_it_says_what_to_do():
    with pytest.raises(ObservationsError, match="cashmere pretrain"):
        SourceRanks.learn(OBSERVATIONS, ["nowhere"], BLOCKS, EXACT)
