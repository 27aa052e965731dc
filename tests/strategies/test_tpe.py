from __future__ import annotations

import functools

import numpy as np
import pytest
from ConfigSpace import (
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    Integer,
)
from scipy.stats import wilcoxon

from cashmere.exceptions import InvalidParameterError
from cashmere.records.trial import History, Observation, Outcome, Trial, TrialStatus
from cashmere.space.encoding import CatalogueEncoder
from cashmere.strategies import TPE, RandomSearch, make_strategy
from cashmere.strategies.shared.parzen_densities import IndependentDensities, JointDensities, SplitTrials
from cashmere.strategies.tpe import best_observations
from contracts.strategy_contract import StrategyContract, cash_space, history_of, keys, run_trials, succeed


class TestTPE(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return quick


@pytest.mark.long
class TestIndependentDensities(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(quick, density="independent")


@pytest.mark.long
class TestQuantileSplitAndManyCandidates(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return other_options


def quick(space, **options):
    return TPE(space, n_initial=5, **options)


BOTH = pytest.mark.parametrize("density", ["joint", "independent"])


def other_options(space):
    return TPE(space, n_initial=3, n_candidates=None, split="quantile", linear_forgetting=4, prior_weight=0.5)


def origins(observations):
    return [str(o.trial.origin) for o in observations]


def test_start_is_that_of_random_search_whatever_fails_or_is_pending():
    space = cash_space()
    random = keys(run_trials(RandomSearch(space), 5))
    assert keys(run_trials(quick(space), 5)) == random
    for options in ({"fails": lambda number: True}, {"lookahead": 4}):
        observations = run_trials(quick(space), 8, **options)
        assert origins(observations) == ["random"] * 5 + ["model"] * 3
        assert keys(observations)[:5] == random


def with_losses(losses, space):
    trials = run_trials(RandomSearch(space), len(losses))
    return [
        succeed(o.trial, loss)
        if loss is not None
        else Observation(trial=o.trial, outcome=Outcome(status=TrialStatus.ERROR))
        for o, loss in zip(trials, losses, strict=True)
    ]


def test_best_observations_are_in_order_of_loss_and_time_without_failures():
    history = history_of(with_losses([0.5, 0.2, None, 0.2, 1.0, 0.1], cash_space()))
    assert best_observations(history, 3).tolist() == [5, 1, 3]
    assert best_observations(history, 9).tolist() == [5, 1, 3, 0, 4]
    assert best_observations(History(), 0).tolist() == []


def line_history(places, losses, *, pending=()):
    """Return a space of one number, and a history of values and losses."""
    space = ConfigurationSpace({"x": (0.0, 1.0)}, seed=0)
    trials = [Trial(number=i, configuration=Configuration(space, {"x": x}), seed=0) for i, x in enumerate(places)]
    observations = [succeed(trial, loss) for trial, loss in zip(trials, losses, strict=False)]
    waiting = [
        Trial(number=len(trials) + i, configuration=Configuration(space, {"x": x}), seed=0)
        for i, x in enumerate(pending)
    ]
    return space, history_of(observations, pending=waiting)


@BOTH
@pytest.mark.parametrize(("split", "share"), [("sqrt", 0.7), ("linear", 0.7), ("quantile", 0.95)])
def test_values_near_the_best_ones_are_suggested(density, split, share):
    places = np.linspace(0.02, 0.98, 30)
    space, history = line_history(places, np.abs(places - 0.3))
    strategy = TPE(space, density=density, split=split)
    drawn = [strategy.suggest(history, np.random.default_rng(seed)).configuration["x"] for seed in range(100)]
    assert np.mean(np.abs(np.array(drawn) - 0.3) < 0.1) > share  # 0.2 of a uniform draw


@BOTH
def test_pending_trials_keep_parallel_decisions_away(density):
    places = np.linspace(0.02, 0.98, 30)
    space, history = line_history(places, np.abs(places - 0.3))
    _, beside = line_history(places, np.abs(places - 0.3), pending=[0.3, 0.301, 0.302])
    strategy = TPE(space, density=density)
    distance = {
        name: np.mean(
            [abs(strategy.suggest(given, np.random.default_rng(s)).configuration["x"] - 0.3) for s in range(40)]
        )
        for name, given in (("alone", history), ("beside", beside))
    }
    assert distance["beside"] > 1.5 * distance["alone"]


@BOTH
def test_decisions_depend_on_the_ranks_of_losses_only(density):
    space = cash_space()
    strategy = quick(space, density=density)
    observations = run_trials(strategy, 20)
    moved = [succeed(o.trial, np.exp(5 * o.loss)) for o in observations]
    one = strategy.suggest(history_of(observations), np.random.default_rng(1))
    two = strategy.suggest(history_of(moved, worst_loss=None), np.random.default_rng(1))
    assert dict(one.configuration) == dict(two.configuration)


@BOTH
def test_catalogue_is_ranked_by_the_sum_of_log_ratios(density):
    space = cash_space()
    catalogue = tuple(o.trial.configuration for o in run_trials(RandomSearch(space), 60, seed=7))
    strategy = TPE(CatalogueEncoder(space, catalogue), density=density, n_initial=10)
    observations = run_trials(strategy, 30)
    history = history_of(observations)
    chosen = strategy.suggest(history, np.random.default_rng(0)).configuration
    assert any(chosen is listed for listed in catalogue)
    encoder = strategy.encoder
    decided = encoder.encode(trial.configuration for trial in history.trials)
    is_good = np.zeros(30, dtype=bool)
    is_good[best_observations(history, 2 if density == "independent" else 3)] = True
    estimate = {"joint": JointDensities, "independent": IndependentDensities}[density]
    densities = estimate(SplitTrials(encoder, decided, is_good, 25), prior_weight=1.0)

    def score(configuration):
        row = encoder.encode([configuration])
        active = encoder.activity(row)[0]
        groups = [columns for level in strategy.groups for columns in level if active[columns[0]]]
        return sum(densities.log_ratio(columns, row[:, columns])[0] for columns in groups)

    unseen = [c for c in catalogue if not any(c is o.trial.configuration for o in observations)]
    assert score(chosen) == pytest.approx(max(map(score, unseen)))


def test_catalogue_is_exhausted_before_anything_repeats():
    space = cash_space()
    catalogue = tuple(o.trial.configuration for o in run_trials(RandomSearch(space), 20, seed=7))
    suggested = [o.trial.configuration for o in run_trials(TPE(CatalogueEncoder(space, catalogue), n_initial=4), 22)]
    assert {id(c) for c in suggested} == {id(c) for c in catalogue}
    assert len({id(c) for c in suggested[:20]}) == 20


def test_forbidden_combination_of_two_good_values_is_assembled_again():
    space = ConfigurationSpace(seed=0)
    left, right = (CategoricalHyperparameter(name, list("bacd")) for name in ("left", "right"))
    space.add([left, right, Float("x", (0.0, 1.0))])
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(left, "a"), ForbiddenEqualsClause(right, "a")))
    rng = np.random.default_rng(0)
    observations = []
    for i in range(40):  # each is best with the other's worst: both densities favour "a"
        pair = ("a", "b") if i % 8 == 0 else ("b", "a") if i % 8 == 4 else ("c", "d")
        configuration = Configuration(space, {"left": pair[0], "right": pair[1], "x": rng.random()})
        trial = Trial(number=i, configuration=configuration, seed=0)
        observations.append(succeed(trial, 0.1 if "a" in pair else 0.9))
    strategy = TPE(space, density="independent", split="quantile")
    suggestions = [strategy.suggest(history_of(observations), np.random.default_rng(s)) for s in range(20)]
    assert {str(s.origin) for s in suggestions} == {"model"}
    assert all((s.configuration["left"], s.configuration["right"]) != ("a", "a") for s in suggestions)


def test_joint_density_keeps_together_what_is_good_together():
    space = ConfigurationSpace(seed=0)
    left, right = (CategoricalHyperparameter(name, list("abcdef")) for name in ("left", "right"))
    space.add([left, right, Float("x", (0.0, 1.0))])
    rng = np.random.default_rng(0)
    observations = []
    for i in range(60):  # aa and bb are good, ab and ba the worst of all
        pair = ("aa", "bb")[i % 2] if i < 6 else ("ab", "ba")[i % 2] if i < 18 else rng.choice(list("cdef"), 2)
        configuration = Configuration(space, {"left": str(pair[0]), "right": str(pair[1]), "x": rng.random()})
        trial = Trial(number=i, configuration=configuration, seed=0)
        observations.append(succeed(trial, 0.1 if i < 6 else 0.9 if i < 18 else 0.5))

    def share(**options):
        strategy = TPE(space, n_candidates=8, **options)
        suggested = [
            dict(strategy.suggest(history_of(observations), np.random.default_rng(s)).configuration) for s in range(40)
        ]
        return np.mean([c["left"] == c["right"] and c["left"] in "ab" for c in suggested])

    assert share() > 0.8 > 0.6 > share(density="independent")


def test_split_is_that_of_hyperopt_or_optuna_unless_given():
    space = cash_space()
    assert [TPE(space)._n_good(n) for n in (30, 250, 900)] == [3, 25, 25]
    assert [TPE(space, density="independent")._n_good(n) for n in (30, 250, 900)] == [2, 4, 8]
    assert TPE(space, split="quantile")._n_good(900) == 225
    assert TPE(space, gamma=0.2)._n_good(60) == 12


@pytest.mark.parametrize(
    "options",
    [
        {"density": "multivariate"},
        {"n_initial": 0},
        {"n_candidates": 0},
        {"gamma": 0.0},
        {"gamma": 1.5},
        {"split": "half"},
        {"prior_weight": 0.0},
        {"linear_forgetting": 0},
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        TPE(cash_space(), **options)


def test_options_may_be_written_as_text():
    strategy = make_strategy("tpe:n_candidates=none,split=quantile,gamma=0.1", cash_space())
    assert (strategy.n_candidates, strategy.split, strategy.gamma) == (None, "quantile", 0.1)
    with pytest.raises(InvalidParameterError, match="a whole number"):
        make_strategy("tpe:n_candidates=2.5", cash_space())


def two_algorithms():
    """Return a conditional space of two algorithms, three own parameters each."""
    space = ConfigurationSpace(seed=0)
    algorithm = CategoricalHyperparameter("algorithm", ["good", "bad"])
    space.add(algorithm)
    for name in ("good", "bad"):
        own = [Float(f"{name}:x", (0.0, 1.0)), Float(f"{name}:y", (1e-4, 1.0), log=True), Integer(f"{name}:n", (1, 50))]
        space.add(own)
        space.add([EqualsCondition(child, algorithm, name) for child in own])
    return space


def smooth_loss(configuration):
    name = configuration["algorithm"]
    x, y, n = (configuration[f"{name}:{child}"] for child in "xyn")
    offset = 0.0 if name == "good" else 0.2
    return offset + (x - 0.3) ** 2 + (np.log10(y) / 4 + 0.5) ** 2 + ((n - 14) / 50) ** 2


def best_loss(strategy, n, seed):
    observations = []
    for number in range(n):
        configuration = strategy.suggest(history_of(observations), np.random.default_rng([seed, number])).configuration
        trial = Trial(number=number, configuration=configuration, seed=0)
        observations.append(
            Observation(trial=trial, outcome=Outcome(status=TrialStatus.SUCCESS, loss=smooth_loss(configuration)))
        )
    return min(o.loss for o in observations)


@pytest.mark.long
@BOTH
def test_it_beats_random_search(density):
    space = two_algorithms()
    tpe, random = TPE(space, density=density), RandomSearch(space)
    pairs = np.array([[best_loss(tpe, 50, seed), best_loss(random, 50, seed)] for seed in range(8)])
    assert wilcoxon(pairs[:, 0], pairs[:, 1], alternative="less").pvalue < 0.05
