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


def test_failures_are_as_bad_as_possible_or_as_the_worst_success():
    trials = run_trials(RandomSearch(cash_space()), 4)
    outcomes = [Outcome(status=TrialStatus.SUCCESS, loss=loss) for loss in (0.2, 0.3, 0.4)]
    outcomes.append(Outcome(status=TrialStatus.TIMEOUT))
    observations = tuple(
        Observation(trial=o.trial, outcome=outcome) for o, outcome in zip(trials, outcomes, strict=True)
    )
    history = History(observations=observations, worst_loss=1.0)
    scaled, _ = scale_losses(history, cap=False)
    assert scaled[3] > scaled[2] > scaled[1]
    scaled, best = scale_losses(history, cap=False, failures="worst_seen")
    assert scaled[3] == scaled[2] > scaled[1] > scaled[0] == best
    assert history.losses[3] == 1.0, "the history is unchanged"
