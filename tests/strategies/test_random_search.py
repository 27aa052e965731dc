from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, Constant, ForbiddenEqualsClause

from cashmere.exceptions import SpaceError
from cashmere.records.trial import History
from cashmere.space.encoding import CatalogueEncoder
from cashmere.strategies import RandomSearch, make_strategy
from contracts.strategy_contract import StrategyContract, cash_space, run_trials


class TestRandomSearch(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return RandomSearch

    @pytest.mark.parametrize("lookahead", [1, 8])
    def test_algorithms_are_used_equally_often(self, strategy, lookahead):
        observations = run_trials(strategy, 12, lookahead=lookahead)
        for n in (4, 8, 12):  # "dummy" has 3 configurations
            counts = Counter(o.trial.configuration["algorithm"] for o in observations[:n])
            assert set(counts.values()) == {n // 4}

    def test_order_of_algorithms_depends_on_the_seed(self, space):
        first = {
            RandomSearch(space).suggest(History(), np.random.default_rng(seed)).configuration["algorithm"]
            for seed in range(40)
        }
        assert first == {"svm", "forest", "knn", "dummy"}


def test_forbidden_algorithm_and_algorithm_without_weight_are_left_out():
    space = ConfigurationSpace(seed=0)
    algorithm = CategoricalHyperparameter("algorithm", ["a", "b", "c"], weights=[0.5, 0.0, 0.5])
    space.add([algorithm, CategoricalHyperparameter("x", list(range(50)))])
    space.add(ForbiddenEqualsClause(algorithm, "c"))
    observations = run_trials(RandomSearch(space), 5)
    assert {o.trial.configuration["algorithm"] for o in observations} == {"a"}


def test_constant_algorithm_means_the_whole_prior():
    space = ConfigurationSpace(seed=0)
    space.add([Constant("algorithm", "a"), CategoricalHyperparameter("x", ["y", "z"])])
    values = [dict(o.trial.configuration) for o in run_trials(RandomSearch(space), 2)]
    assert sorted(value["x"] for value in values) == ["y", "z"]


def test_impossible_space_is_refused():
    strategy = RandomSearch(cash_space())
    strategy.encoder.compiled.forbidden = [Never()]
    with pytest.raises(SpaceError, match="allowed"):
        strategy.suggest(History(), np.random.default_rng(0))


class Never:
    def holds(self, raw):
        return np.ones(raw.shape[1], dtype=bool)


@pytest.mark.parametrize("name", ["random", "bo"])
def test_only_the_catalogue_is_suggested_and_exhausted_before_anything_repeats(name):
    space = cash_space()
    catalogue = tuple(o.trial.configuration for o in run_trials(RandomSearch(space), 20, seed=7))
    strategy = make_strategy(name, CatalogueEncoder(space, catalogue))
    suggested = [o.trial.configuration for o in run_trials(strategy, 22)]
    assert {id(c) for c in suggested} == {id(c) for c in catalogue}
    assert len({id(c) for c in suggested[:20]}) == 20
