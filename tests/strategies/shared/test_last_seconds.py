from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Configuration
from test_discount import ENCODER, SPACE, history_of

from cashmere.records.time_left import TimeLeft
from cashmere.records.trial import History, Suggestion
from cashmere.strategies import BayesianOptimisation
from cashmere.strategies.shared.last_seconds import decide_in_time

DEAR = Suggestion(configuration=Configuration(SPACE, values={"algorithm": "dear", "x": 0.5}))


class Stubborn:
    """Always suggests the dear configuration."""

    def suggest(self, history, rng):
        return DEAR


def decide(seconds, *, strategy=None, history=None):
    return decide_in_time(
        DEAR,
        seconds,
        strategy=strategy or BayesianOptimisation(SPACE),
        history=history_of(42, TimeLeft(share=0.1)) if history is None else history,
        encoder=ENCODER,
        rng=np.random.default_rng(0),
    )


def test_a_decision_that_ends_in_time_is_kept():
    assert decide(60.0) is DEAR


@pytest.mark.parametrize("strategy", [BayesianOptimisation(SPACE), Stubborn()], ids=["bo", "stubborn"])
def test_a_decision_that_takes_too_long_gives_way_to_a_shorter_one(strategy):
    assert decide(0.5, strategy=strategy).configuration["algorithm"] == "cheap"


def test_nothing_is_started_when_nothing_fits():
    assert decide(0.01) is None
    assert decide(0.0) is None
    assert decide(-1.0) is None


def test_before_the_first_success_everything_is_tried():
    nothing = History(time_left=TimeLeft(share=1.0))
    assert decide(0.01, history=nothing) is DEAR


def test_without_a_budget_of_time_the_clock_does_not_decide():
    assert decide(0.01, history=history_of(42, None)) is DEAR
