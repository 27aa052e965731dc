from __future__ import annotations

import functools

import numpy as np
import pytest
from ConfigSpace import Constant

from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import InvalidParameterError, UnknownNameError
from cashmere.records.trial import History, Outcome, TrialStatus
from cashmere.records.work_budget import WorkBudget
from cashmere.space.encoding import CatalogueEncoder
from cashmere.strategies import OptDivBO, Preset, RandomSearch, RisingBandit, make_strategy
from cashmere.study import Study
from contracts.strategy_contract import StrategyContract, cash_space, flat_space, history_of, keys, run_trials


class TestRisingBandit(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(make_strategy, "rising_bandit", inner="bo:n_global=100,n_initial=2", budget=60)


@pytest.mark.long
class TestRisingBanditThatDrops(StrategyContract):
    """Algorithms are dropped within the trials of these tests."""

    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(RisingBandit, inner=RandomSearch, evaluations_per_pull=1, window=1, budget=20)


class TestRbSmac(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(make_strategy, "rb_smac:slope=authors,evaluations_per_pull=1", window=2)


LEVELS = {"svm": 0.1, "forest": 0.3, "knn": 0.5, "dummy": 0.7}


def level_loss(configuration):
    return LEVELS[configuration["algorithm"]]


def test_algorithms_take_turns_and_the_beaten_are_dropped_after_four_pulls():
    bandit = RisingBandit(cash_space(), inner=RandomSearch, budget=120)
    observations = run_trials(bandit, 60, loss=level_loss)
    names = [o.trial.configuration["algorithm"] for o in observations]
    assert names[:4] == list(LEVELS)
    # Four pulls of each are 20 trials; knn has 10 configurations and dummy 3. The rest is for the best.
    assert {name: names.count(name) for name in LEVELS} == {"svm": 27, "forest": 20, "knn": 10, "dummy": 3}
    standing = bandit.standing(history_of(observations))
    assert [bandit.blocks.names[bandit.blocks.drawable[i]] for i in standing.alive] == ["svm"]
    assert set(names[-5:]) == {"svm"}
    assert str(observations[-1].trial.origin) == "svm · random"


def test_pulls_are_the_trials_of_each_algorithm_alone():
    """The inner strategy sees its own trials only: its fifth decision is the last random one of `bo`."""
    observations = run_trials(RisingBandit(cash_space(), budget=100), 30)
    for name in ("svm", "forest"):
        own = [str(o.trial.origin) for o in observations if o.trial.configuration["algorithm"] == name]
        assert own[:5] == [f"{name} · random"] * 5
        assert f"{name} · model" in own[5:]


def test_decisions_wait_for_the_end_of_a_cycle_that_is_judged():
    space = cash_space()
    bandit = RisingBandit(space, inner=RandomSearch, evaluations_per_pull=2, window=1, budget=60)
    observations = run_trials(bandit, 15, loss=level_loss)  # 4 + 4 + 4 + 3 complete the second cycle
    committed, pending = observations[:13], [o.trial for o in observations[13:]]
    assert bandit.suggest(history_of(committed, pending=pending), np.random.default_rng(0)) is None
    assert bandit.suggest(history_of(observations), np.random.default_rng(0)) is not None
    assert bandit.suggest(history_of(observations[:9]), np.random.default_rng(0)) is not None


def test_the_budget_is_that_of_the_study_unless_given():
    space = cash_space()
    observations = run_trials(RisingBandit(space, inner=RandomSearch), 64, loss=lambda c: level_loss(c))
    planned = History(observations=observations, worst_loss=1.0, budget=WorkBudget(trials=200))
    check = RisingBandit(space, inner=RandomSearch).standing(planned).checks[0]
    given = RisingBandit(space, inner=RandomSearch, budget=100).standing(planned).checks[0]
    n_granted = sum(min(20, capacity or 20) for capacity in RisingBandit(space)._capacities.values())
    assert check.horizon == (200 - n_granted) // 5
    assert given.horizon == (100 - n_granted) // 5


def test_lookahead_does_not_change_who_is_dropped():
    bandit = RisingBandit(cash_space(), inner=RandomSearch, evaluations_per_pull=2, budget=80)
    standings = []
    for lookahead in (1, 6):
        observations = run_trials(bandit, 50, lookahead=lookahead, loss=level_loss)
        assert len(set(keys(observations))) == 50
        standings.append(bandit.standing(history_of(observations)))
    assert [check.dropped for check in standings[0].checks] == [check.dropped for check in standings[1].checks]


@pytest.mark.parametrize("inner", ["bo", "random", "tpe", "bandit_bo", "smac:n_global=50"])
def test_any_strategy_may_be_inside(inner):
    observations = run_trials(
        make_strategy("rising_bandit", cash_space(), inner=inner, evaluations_per_pull=1, window=1), 16
    )
    assert len(set(keys(observations))) == 16


def test_a_catalogue_limits_the_choice():
    space = cash_space()
    catalogue = tuple(space.sample_configuration(60))
    observations = run_trials(RisingBandit(CatalogueEncoder(space, catalogue), budget=60), 60)
    assert len(set(keys(observations))) == len(
        {id(c) for c in catalogue} & {id(o.trial.configuration) for o in observations}
    )
    assert len(set(keys(observations))) == len(set(map(str, catalogue)))  # all of it


def test_a_space_without_algorithms_is_left_to_the_inner_strategy():
    space = flat_space()
    space.add(Constant("fixed", 1))
    bandit = RisingBandit(space, inner=RandomSearch)
    observations = run_trials(bandit, 8)
    assert str(observations[0].trial.origin) == "all · random"
    assert bandit.standing(history_of(observations)).quotas == (None,)


def test_it_runs_in_a_study_with_a_budget_in_seconds():
    def objective(trial):
        return Outcome(status=TrialStatus.SUCCESS, loss=level_loss(trial.configuration), duration_seconds=1.0)

    study = Study(cash_space(), RisingBandit(cash_space(), inner=RandomSearch), seed=0)
    history = study.optimize(objective, "70trials")
    assert history.incumbent.loss == 0.1


def test_the_inner_strategy_checks_the_metric():
    bandit = RisingBandit(cash_space(), inner=Preset(OptDivBO, {"measure": "ce"}))
    with pytest.raises(InvalidParameterError, match="measure"):
        bandit.check_metric(get_metric("mse", "regression"))
    RisingBandit(cash_space()).check_metric(get_metric("accuracy", "binary"))


def test_impossible_options_are_refused():
    with pytest.raises(InvalidParameterError, match="window"):
        RisingBandit(cash_space(), window=1, slope="authors")
    with pytest.raises(InvalidParameterError, match="budget"):
        RisingBandit(cash_space(), budget=0)
    with pytest.raises(UnknownNameError, match="strategy"):
        make_strategy("rising_bandit:inner=nothing", cash_space())
