from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace

from cashmere.costs.predicted import OVERHEAD_SECONDS
from cashmere.records.origin import OriginKind
from cashmere.records.time_left import TimeLeft
from cashmere.records.trial import History, Observation, Outcome, Trial, TrialStatus
from cashmere.space.encoding import SpaceEncoder
from cashmere.strategies import make_strategy
from cashmere.strategies.shared.discount import Discount

SPACE = ConfigurationSpace({"algorithm": ["cheap", "usual", "dear"], "x": (0.0, 1.0)})
ENCODER = SpaceEncoder(SPACE)


def history_of(n: int, time_left: TimeLeft | None) -> History:
    """Return trials in threes of equal loss, each of which takes a tenth of the time of the one before."""
    rng = np.random.default_rng(0)
    observations = []
    for i, x in enumerate(np.repeat(rng.random(n // 3), 3).tolist()):
        configuration = Configuration(SPACE, values={"algorithm": ("dear", "usual", "cheap")[i % 3], "x": x})
        outcome = Outcome(status=TrialStatus.SUCCESS, loss=abs(x - 0.4), duration_seconds=10.0 ** (1 - i % 3))
        observations.append(Observation(trial=Trial(number=i, configuration=configuration, seed=i), outcome=outcome))
    return History(observations=tuple(observations), time_left=time_left)


def one_of_each() -> np.ndarray:
    names = ("cheap", "usual", "dear")
    return ENCODER.encode(Configuration(SPACE, values={"algorithm": name, "x": 0.4}) for name in names)


def test_without_a_budget_of_time_there_is_none():
    discount = Discount.of(history_of(12, None), ENCODER)
    assert not discount.counts
    assert (discount(one_of_each()) == 0).all()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_it_is_the_log_of_the_seconds_over_their_median_times_the_share_of_time_left(share):
    dear = Discount.of(history_of(42, TimeLeft(share=share)), ENCODER)(one_of_each())[2]
    assert dear == pytest.approx(share * np.log(10.05 / 1.05), abs=0.3 * share)


def test_what_takes_less_than_usual_has_no_discount():
    rows = ENCODER.sample(200, np.random.default_rng(1))
    discount = Discount.of(history_of(42, TimeLeft(share=1.0)), ENCODER)(rows)
    is_cheap = rows[:, ENCODER.names.index("algorithm")] == one_of_each()[0, ENCODER.names.index("algorithm")]
    assert (discount[is_cheap] == 0).all()
    assert 0.3 < np.mean(discount == 0) < 0.7
    assert (discount >= 0).all()


def test_the_share_of_the_rows_cancels():
    """New configurations of a large table are tried on its first rung; predictions are for all rows."""
    history = history_of(42, TimeLeft(share=1.0))

    def on_half_of_the_rows(observation: Observation) -> Observation:
        seconds = (observation.duration_seconds + OVERHEAD_SECONDS) / 2 - OVERHEAD_SECONDS
        return Observation(
            trial=replace(observation.trial, fidelity=0.5),
            outcome=replace(observation.outcome, duration_seconds=seconds),
        )

    halves = replace(history, observations=tuple(map(on_half_of_the_rows, history)))
    of_all, of_half = (Discount.of(each, ENCODER)(one_of_each()) for each in (history, halves))
    assert of_half == pytest.approx(of_all, abs=0.05)


def test_near_the_end_configurations_that_take_too_long_are_worth_nothing():
    cheap, _, dear = Discount.of(history_of(42, TimeLeft(share=0.0, seconds=1.0)), ENCODER)(one_of_each())
    assert cheap < 0.1
    assert dear > 5


@pytest.mark.long
@pytest.mark.parametrize("name", ["bo", "smac", "tpe", "latent", "bandit_bo"])
def test_strategies_prefer_the_cheaper_of_equals(name):
    strategy = make_strategy(name, SPACE)

    def n_dear(time_left: TimeLeft | None) -> int:
        history = history_of(33, time_left)
        drawn = [strategy.suggest(history, np.random.default_rng(seed)) for seed in range(12)]
        # Some trials of some strategies are random, whatever they cost.
        chosen = [s.configuration["algorithm"] for s in drawn if s.origin.kind is OriginKind.MODEL]
        return chosen.count("dear")

    assert n_dear(TimeLeft(share=1.0)) == 0 < n_dear(None)
