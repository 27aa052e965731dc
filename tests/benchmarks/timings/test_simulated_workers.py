from __future__ import annotations

import pytest
from ConfigSpace import ConfigurationSpace

from benchmarks.timings.simulated_workers import SimulatedClock, SimulatedWorkers
from cashmere.records.trial import Outcome, TrialStatus
from cashmere.study import Study, submitted_at_once

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})


def simulated(study, n_workers, n_trials, seconds_of):
    """Run a study on simulated workers; return them."""

    def is_idle():
        return workers.has_all or workers.n_open >= submitted_at_once(n_workers) or not study.can_ask()

    def outcome_of(trial):
        return Outcome(status=TrialStatus.SUCCESS, loss=trial.configuration["x"])

    workers = SimulatedWorkers(
        n_workers, n_trials, SimulatedClock(), seconds_of=seconds_of, outcome_of=outcome_of, is_idle=is_idle
    )
    study.optimize(outcome_of, f"{n_trials}trials", executor=workers, on_tick=workers.tick)
    return workers


def test_trials_take_simulated_time_and_workers_are_busy():
    workers = simulated(Study(SPACE, "random", lookahead=8), 4, 40, lambda trial: 1000.0)
    assert len(workers.spans) == 40
    assert workers.clock.elapsed == pytest.approx(10_000.0, rel=0.05)
    assert workers.clock.working < 100.0
    assert workers.utilisation() > 0.95
    for time in (500.0, 5500.0, 9000.0):
        assert sum(begin <= time < end for begin, end in workers.spans) <= 4


@pytest.mark.parametrize(("order", "is_held_up"), [("trials", True), ("arrival", False)])
def test_slow_trial_delays_the_others_only_in_the_order_of_trials(order, is_held_up):
    study = Study(SPACE, "random", lookahead=8, order=order)
    workers = simulated(study, 4, 60, lambda trial: 100_000.0 if trial.number == 5 else 1000.0)
    late = sum(begin >= 100_000.0 for begin, _ in workers.spans)
    assert (late > 20) == is_held_up
    assert len(study.history) == 60
