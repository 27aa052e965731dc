"""Numbers among the options of strategies."""

from __future__ import annotations

import pytest
from ConfigSpace import ConfigurationSpace

from cashmere.exceptions import InvalidParameterError
from cashmere.strategies import DivBO, EnsembleGain, OptDivBO


@pytest.mark.parametrize(("strategy", "option"), [(DivBO, "beta"), (OptDivBO, "kappa"), (EnsembleGain, "max_weight")])
@pytest.mark.parametrize("value", [-0.1, float("nan")])
def test_options_below_their_least_value_or_nan_are_refused(strategy, option, value):
    with pytest.raises(InvalidParameterError, match=f"{option} must be at least 0"):
        strategy(ConfigurationSpace({"x": (0.0, 1.0)}), **{option: value})
