from __future__ import annotations

import functools

import numpy as np
import pytest
from ConfigSpace import CategoricalHyperparameter, Configuration, ConfigurationSpace, EqualsCondition, Float
from scipy.stats import wilcoxon

from cashmere.exceptions import InvalidParameterError
from cashmere.records.trial import Trial
from cashmere.space.encoding import CatalogueEncoder
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.strategies import BanditBO, RandomSearch
from cashmere.strategies.shared.unvisited import has_unvisited
from contracts.strategy_contract import (
    StrategyContract,
    cash_space,
    finite_space,
    history_of,
    keys,
    made_up_loss,
    run_trials,
    succeed,
)
from strategies.test_bayesian_optimisation import best_loss, origins, wide_space


class TestBanditBO(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return BanditBO


@pytest.mark.long
class TestBanditBOWithOneStart(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(BanditBO, n_initial=1, n_starts=1, cap_losses=False)


def test_every_algorithm_starts_with_two_random_trials():
    observations = run_trials(BanditBO(cash_space()), 11)
    assert origins(observations) == ["random"] * 8 + ["model"] * 3
    names = [o.trial.configuration["algorithm"] for o in observations[:8]]
    assert {name: names.count(name) for name in names} == {"svm": 2, "forest": 2, "knn": 2, "dummy": 2}
    assert keys(observations[:8]) == keys(run_trials(RandomSearch(cash_space()), 8))


def test_the_start_ends_though_algorithms_run_out_or_are_pending():
    space = finite_space()
    blocks = AlgorithmBlocks(SpaceEncoder(space))
    assert has_unvisited(blocks, blocks.encoder.enumerate(100)[:0], 2)
    everything = blocks.encoder.enumerate(100)
    assert not has_unvisited(blocks, everything, 5)  # c has a single configuration
    assert has_unvisited(blocks, everything[1:], 5)
    assert not has_unvisited(blocks, np.repeat(everything[:1], 12, axis=0), 2)
    assert origins(run_trials(BanditBO(space), 7, lookahead=4))[-1] == "model"


def two_arms():
    space = ConfigurationSpace(seed=0)
    algorithm = CategoricalHyperparameter("algorithm", ["good", "bad"])
    good, bad = Float("good:x", (0.0, 1.0)), Float("bad:x", (0.0, 1.0))
    space.add(algorithm, good, bad)
    space.add(EqualsCondition(good, algorithm, "good"), EqualsCondition(bad, algorithm, "bad"))
    return space


def arm_loss(configuration):
    values = dict(configuration)
    if values["algorithm"] == "good":
        return 0.2 + (values["good:x"] - 0.35) ** 2
    return 0.5 + 0.1 * np.sin(9 * values["bad:x"])


def test_the_better_algorithm_is_searched_and_its_minimum_found():
    observations = run_trials(BanditBO(two_arms()), 20, loss=arm_loss)
    later = [o.trial.configuration["algorithm"] for o in observations[4:]]
    assert later.count("good") >= 10
    assert min(o.loss for o in observations) < 0.2 + 0.01**2


def test_nothing_is_suggested_close_to_a_pending_trial():
    space = two_arms()
    observations = run_trials(BanditBO(space), 12, loss=arm_loss)
    alone = BanditBO(space).suggest(history_of(observations), np.random.default_rng(0)).configuration
    pending = Trial(number=12, configuration=alone, seed=0)
    beside = (
        BanditBO(space).suggest(history_of(observations, pending=[pending]), np.random.default_rng(0)).configuration
    )
    same_arm = alone["algorithm"] == beside["algorithm"]
    name = f"{alone['algorithm']}:x"
    assert not same_arm or abs(alone[name] - beside[name]) > 1e-3


def test_decisions_do_not_depend_on_the_unit_of_the_loss():
    space = cash_space()
    observations = run_trials(BanditBO(space), 14)
    scaled = [succeed(o.trial, 4.0 * o.loss) for o in observations]
    one, two = (
        BanditBO(space).suggest(history_of(seen, worst_loss=None), np.random.default_rng(1))
        for seen in (observations, scaled)
    )
    assert dict(one.configuration) == dict(two.configuration)


def test_a_catalogue_limits_the_choice():
    space = cash_space()
    catalogue = tuple(space.sample_configuration(60))
    observations = run_trials(BanditBO(CatalogueEncoder(space, catalogue)), 25)
    listed = {id(configuration) for configuration in catalogue}
    assert all(id(o.trial.configuration) in listed for o in observations)
    assert "model" in origins(observations)


def test_an_algorithm_that_never_succeeds_is_left_alone():
    def loss(configuration: Configuration):
        return None if configuration["algorithm"] == "svm" else made_up_loss(configuration)

    observations = run_trials(BanditBO(cash_space()), 24, loss=loss)
    later = [o.trial.configuration["algorithm"] for o in observations[8:]]
    assert later.count("svm") <= 3


@pytest.mark.parametrize("options", [{"n_initial": 0}, {"n_starts": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        BanditBO(cash_space(), **options)


@pytest.mark.slow
def test_it_beats_random_search():
    space = wide_space()
    pairs = np.array([[best_loss(s(space), 80, seed) for s in (BanditBO, RandomSearch)] for seed in range(10)])
    assert wilcoxon(pairs[:, 0], pairs[:, 1], alternative="less").pvalue < 0.05
