from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from synthetic_recording import make_recording

from benchmarks.recordings.replay import ReplayObjective, ensemble_curve
from benchmarks.recordings.timed_replay import N_WORKERS, losses_over_time, one_of_each, timed_replay, total_seconds
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.records.trial import configuration_key
from cashmere.strategies import make_strategy

METRIC = get_metric("log_loss", TaskType.BINARY)


@pytest.fixture(scope="module")
def objective() -> ReplayObjective:
    return ReplayObjective.of(make_recording(n=60), METRIC)


def replay(objective, seconds, *, weighs_costs=True, strategy="bo"):
    made = make_strategy(strategy, objective.history.encoder)
    return timed_replay(objective, METRIC, made, seed=1, seconds=seconds, weighs_costs=weighs_costs)


@pytest.mark.parametrize("weighs_costs", [True, False])
def test_workers_are_busy_until_the_end_and_not_beyond(objective, weighs_costs):
    seconds = 0.3 * total_seconds(objective.history) / N_WORKERS
    replayed = replay(objective, seconds, weighs_costs=weighs_costs)
    assert replayed.ended_at == sorted(replayed.ended_at)
    assert replayed.ended_at[-1] <= seconds
    assert 0.8 * N_WORKERS * seconds < replayed.busy_seconds <= N_WORKERS * seconds
    assert len(set(replayed.chosen)) == len(replayed.chosen)
    assert replayed == replay(objective, seconds, weighs_costs=weighs_costs)


def test_predictable_costs_allow_more_trials():
    history = make_recording(n=200)
    seconds = np.array([np.exp(4 * c["x"]) / 20 for c in history.configurations])
    objective = ReplayObjective.of(replace(history, seconds=seconds), METRIC)
    budget = 0.2 * total_seconds(objective.history) / N_WORKERS
    with_costs, without = (len(replay(objective, budget, weighs_costs=w).chosen) for w in (True, False))
    assert with_costs > without


def test_first_trials_are_one_of_each_algorithm(objective):
    history = objective.history
    first = one_of_each(history, seed=1)
    assert [c["algorithm"] for c in first] == ["near", "far"]
    replayed = replay(objective, 10.0, weighs_costs=False)
    assert {configuration_key(history.configurations[i]) for i in replayed.chosen} >= set(map(configuration_key, first))


def test_losses_over_time_are_those_of_the_ensemble(objective):
    replayed = replay(objective, 0.3 * total_seconds(objective.history) / N_WORKERS)
    rows = losses_over_time(objective.history, METRIC, replayed, (0.0, 0.5, 1.0))
    assert [row["trials"] for row in rows] == [0, replayed.number_at(0.5), len(replayed.chosen)]
    assert rows[0]["validation"] == pytest.approx(np.log(2), abs=0.02)
    (last,) = ensemble_curve(objective.history, METRIC, replayed.chosen, every=len(replayed.chosen))
    assert (rows[-1]["validation"], rows[-1]["test"]) == (last["validation"], last["test"])
