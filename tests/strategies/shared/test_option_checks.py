"""Numbers among the options of strategies."""

from __future__ import annotations

import pytest
from ConfigSpace import ConfigurationSpace

from cashmere.exceptions import InvalidParameterError
from cashmere.strategies import TPE, Contest, DivBO, EnsembleGain, OptDivBO, PretrainBO, RisingBandit


@pytest.mark.parametrize(("strategy", "option"), [(DivBO, "beta"), (OptDivBO, "kappa"), (EnsembleGain, "max_weight")])
@pytest.mark.parametrize("value", [-0.1, float("nan")])
def test_options_below_their_least_value_or_nan_are_refused(strategy, option, value):
    with pytest.raises(InvalidParameterError, match=f"{option} must be at least 0"):
        strategy(ConfigurationSpace({"x": (0.0, 1.0)}), **{option: value})


@pytest.mark.parametrize(
    ("strategy", "option"), [(DivBO, "tau"), (OptDivBO, "tau"), (EnsembleGain, "tau"), (TPE, "prior_weight")]
)
@pytest.mark.parametrize("value", [0.0, -0.1, float("nan")])
def test_options_that_are_not_positive_are_refused(strategy, option, value):
    with pytest.raises(InvalidParameterError, match=f"{option} must be positive"):
        strategy(ConfigurationSpace({"x": (0.0, 1.0)}), **{option: value})


@pytest.mark.parametrize("strategy", [Contest, RisingBandit])
@pytest.mark.parametrize("budget", [0, 2.5, "10m"])
def test_a_budget_that_is_no_number_of_trials_is_refused(strategy, budget):
    with pytest.raises(InvalidParameterError, match="budget must be a number of trials"):
        strategy(ConfigurationSpace({"x": (0.0, 1.0)}), budget=budget)


@pytest.mark.parametrize("option", ["n_initial", "n_starts"])
def test_impossible_numbers_are_refused_before_an_artefact_is_needed(option):
    with pytest.raises(InvalidParameterError, match=f"{option} must be at least 1"):
        PretrainBO(ConfigurationSpace({"x": (0.0, 1.0)}), **{option: 0})
