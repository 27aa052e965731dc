from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace

from cashmere.records.time_left import TimeLeft
from cashmere.records.trial import History, Observation, Outcome, Trial, TrialStatus
from cashmere.space.encoding import SpaceEncoder
from cashmere.strategies import make_strategy
from cashmere.strategies.shared.discount import Discount

SPACE = ConfigurationSpace({"algorithm": ["cheap", "dear"], "x": (0.0, 1.0)})
ENCODER = SpaceEncoder(SPACE)


def history_of(n: int, time_left: TimeLeft | None) -> History:
    """Return trials in pairs of equal loss, of which one takes a hundred times as long."""
    rng = np.random.default_rng(0)
    observations = []
    for i, x in enumerate(np.repeat(rng.random(n // 2), 2).tolist()):
        configuration = Configuration(SPACE, values={"algorithm": ("dear", "cheap")[i % 2], "x": x})
        outcome = Outcome(status=TrialStatus.SUCCESS, loss=abs(x - 0.4), duration_seconds=0.1 if i % 2 else 10.0)
        observations.append(Observation(trial=Trial(number=i, configuration=configuration, seed=i), outcome=outcome))
    return History(observations=tuple(observations), time_left=time_left)


def both() -> np.ndarray:
    return ENCODER.encode(Configuration(SPACE, values={"algorithm": name, "x": 0.4}) for name in ("cheap", "dear"))


def test_without_a_budget_of_time_there_is_none():
    discount = Discount.of(history_of(10, None), ENCODER)
    assert not discount.counts
    assert (discount(both()) == 0).all()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_it_is_the_log_of_the_seconds_times_the_share_of_time_left(share):
    cheap, dear = Discount.of(history_of(40, TimeLeft(share=share)), ENCODER)(both())
    assert dear - cheap == pytest.approx(share * np.log(10.05 / 0.15), abs=0.3 * share)


def test_near_the_end_what_takes_too_long_is_worth_nothing():
    cheap, dear = Discount.of(history_of(40, TimeLeft(share=0.0, seconds=1.0)), ENCODER)(both())
    assert cheap < 0.1
    assert dear > 5


@pytest.mark.parametrize("name", ["bo", "smac", "tpe", "latent", "bandit_bo"])
def test_strategies_prefer_the_cheaper_of_equals(name):
    strategy = make_strategy(name, SPACE)

    def n_dear(time_left: TimeLeft | None) -> int:
        history = history_of(24, time_left)
        drawn = [strategy.suggest(history, np.random.default_rng(seed)) for seed in range(12)]
        return sum(s.configuration["algorithm"] == "dear" for s in drawn)

    assert n_dear(TimeLeft(share=1.0)) == 0 < n_dear(None)
