"""An emulator answers for configurations that were never recorded."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from synthetic_recording import make_recording

from benchmarks.experiments.emulator_study import judge
from benchmarks.recordings.emulator import Emulator, as_recording, main_components
from benchmarks.recordings.redrawn_split import redraw_split
from benchmarks.recordings.replay import ensemble_curve, replay_free
from cashmere.data.task import TaskType
from cashmere.evaluation.metrics import default_metric
from cashmere.records.trial import TrialStatus, configuration_key
from cashmere.space.encoding.encoder import SpaceEncoder

BO = "bo:n_global=50,n_local=5"


@pytest.fixture(scope="module", params=list(TaskType))
def history(request):
    return make_recording(request.param, n=60)


@pytest.fixture(scope="module")
def emulator(history):
    return Emulator(history)


def drawn(history, n):
    encoder = SpaceEncoder(history.space)
    return [encoder.decode(row) for row in encoder.sample(n, np.random.default_rng(5))]


def test_recorded_configurations_are_answered_as_recorded(history, emulator):
    for i in (0, 3, 11):
        answer = emulator(history.configurations[i])
        assert (answer.status, answer.seconds) == (history.statuses[i], history.seconds[i])
        if answer.predictions is None:
            assert i == 3
        else:
            both = np.concatenate([history.validation[i], history.test[i]])
            np.testing.assert_array_equal(answer.predictions, both)


def test_other_configurations_get_predictions_of_their_kind(history, emulator):
    for configuration in drawn(history, 5):
        answer = emulator(configuration)
        assert answer.status is TrialStatus.SUCCESS and answer.seconds > 0
        assert answer.predictions.shape == (80, *history.validation.shape[2:])
        if history.task_type.is_classification:
            np.testing.assert_allclose(answer.predictions.sum(axis=-1), 1, atol=1e-5)
        np.testing.assert_array_equal(emulator(configuration).predictions, answer.predictions)


@pytest.mark.long
def test_losses_of_kept_configurations_are_put_in_order():
    judged = judge(make_recording(n=200, n_rows=200), 2.0)
    assert judged.answered > 150 and judged.tau > 0.5
    assert judged.distance < judged.of_algorithm


def test_regions_that_failed_fail():
    history = make_recording(n=120, failures=())
    fails = [configuration["x"] > 0.8 for configuration in history.configurations]
    statuses = tuple(TrialStatus.TIMEOUT if failed else TrialStatus.SUCCESS for failed in fails)
    emulator = Emulator(dataclasses.replace(history, statuses=statuses))
    for configuration in drawn(history, 40):
        if abs(configuration["x"] - 0.8) > 0.05:
            assert (emulator(configuration).predictions is None) == (configuration["x"] > 0.8)


@pytest.mark.long
def test_free_replays_leave_the_recording_and_repeat_themselves(history):
    emulator = Emulator(redraw_split(history, 1))
    metric = default_metric(history.task_type)
    found, seconds = replay_free(emulator, metric, BO, seed=1, n_trials=12)
    again, _ = replay_free(emulator, metric, BO, seed=1, n_trials=12)
    assert len(found) == 12 and seconds > 0
    assert found.configurations == again.configurations
    recorded = set(map(configuration_key, history.configurations))
    assert not recorded & set(map(configuration_key, found.configurations))
    rows = ensemble_curve(found, metric, list(range(12)))
    assert [row["trials"] for row in rows] == [5, 10] and np.isfinite([row["test"] for row in rows]).all()


def test_answers_become_a_recording(history, emulator):
    answers = [
        (configuration, emulator(configuration)) for configuration in (history.configurations[3], *drawn(history, 2))
    ]
    made = as_recording(history, answers)
    assert made.succeeded.tolist() == [1, 2] and np.isnan(made.test[0]).all()
    np.testing.assert_array_equal(made.validation[1], answers[1][1].predictions[:40])


def test_main_components_match_the_singular_values():
    values = np.random.default_rng(0).normal(size=(6, 40))
    centred = values - values.mean(axis=0)
    found = main_components(values, 3)
    expected = np.linalg.svd(centred, compute_uv=False)[:3]
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), expected)
