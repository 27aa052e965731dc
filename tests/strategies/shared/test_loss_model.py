from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cashmere.exceptions import MissingPredictionsError
from cashmere.records.trial import TrialStatus
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.strategies import RandomSearch
from cashmere.strategies.shared.loss_model import learn_losses
from cashmere.strategies.shared.scaled_losses import scale_losses
from cashmere.surrogates.forest import ProbabilisticForest
from cashmere.surrogates.loss_of_predictions import LossOfPredictions
from contracts.strategy_contract import cash_space, history_of, made_up_loss, run_trials

SPACE = cash_space()
ENCODER = SpaceEncoder(SPACE)


def searched(n=60, **options):
    """Return a history and its encoded configurations."""
    history = history_of(run_trials(RandomSearch(SPACE), n, **options))
    return history, ENCODER.encode(trial.configuration for trial in history.trials)


def without_svm(configuration):
    return None if configuration["algorithm"] == "svm" else made_up_loss(configuration)


def test_by_default_one_forest_learns_all_losses():
    history, rows = searched(loss=without_svm)
    model = learn_losses(history, rows, np.random.default_rng(3))
    losses, best = scale_losses(history)
    forest = ProbabilisticForest().fit(rows, losses, np.random.default_rng(3))
    np.testing.assert_array_equal(model.surrogate.predict(rows), forest.predict(rows))
    assert model.best == best and model.success is None


@pytest.mark.parametrize("learn_from", ["losses", "predictions"])
def test_certain_failures_are_worth_little_although_their_losses_are_unknown(learn_from):
    history, rows = searched(loss=without_svm)
    model = learn_losses(history, rows, np.random.default_rng(0), learn_from=learn_from, failures="apart")
    unseen = ENCODER.sample(400, np.random.default_rng(9))
    is_svm = np.array([ENCODER.decode(row)["algorithm"] == "svm" for row in unseen])
    chance, _ = model.success.predict(unseen)
    assert chance[is_svm].max() < 0.5 < chance[~is_svm].min()
    without = replace(model, success=None).log_improvement(unseen)
    np.testing.assert_allclose(
        model.log_improvement(unseen) - without, np.log(np.maximum(chance, 1 / 62)), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("learn_from", ["losses", "predictions"])
def test_without_failures_there_is_no_model_of_success(learn_from):
    history, rows = searched(20)
    assert (
        learn_losses(history, rows, np.random.default_rng(0), learn_from=learn_from, failures="apart").success is None
    )


def test_trials_stopped_early_are_not_failures():
    history, rows = searched(20)
    stopped = replace(history[4], outcome=replace(history[4].outcome, status=TrialStatus.STOPPED, loss=None))
    history = replace(history, observations=(*history.observations[:4], stopped, *history.observations[5:]))
    for learn_from in ("losses", "predictions"):
        model = learn_losses(history, rows, np.random.default_rng(0), learn_from=learn_from, failures="apart")
        assert model.success is None


@pytest.mark.parametrize("learn_from", ["losses", "predictions"])
def test_a_history_of_failures_is_survived(learn_from):
    history, rows = searched(6, fails=lambda number: True)
    model = learn_losses(history, rows, np.random.default_rng(0), learn_from=learn_from, failures="apart")
    assert not np.isnan(model.log_improvement(rows)).any()


def test_predictions_that_are_not_finite_are_left_out():
    history, rows = searched(8)
    broken = [replace(o, outcome=replace(o.outcome, predictions=np.full((40, 2), np.nan))) for o in history]
    some = replace(history, observations=(broken[0], *history.observations[1:]))
    model = learn_losses(some, rows, np.random.default_rng(0), learn_from="predictions")
    assert isinstance(model.surrogate, LossOfPredictions)
    none = replace(history, observations=tuple(broken))
    model = learn_losses(none, rows, np.random.default_rng(0), learn_from="predictions")
    assert isinstance(model.surrogate, ProbabilisticForest)


def test_missing_predictions_are_named():
    history, rows = searched(8)
    with pytest.raises(MissingPredictionsError):
        learn_losses(replace(history, targets=None), rows, np.random.default_rng(0), learn_from="predictions")
