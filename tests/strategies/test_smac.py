from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.stats import wilcoxon

from cashmere.space.encoding import CatalogueEncoder
from cashmere.strategies import SMAC, RandomSearch
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation
from contracts.strategy_contract import StrategyContract, cash_space, history_of, keys, run_trials
from strategies.test_bayesian_optimisation import best_loss, origins, wide_space


class TestSMAC(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(SMAC, n_global=200)


@pytest.mark.long
class TestSMACByLocalSearchMostly(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(SMAC, n_global=1, n_initial=2, random_fraction=0.0)


def test_it_starts_like_random_search_and_interleaves_it_later():
    observations = run_trials(SMAC(cash_space(), n_global=50), 60)
    assert keys(observations[:5]) == keys(run_trials(RandomSearch(cash_space()), 5))
    assert 3 <= origins(observations[5:]).count("random") <= 20  # a fifth of 55


def test_local_search_finds_more_improvement_than_draws_alone():
    space = wide_space()
    observations = run_trials(RandomSearch(space), 60)
    history = history_of(observations)
    found = []
    for strategy in (SMAC(space, n_global=100), BayesianOptimisation(space, n_global=100, n_local=0)):
        decided = strategy.encoder.encode(trial.configuration for trial in history.trials)
        candidates = strategy.draw_candidates(history, decided, np.random.default_rng(0))
        assert len(candidates.rows) == len(candidates.log_improvement)
        assert not np.isin(strategy.encoder.keys(candidates.rows), strategy.encoder.keys(decided)).any()
        found.append(candidates)
    searched = found[0].log_improvement[: -len(found[1].rows)]
    assert 1 <= len(searched) <= 10
    assert searched.max() >= found[0].log_improvement.max() - 1e-9


def test_inactive_parameters_stand_at_their_defaults():
    space = cash_space()
    encoder = SMAC(space).encoder
    rows = encoder.sample(50, np.random.default_rng(0))
    filled, active = encoder.with_defaults(rows), encoder.activity(rows)
    np.testing.assert_array_equal(filled[active], rows[active])
    np.testing.assert_array_equal(filled[~active], np.broadcast_to(encoder.default_row(), rows.shape)[~active])
    assert (filled >= 0).all()
    default = encoder.encode([space.get_default_configuration()])[0]
    known = encoder.activity(default[None])[0]
    np.testing.assert_array_equal(default[known], encoder.default_row()[known])


def test_a_catalogue_limits_the_choice():
    space = cash_space()
    catalogue = tuple(space.sample_configuration(60))
    observations = run_trials(SMAC(CatalogueEncoder(space, catalogue)), 25)
    listed = {id(configuration) for configuration in catalogue}
    assert all(id(o.trial.configuration) in listed for o in observations)


@pytest.mark.slow
def test_it_beats_random_search():
    space = wide_space()
    pairs = np.array([[best_loss(s(space), 80, seed) for s in (SMAC, RandomSearch)] for seed in range(10)])
    assert wilcoxon(pairs[:, 0], pairs[:, 1], alternative="less").pvalue < 0.05
