from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    CategoricalHyperparameter,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    ForbiddenInClause,
    InCondition,
    Integer,
)

from cashmere.exceptions import InvalidParameterError
from cashmere.space.encoding import CatalogueEncoder
from cashmere.space.splitting.groups import part_of
from cashmere.strategies import BO4ML, TPE, RandomSearch, make_strategy
from cashmere.strategies.bo4ml import count_own_parameters
from contracts.strategy_contract import StrategyContract, cash_space, history_of, keys, run_trials


class TestBO4ML(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return BO4ML


@pytest.mark.long
class TestManyWeightedCombinations(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return other_options


def other_options(space):
    return BO4ML(space, n_initial=9, weight="n_params", seed=3)


def two_operators():
    """Return five classifiers and six resamplers in three groups, some with parameters."""
    space = ConfigurationSpace(seed=0)
    tree = [["none"], ["smote", "adasyn"], ["tomek", "nearmiss", "centroids"]]
    classifier = CategoricalHyperparameter("classifier", ["svm", "forest", "knn", "tree", "logistic"])
    resampler = CategoricalHyperparameter(
        "resampler", [name for group in tree for name in group], meta={"groups": tree}
    )
    kernel, degree = CategoricalHyperparameter("kernel", ["rbf", "poly"]), Integer("degree", (2, 5))
    cost, depth, k = Float("cost", (1e-3, 1e3), log=True), Integer("depth", (1, 20)), Integer("k", (1, 10))
    space.add(classifier, resampler, kernel, degree, cost, depth, k)
    space.add(EqualsCondition(kernel, classifier, "svm"), EqualsCondition(degree, kernel, "poly"))
    space.add(InCondition(cost, classifier, ["svm", "logistic"]))
    space.add(InCondition(depth, classifier, ["forest", "tree"]))
    space.add(InCondition(k, resampler, ["smote", "adasyn"]))
    return space


@pytest.mark.parametrize("n_initial", [2, 5, 6, 10])
def test_each_first_trial_takes_a_different_combination_of_groups(n_initial):
    strategy = BO4ML(two_operators(), n_initial=n_initial)
    observations = run_trials(strategy, n_initial + 2, lookahead=3)
    parts = strategy.combinations
    assert len(parts) == n_initial
    first = observations[:n_initial]
    assert [part_of(o.trial.configuration, parts) for o in first] == list(range(n_initial))
    assert [str(o.trial.origin) for o in first] == [f"start: {part.label}" for part in parts]
    assert {str(o.trial.origin) for o in observations[n_initial:]} == {"model"}
    for name in ("classifier", "resampler"):
        assert set().union(*(part.allowed[name] for part in parts)) == set(strategy.space[name].choices)


def test_all_algorithms_of_a_combination_are_drawn_equally_often():
    strategy = BO4ML(two_operators(), n_initial=1)
    drawn = Counter(
        strategy.suggest(history_of([]), np.random.default_rng(seed)).configuration["resampler"] for seed in range(600)
    )
    assert min(drawn.values()) > 70 and max(drawn.values()) < 135  # 100 each


def test_large_algorithms_are_drawn_more_often_on_request():
    strategy = BO4ML(two_operators(), n_initial=1, weight="n_params")
    drawn = Counter(
        strategy.suggest(history_of([]), np.random.default_rng(seed)).configuration["classifier"] for seed in range(550)
    )
    # Own parameters: 3, 1, 0, 1, 1; one more each makes 11.
    for name, weight in {"svm": 4, "forest": 2, "knn": 1, "tree": 2, "logistic": 2}.items():
        assert abs(drawn[name] - 50 * weight) < 4 * np.sqrt(50 * weight)


def test_own_parameters_are_counted_through_generations_and_conjunctions():
    space = two_operators()
    extra = Float("extra", (0.0, 1.0))
    space.add(extra)
    space.add(
        AndConjunction(
            EqualsCondition(extra, space["classifier"], "knn"), EqualsCondition(extra, space["resampler"], "none")
        )
    )
    counts = {value: count_own_parameters(space, "classifier", value) for value in space["classifier"].choices}
    assert counts == {"svm": 3, "forest": 1, "knn": 1, "tree": 1, "logistic": 1}
    assert count_own_parameters(space, "resampler", "none") == 1
    assert count_own_parameters(space, "resampler", "tomek") == 0


def test_choices_without_prior_are_not_drawn():
    space = ConfigurationSpace(seed=0)
    space.add(
        CategoricalHyperparameter("learner", ["a", "b", "c"], weights=[1, 0, 1], meta={"groups": ["a", "b", "c"]})
    )
    space.add(Float("x", (0.0, 1.0)))
    strategy = BO4ML(space, n_initial=3)
    observations = run_trials(strategy, 3)
    assert {o.trial.configuration["learner"] for o in observations} <= {"a", "c"}
    assert [str(o.trial.origin) for o in observations].count("random") == 1


def test_combination_that_is_forbidden_together_with_other_parameters_is_replaced_by_a_random_trial():
    space = ConfigurationSpace(seed=0)
    learner = CategoricalHyperparameter("learner", ["a", "b"], meta={"groups": ["a", "b"]})
    flag = Integer("flag", (1, 2))
    space.add(learner, flag, Float("x", (0.0, 1.0)))
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(learner, "b"), ForbiddenInClause(flag, [1, 2])))
    observations = run_trials(BO4ML(space, n_initial=2), 2)
    assert {o.trial.configuration["learner"] for o in observations} == {"a"}
    assert sorted(str(o.trial.origin).split(":")[0] for o in observations) == ["random", "start"]


def test_after_the_start_it_is_tpe_with_many_candidates():
    space = two_operators()
    history = history_of(run_trials(RandomSearch(space), 12))
    one = BO4ML(space).suggest(history, np.random.default_rng(0))
    two = TPE(space, density="independent", n_initial=5, n_candidates=None).suggest(history, np.random.default_rng(0))
    assert dict(one.configuration) == dict(two.configuration)


def test_seed_decides_the_order_of_combinations():
    space = two_operators()
    orders = {tuple(part.label for part in BO4ML(space, n_initial=10, seed=seed).combinations) for seed in range(5)}
    assert len(orders) > 1
    assert BO4ML(space, seed=1).combinations == BO4ML(space, seed=1).combinations


def test_catalogue_is_exhausted_before_anything_repeats():
    space = cash_space()
    catalogue = tuple(o.trial.configuration for o in run_trials(RandomSearch(space), 20, seed=7))
    observations = run_trials(BO4ML(CatalogueEncoder(space, catalogue)), 20)
    assert len(set(keys(observations))) == 20
    assert {id(o.trial.configuration) for o in observations} == {id(c) for c in catalogue}


@pytest.mark.parametrize("options", [{"weight": "size"}, {"seed": -1}, {"n_initial": 0}, {"n_candidates": 2.5}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        BO4ML(cash_space(), **options)


def test_options_may_be_written_as_text():
    strategy = make_strategy("bo4ml:weight=n_params,n_initial=8,n_candidates=none", cash_space())
    assert strategy == BO4ML(strategy.space, weight="n_params", n_initial=8)
