from __future__ import annotations

import numpy as np

from cashmere.records.trial import History, Observation, Outcome, TrialStatus
from cashmere.strategies import RandomSearch
from cashmere.strategies.shared.scaled_losses import scale_losses
from contracts.strategy_contract import cash_space, run_trials


def test_scaled_losses_are_finite_and_the_best_is_a_success():
    trials = run_trials(RandomSearch(cash_space()), 4)
    losses = [0.2, float("inf"), 0.4]
    observations = tuple(
        Observation(trial=o.trial, outcome=Outcome(status=TrialStatus.SUCCESS, loss=loss))
        for o, loss in zip(trials, losses, strict=False)
    )
    failed = Observation(trial=trials[3].trial, outcome=Outcome(status=TrialStatus.TIMEOUT))
    scaled, best = scale_losses(History(observations=(*observations, failed), worst_loss=0.0))
    assert np.all(np.isfinite(scaled))
    assert best == scaled[0] > scaled[3]
