from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import InvalidParameterError, UnknownNameError
from cashmere.records.trial import Outcome, TrialStatus
from cashmere.space.encoding import CatalogueEncoder
from cashmere.strategies import KBO, BayesianOptimisation, Preset, RandomSearch, make_strategy
from cashmere.study import Study
from contracts.strategy_contract import (
    METRIC,
    TARGETS,
    StrategyContract,
    cash_space,
    history_of,
    keys,
    made_up_loss,
    made_up_predictions,
    run_trials,
)


class TestKBO(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(KBO, inner=Preset(BayesianOptimisation, {"n_global": 100, "n_initial": 2}))


def algorithms(observations):
    return [o.trial.configuration["algorithm"] for o in observations]


def test_shares_are_equal_at_any_time():
    observations = run_trials(KBO(cash_space(), inner=RandomSearch), 12)
    assert algorithms(observations) == ["svm", "forest", "knn", "dummy"] * 3


def test_what_an_exhausted_algorithm_leaves_goes_to_the_others():
    observations = run_trials(KBO(cash_space(), inner=RandomSearch), 50)
    assert Counter(algorithms(observations)) == {"svm": 19, "forest": 18, "knn": 10, "dummy": 3}


def test_warm_starts_and_pending_trials_count():
    space = cash_space()
    observations = run_trials(KBO(space, inner=RandomSearch), 4)
    history = history_of((observations[0],), pending=(observations[1].trial,))
    suggestion = KBO(space, inner=RandomSearch).suggest(history, np.random.default_rng(0))
    assert suggestion.configuration["algorithm"] == "knn"
    assert str(suggestion.origin) == "knn · random"


def test_every_algorithm_is_searched_on_its_own():
    observations = run_trials(
        make_strategy("kbo", cash_space(), inner="bo:n_initial=3,n_global=50,random_fraction=0"), 24
    )
    for name in ("svm", "forest"):
        own = [str(o.trial.origin) for o in observations if o.trial.configuration["algorithm"] == name]
        assert own == [f"{name} · random"] * 3 + [f"{name} · model"] * (len(own) - 3)


@pytest.mark.parametrize("name", ["kbo", "rising_bandit"])
def test_losses_and_predictions_of_other_algorithms_do_not_matter_inside(name):
    space = cash_space()
    strategy = make_strategy(f"{name}:inner=optdivbo", space)
    observations = run_trials(make_strategy(f"{name}:inner=bo", space), 28)
    turn = strategy.suggest(history_of(observations), np.random.default_rng(0))
    assert str(turn.origin).endswith("model")
    mine = turn.configuration["algorithm"]
    others = [
        o
        if o.trial.configuration["algorithm"] == mine
        else replace(o, outcome=replace(o.outcome, predictions=o.predictions[:, ::-1]))
        for o in observations
    ]
    again = strategy.suggest(history_of(others), np.random.default_rng(0))
    assert dict(again.configuration) == dict(turn.configuration)


def objective(trial):
    return Outcome(
        status=TrialStatus.SUCCESS,
        loss=made_up_loss(trial.configuration),
        predictions=made_up_predictions(trial.configuration),
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "inner", ["divbo", "optdivbo", "ensemble_gain", "ensemble_optimisation:n_initial=3", "nes:population=3"]
)
@pytest.mark.parametrize("outer", ["kbo", "rising_bandit"])
def test_strategies_that_search_for_an_ensemble_may_be_inside(outer, inner):
    """At most the first five trials of an algorithm are random; three algorithms have nine."""
    study = Study(cash_space(), f"{outer}:inner={inner}", seed=0, metric=METRIC, targets=TARGETS, lookahead=3)
    history = study.optimize(objective, "30trials")
    assert len(history.successes) == len(history.seen) == 30
    wanted = "mutation" if "nes" in inner else "model"
    assert sum(str(o.trial.origin).endswith(wanted) for o in history) >= 4


def test_a_catalogue_limits_the_choice():
    space = cash_space()
    catalogue = tuple(space.sample_configuration(40))
    n_distinct = len(set(map(str, catalogue)))
    observations = run_trials(
        KBO(CatalogueEncoder(space, catalogue), inner=Preset(BayesianOptimisation, {"n_initial": 2})), n_distinct
    )
    assert len(set(keys(observations))) == n_distinct
    assert {id(o.trial.configuration) for o in observations} <= set(map(id, catalogue))


def test_the_inner_strategy_checks_the_metric_and_its_options():
    with pytest.raises(InvalidParameterError, match="measure"):
        make_strategy("kbo:inner=optdivbo:measure=ce", cash_space()).check_metric(get_metric("mse", "regression"))
    with pytest.raises(UnknownNameError, match="strategy"):
        make_strategy("kbo:inner=nothing", cash_space())
