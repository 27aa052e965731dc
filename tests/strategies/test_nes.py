from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace
from constant_models import constant_models

from cashmere.exceptions import InvalidParameterError, MissingPredictionsError
from cashmere.space.encoding import CatalogueEncoder
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.strategies import NES
from contracts.strategy_contract import StrategyContract, cash_space, flat_space, keys, run_trials


class TestNES(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(NES, population=4, ensemble_size=5)


@pytest.mark.long
class TestNESWithALargePopulation(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return NES


@pytest.mark.parametrize(
    ("predictions", "size", "parents"),
    [
        ([0, 2, -1, 5], 1, [2]),  # 0 is too old
        ([0, 2, -1, 5], 2, [1, 2]),  # -1 is the best alone; beside it 2 has the loss 1/4, -1 has 1
        ([0, 2, -1, 5], 3, [1, 2]),  # then -1 once more gives 0: still two distinct members
        ([0, 2, None, -1, 5], 2, [1, 3]),  # a failure takes no place
        ([3, 2, 1, 0.5], 25, [3]),
        ([0, np.nan, 1, -1], 2, [2, 3]),
        ([0, np.nan, np.inf, 1], 2, None),
    ],
)
def test_parents_are_the_distinct_members_of_the_ensemble_of_the_latest(predictions, size, parents):
    space = flat_space()
    configurations = space.sample_configuration(len(predictions))
    found = NES(space, population=3, ensemble_size=size).parents(constant_models(predictions, configurations))
    if parents is None:
        assert found is None
    else:
        expected = SpaceEncoder(space).encode(configurations[i] for i in parents)
        np.testing.assert_array_equal(found, expected)


def mutations(strategy, configurations, n=300):
    """Return suggestions after a population of perfect models of the given configurations."""
    history = constant_models([1e-3 * (-1) ** i for i in range(len(configurations))], configurations)
    suggestions = [strategy.suggest(history, np.random.default_rng(seed)) for seed in range(n)]
    assert {str(suggestion.origin) for suggestion in suggestions} == {"mutation"}
    return [dict(suggestion.configuration) for suggestion in suggestions]


@pytest.mark.long
def test_a_mutation_changes_one_choice_and_the_algorithm_once_in_as_many_as_are_active():
    space = cash_space()
    parent = {"algorithm": "svm", "scaler": "none", "svm:cost": 1.0, "svm:kernel": "rbf"}
    parents = [Configuration(space, values=parent), Configuration(space, values=parent | {"svm:cost": 2.0})]
    changes = Counter()
    for child in mutations(NES(space, population=2), parents):
        alternatives = [
            [name for name in ("algorithm", "scaler", "svm:cost", "svm:kernel") if child.get(name) != one.get(name)]
            for one in map(dict, parents)
        ]
        if child["algorithm"] != "svm":
            # knn excludes the scaler "none"; children of the new algorithm stand at their defaults
            assert child["algorithm"] in ("forest", "dummy") and child["scaler"] == "none"
            changes["algorithm"] += 1
        else:
            (name,) = min(alternatives, key=len)
            changes[name] += 1
    # Four parameters are active; 7.5 is a standard deviation.
    assert all(abs(changes[name] - 75) < 30 for name in ("algorithm", "scaler", "svm:cost", "svm:kernel"))
    assert sum(changes.values()) == 300


@pytest.mark.long
def test_both_parents_have_about_equally_many_children():
    space = ConfigurationSpace({"x": (0.0, 1.0), "label": ["a", "b", "c", "d"]})
    parents = [Configuration(space, values={"x": x, "label": label}) for x, label in ((0.1, "a"), (0.9, "d"))]
    children = mutations(NES(space, population=2), parents)
    of_first = sum(child["label"] == "a" or child["x"] == 0.1 for child in children)
    assert 100 < of_first < 200  # 8.7 is a standard deviation


def test_an_exhausted_neighbourhood_leaves_a_random_choice():
    space = ConfigurationSpace({"label": ["a", "b", "c"], "other": ["u", "v"]})
    everything = [Configuration(space, values={"label": a, "other": b}) for a in "abc" for b in "uv"]
    suggestion = NES(space, population=2).suggest(
        constant_models([2, 2, 2, 1e-3, -1e-3], everything[:5]), np.random.default_rng(0)
    )
    assert dict(suggestion.configuration) == {"label": "c", "other": "v"}


@pytest.mark.long
def test_the_configuration_of_a_catalogue_nearest_to_the_mutation_is_taken():
    """Parents are at 0.5, mutations at N(0.5, 0.2^2): of points 0.05 apart three in four are within 0.23."""
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    catalogue = tuple(Configuration(space, values={"x": i / 20}) for i in range(21))
    strategy = NES(CatalogueEncoder(space, catalogue), population=2)
    children = np.array([child["x"] for child in mutations(strategy, [catalogue[10], catalogue[10]])])
    assert np.isin(children, np.arange(21) / 20).all() and 0.5 not in children
    assert 0.15 < np.std(children) < 0.22


def test_a_catalogue_is_evaluated_to_the_end():
    space = cash_space()
    catalogue = tuple(space.sample_configuration(40))
    n_distinct = len(set(map(str, catalogue)))
    observations = run_trials(NES(CatalogueEncoder(space, catalogue), population=5), n_distinct)
    assert len(set(keys(observations))) == n_distinct
    assert {id(o.trial.configuration) for o in observations} <= set(map(id, catalogue))


def test_it_starts_with_random_trials_until_there_is_a_population():
    origins = [str(o.trial.origin) for o in run_trials(NES(flat_space(), population=6), 12)]
    assert origins == ["random"] * 6 + ["mutation"] * 6
    failing = run_trials(NES(flat_space(), population=4), 12, fails=lambda number: number not in (2, 5))
    assert [str(o.trial.origin) for o in failing] == ["random"] * 8 + ["mutation"] * 4


@pytest.mark.parametrize("missing", ["metric", "targets", "predictions"])
def test_a_history_of_losses_only_is_refused_with_advice(missing):
    space = flat_space()
    history = constant_models([4, -2, 1, -3], space.sample_configuration(4))
    if missing == "predictions":
        history = replace(
            history, observations=tuple(replace(o, outcome=replace(o.outcome, predictions=None)) for o in history)
        )
    else:
        history = replace(history, **{missing: None})
    with pytest.raises(MissingPredictionsError, match=missing):
        NES(space, population=3).suggest(history, np.random.default_rng(0))


@pytest.mark.parametrize("options", [{"population": 1}, {"ensemble_size": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        NES(flat_space(), **options)
