from __future__ import annotations

import math

import numpy as np
import pytest
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float

from cashmere.costs.predicted import OVERHEAD_SECONDS, PredictedSeconds
from cashmere.costs.relative import log_relative_costs
from cashmere.data.task import TaskProfile, TaskType
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Observation, Outcome, Trial, TrialStatus
from cashmere.space.encoding import SpaceEncoder
from cashmere.space.named.registry import make_space as named_space


def make_space() -> ConfigurationSpace:
    space = ConfigurationSpace({"algorithm": ["knn", "lightgbm", "custom"]})
    space.add(rounds := Float("rounds", (1.0, 1000.0), log=True))
    space.add(EqualsCondition(rounds, space["algorithm"], "lightgbm"))
    return space


@pytest.fixture
def encoder() -> SpaceEncoder:
    return SpaceEncoder(make_space())


def observe(encoder, values, seconds, *, status=TrialStatus.SUCCESS, share=1.0, cut_short=None) -> Observation:
    trial = Trial(number=0, configuration=Configuration(encoder.space, values), seed=0, fidelity=share)
    return Observation(trial=trial, outcome=Outcome(status=status, duration_seconds=seconds, cut_short=cut_short))


def boosters(encoder, *rounds: float) -> np.ndarray:
    return encoder.encode(Configuration(encoder.space, {"algorithm": "lightgbm", "rounds": r}) for r in rounds)


def test_one_trial_sets_the_scale_of_all_algorithms(encoder):
    seen = observe(encoder, {"algorithm": "knn"}, 2.0)
    rows = encoder.encode(
        [Configuration(encoder.space, {"algorithm": "knn"}), *map(encoder.decode, boosters(encoder, 31.6))]
    )
    mean, std = PredictedSeconds.learn(encoder, [seen]).log_seconds(rows)
    assert np.exp(mean[0]) == pytest.approx(2.0 + OVERHEAD_SECONDS, rel=0.1)
    relative = log_relative_costs()
    assert mean[1] - mean[0] == pytest.approx(relative["lightgbm"] - relative["knn"], abs=0.1)
    assert std[1] > std[0]


def test_seconds_follow_a_number_and_the_share_of_rows(encoder):
    seen = [
        observe(encoder, {"algorithm": "lightgbm", "rounds": r}, 0.01 * r * share, share=share)
        for r in (10.0, 30.0, 100.0, 300.0, 1000.0)
        for share in (0.1, 1.0)
    ]
    predicted = PredictedSeconds.learn(encoder, seen)
    few, many = predicted.log_seconds(boosters(encoder, 100.0, 1000.0))[0]
    assert 0.5 * math.log(10) < many - few < 1.2 * math.log(10)
    part, whole = predicted.log_seconds(boosters(encoder, 1000.0, 1000.0), np.array([0.1, 1.0]))[0]
    assert 0.5 * math.log(10) < whole - part < 1.2 * math.log(10)


@pytest.mark.parametrize(
    "end",
    [
        {"status": TrialStatus.TIMEOUT},
        {"status": TrialStatus.MEMORY},
        {"status": TrialStatus.STOPPED},
        {"cut_short": Cause(kind=CauseKind.TIME_LIMIT)},
    ],
)
def test_trials_that_were_ended_would_have_taken_longer(encoder, end):
    rows = boosters(encoder, 1000.0)
    values = {"algorithm": "lightgbm", "rounds": 1000.0}
    begin = [observe(encoder, {"algorithm": "knn"}, 1.0)] * 5
    ended = PredictedSeconds.learn(encoder, [*begin, observe(encoder, values, 10.0, **end)])
    finished = PredictedSeconds.learn(encoder, [*begin, observe(encoder, values, 10.0)])
    assert ended.log_seconds(rows)[0] > finished.log_seconds(rows)[0]


def test_errors_teach_nothing(encoder):
    seen = [observe(encoder, {"algorithm": "knn"}, 1.0)]
    failed = observe(encoder, {"algorithm": "custom"}, 0.001, status=TrialStatus.ERROR)
    rows = boosters(encoder, 10.0)
    without, with_error = (PredictedSeconds.learn(encoder, trials) for trials in (seen, [*seen, failed]))
    assert without.log_seconds(rows)[0] == with_error.log_seconds(rows)[0]


def test_without_trials_algorithms_are_ordered_by_the_recordings(encoder):
    rows = encoder.encode(Configuration(encoder.space, {"algorithm": name}) for name in ("knn", "custom"))
    mean, std = PredictedSeconds.learn(encoder, []).log_seconds(rows)
    assert mean[0] < mean[1]
    assert np.isfinite(std).all()


def test_a_space_without_algorithms_is_predicted():
    encoder = SpaceEncoder(ConfigurationSpace({"x": (0.0, 1.0)}))
    seen = [observe(encoder, {"x": x}, math.exp(2 * x)) for x in np.linspace(0, 1, 20)]
    low, high = PredictedSeconds.learn(encoder, seen).log_seconds(np.array([[0.0], [1.0]]))[0]
    assert 1.0 < high - low < 2.5


def test_without_trials_choices_cost_what_the_table_says():
    name = "logistic_regression:basis"
    space = ConfigurationSpace("default", space={"algorithm": ["knn", "logistic_regression"]})
    space.add(basis := Categorical(name, ["columns", "bins", "similarities"]))
    space.add(EqualsCondition(basis, space["algorithm"], "logistic_regression"))
    encoder = SpaceEncoder(space)
    knn, *linear = (
        Configuration(space, values)
        for values in (
            {"algorithm": "knn"},
            *({"algorithm": "logistic_regression", name: value} for value in basis.choices),
        )
    )
    mean = PredictedSeconds.learn(encoder, []).mean_log_seconds(encoder.encode([knn, *linear]))
    costs = log_relative_costs("default")
    added = [0.0, costs[f"{name}=bins"], costs[f"{name}=similarities"]]
    assert 0.3 < added[1] < added[2]
    np.testing.assert_allclose(mean, [costs["knn"], *(costs["logistic_regression"] + a for a in added)])


@pytest.mark.parametrize("space", ["classic", "volcano"])
def test_boosters_cost_more_where_rounds_are_searched(space):
    searched, followed = log_relative_costs(space), log_relative_costs()
    assert searched["random_forest"] < searched["lightgbm"] and followed["lightgbm"] < followed["random_forest"]


def test_the_number_of_classes_comes_from_the_space():
    def mean(n_classes):
        profile = TaskProfile(task_type=TaskType.MULTICLASS, n_rows=700, n_columns=12, n_classes=n_classes)
        space = named_space("default", profile)
        encoder = SpaceEncoder(space.configuration_space)
        rows = encoder.encode(space.completed({"algorithm": name}) for name in ("lightgbm", "mlp"))
        return PredictedSeconds.learn(encoder, []).mean_log_seconds(rows)

    costs = log_relative_costs("default", 11)
    np.testing.assert_allclose(mean(11), [costs["lightgbm"], costs["mlp"]])
    assert mean(11)[0] - mean(11)[1] > mean(3)[0] - mean(3)[1]
