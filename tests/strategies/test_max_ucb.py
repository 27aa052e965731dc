from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.exceptions import InvalidParameterError
from cashmere.strategies import BayesianOptimisation, MaxUCB, Preset, RandomSearch
from cashmere.strategies.max_ucb import max_ucb_index
from contracts.strategy_contract import StrategyContract, cash_space, history_of, run_trials


class TestMaxUCB(StrategyContract):
    @pytest.fixture
    def strategy_factory(self):
        return functools.partial(MaxUCB, inner=Preset(BayesianOptimisation, {"n_global": 100, "n_initial": 2}))


@given(
    arms=st.lists(st.tuples(st.floats(0, 1), st.integers(1, 500)), min_size=1, max_size=8),
    exploration=st.floats(0, 3),
)
def test_the_index_is_the_formula(arms, exploration):
    best, counts = (np.array(column) for column in zip(*arms, strict=True))
    expected = [reward + (exploration * math.log(counts.sum()) / n) ** 2 for reward, n in arms]
    np.testing.assert_allclose(max_ucb_index(best, counts, exploration=exploration), expected)


def test_arms_without_trials_come_first():
    index = max_ucb_index(np.array([1.0, 0.0]), np.array([1, 0]), exploration=0.5)
    assert index[1] == np.inf and index[0] == 1.0


LOSSES = {"svm": 0.2, "forest": 0.25, "knn": 0.5, "dummy": 0.7}


def shares(losses, n_trials=60):
    """Return the trials of each algorithm when its loss is always the same; None fails."""
    strategy = MaxUCB(cash_space(), inner=RandomSearch)
    observations = run_trials(strategy, n_trials, worst_loss=None, loss=lambda c: losses[c["algorithm"]])
    return Counter(o.trial.configuration["algorithm"] for o in observations)


def test_each_algorithm_has_one_trial_first():
    assert shares(LOSSES, 4) == dict.fromkeys(LOSSES, 1)


def test_better_algorithms_have_more_trials_and_none_is_dropped():
    counts = shares(LOSSES)
    assert counts["svm"] > counts["forest"] > counts["knn"] >= counts["dummy"] >= 2


def test_an_algorithm_that_fails_has_fewer_trials_than_a_bad_one():
    counts = shares(LOSSES | {"svm": None})
    assert counts["svm"] <= counts["knn"] < counts["forest"]


def test_what_an_exhausted_algorithm_leaves_goes_to_the_others():
    """`dummy` has three configurations, and each is the best."""
    assert shares(LOSSES | {"dummy": 0.1})["dummy"] == 3


def test_one_diverged_trial_does_not_make_the_others_alike():
    strategy = MaxUCB(cash_space(), inner=RandomSearch)
    observations = run_trials(strategy, 40, worst_loss=None, loss=lambda c: LOSSES[c["algorithm"]])
    first = next(i for i, o in enumerate(observations) if o.trial.configuration["algorithm"] == "knn")
    outcome = replace(observations[first].outcome, loss=1e6)
    diverged = (*observations[:first], replace(observations[first], outcome=outcome), *observations[first + 1 :])

    def chosen(observations, baseline_loss):
        history = replace(history_of(observations, worst_loss=None), baseline_loss=baseline_loss)
        return strategy.suggest(history, np.random.default_rng(0)).configuration["algorithm"]

    assert chosen(diverged, baseline_loss=0.7) == chosen(observations, baseline_loss=0.7)
    assert LOSSES[chosen(diverged, baseline_loss=np.nan)] > LOSSES[chosen(diverged, baseline_loss=0.7)]


@pytest.mark.parametrize("exploration", [-0.1, np.inf, np.nan])
def test_impossible_exploration_is_refused(exploration):
    with pytest.raises(InvalidParameterError, match="exploration"):
        MaxUCB(cash_space(), exploration=exploration)
