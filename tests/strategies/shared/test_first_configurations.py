"""The order of the configurations that a search starts with, under a time budget."""

from __future__ import annotations

import pytest
from ConfigSpace import Configuration, ConfigurationSpace

from cashmere.data.task import TaskProfile, TaskType
from cashmere.records.trial import Observation, Outcome, Trial, TrialStatus
from cashmere.space.encoding import SpaceEncoder
from cashmere.space.named.registry import make_space
from cashmere.strategies.shared.first_configurations import best_per_second

SPACE = ConfigurationSpace({"algorithm": ["slow", "middling", "quick"], "x": (0.0, 1.0)})
SECONDS = {"slow": 50.0, "middling": 5.0, "quick": 0.5}
LEFT = [Configuration(SPACE, values={"algorithm": name, "x": 0.2}) for name in SECONDS]


def trials(*names):
    """Return finished trials of these algorithms, which took their seconds."""
    return [
        Observation(
            trial=Trial(number=k, configuration=Configuration(SPACE, values={"algorithm": name, "x": 0.9}), seed=0),
            outcome=Outcome(status=TrialStatus.SUCCESS, loss=0.5, duration_seconds=SECONDS[name]),
            finished_at=float(k),
        )
        for k, name in enumerate(names)
    ]


SEEN = trials(*(["slow"] * 3 + ["middling"] * 3 + ["quick"] * 3))


def chosen(gains, *, seconds=1e6, observations=SEEN, **options):
    encoder = SpaceEncoder(SPACE)
    found = best_per_second(LEFT, gains, observations=observations, encoder=encoder, seconds=seconds, **options)
    return found["algorithm"]


def test_equal_gains_mean_the_cheapest():
    assert chosen([1.0, 1.0, 1.0]) == "quick"


def test_a_large_gain_is_worth_its_seconds():
    assert chosen([0.1, 5.0, 0.1]) == "middling"
    assert chosen([1000.0, 1.0, 1.0]) == "slow"


def test_the_scale_of_gains_does_not_matter():
    assert chosen([1e-5, 5e-4, 1e-5]) == chosen([0.1, 5.0, 0.1])


def test_configurations_that_would_not_end_in_time_come_last():
    assert chosen([1000.0, 5.0, 0.1], seconds=15.0) == "middling"
    assert chosen([1000.0, 5.0, 0.1], seconds=15.0, share=0.1) == "slow"  # on fewer rows it would


def test_one_is_chosen_even_if_none_would_end_in_time():
    assert chosen([1000.0, 1.0, 1.0], seconds=0.01) == "slow"


@pytest.mark.parametrize("seconds", [0.0, 1.0, 1e6])
def test_before_the_first_trial_gains_decide(seconds):
    assert chosen([1.0, 2.0, 1.0], seconds=seconds, observations=[]) == "middling"


def test_networks_come_before_boosters_where_there_are_many_classes():
    profile = TaskProfile(task_type=TaskType.MULTICLASS, n_rows=700, n_columns=12, n_classes=11)
    space = make_space("default", profile)
    encoder = SpaceEncoder(space.configuration_space)
    left, order = list(space.default_configurations()), []
    while left:  # as before the first trial
        order.append(best_per_second(left, [1.0] * len(left), observations=[], encoder=encoder, seconds=60.0))
        left.remove(order[-1])
    names = [c["algorithm"] for c in order]
    assert names.index("mlp") < min(names.index(name) for name in ("lightgbm", "hist_gradient_boosting", "catboost"))


@pytest.mark.parametrize("n_rows", [120, 20_000])
@pytest.mark.parametrize(
    ("task", "n_classes"), [("binary", 2), ("multiclass", 3), ("multiclass", 26), ("regression", 1)]
)
def test_the_first_trial_predicts_well_by_itself(task, n_classes, n_rows):
    """A short budget may end before the second."""
    profile = TaskProfile(task_type=TaskType(task), n_rows=n_rows, n_columns=12, n_classes=n_classes)
    space = make_space("default", profile)
    gains = space.first_gains()
    encoder = SpaceEncoder(space.configuration_space)
    first = best_per_second(list(gains), list(gains.values()), observations=[], encoder=encoder, seconds=2.0)
    assert first["algorithm"] in {"logistic_regression", "ridge", "mlp", "lightgbm"}
