"""Outcomes used as they arrive, and decisions taken together."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace

from cashmere.exceptions import InvalidParameterError, LookaheadError, StrategyError
from cashmere.records.cause import CauseKind
from cashmere.records.order import Order
from cashmere.records.trial import Outcome, Suggestion, TrialStatus
from cashmere.storage.store import RunStore
from cashmere.study import Study, run_digest, submitted_at_once

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})


def bowl(trial):
    loss = (trial.configuration["x"] - 0.3) ** 2 + (trial.configuration["y"] - 0.6) ** 2
    return Outcome(status=TrialStatus.SUCCESS, loss=loss, fold_losses=(loss,))


class Spy:
    """Notes which outcomes and open trials it sees, and for how many decisions."""

    decides_in_batches = True

    def __init__(self):
        self.looks = []

    def suggest(self, history, rng):
        return self.suggest_batch(history, rng, 1)[0]

    def suggest_batch(self, history, rng, n):
        shown, pending = [o.trial.number for o in history], [trial.number for trial in history.pending]
        self.looks.append((shown, pending, n))
        points = rng.random((n, 2)).tolist()
        return [Suggestion(configuration=Configuration(SPACE, values={"x": x, "y": y})) for x, y in points]


def run_in_any_order(study, n_trials, *, n_open, seed):
    """Tell outcomes of open trials in random order."""
    rng, running = np.random.default_rng(seed), []
    while len(study.history) < n_trials:
        while len(running) < n_open and study.can_ask():
            running.append(study.ask())
        trial = running.pop(int(rng.integers(len(running))))
        study.tell(trial, bowl(trial))


# ---------------------------------------------------------------- as they arrive


def test_by_arrival_every_decision_sees_what_is_known_and_a_slow_trial_holds_up_nothing():
    study = Study(SPACE, spy := Spy(), lookahead=3, order="arrival")
    slow, other, third = study.ask(), study.ask(), study.ask()
    assert not study.can_ask()
    assert [o.trial.number for o in study.tell(third, bowl(third))] == [2]
    study.ask()
    assert [o.trial.number for o in study.tell(other, bowl(other))] == [1]
    for _ in range(10):
        trial = study.ask()
        study.tell(trial, bowl(trial))
    assert spy.looks[3:5] == [([2], [0, 1], 1), ([1, 2], [0, 3], 1)]
    assert [o.trial.number for o in study.tell(slow, bowl(slow))] == [0]
    assert [o.trial.number for o in study.history] == sorted(o.trial.number for o in study.history)


def test_by_arrival_the_lookahead_limits_the_open_trials():
    study = Study(SPACE, "random", lookahead=2, order=Order.ARRIVAL)
    study.ask(), study.ask()
    with pytest.raises(LookaheadError):
        study.ask()


def test_unknown_order_is_refused():
    with pytest.raises(InvalidParameterError, match="order must be 'trials' or 'arrival'"):
        Study(SPACE, "random", order="time")


@pytest.mark.parametrize("strategy", ["random", "bo"])
def test_resumed_by_arrival_nothing_is_lost_or_repeated(tmp_path, strategy):
    with RunStore(tmp_path) as store:
        study = Study(SPACE, strategy, lookahead=4, order="arrival", store=store)
        study.ask()  # never ends: the process is killed
        told = [study.ask() for _ in range(3)]
        for trial in told:
            study.tell(trial, bowl(trial))
    ran = []

    def noting(trial):
        ran.append(trial.number)
        return bowl(trial)

    with RunStore(tmp_path) as store:
        study = Study(SPACE, strategy, lookahead=4, order="arrival", store=store)
        history = study.optimize(noting, "8trials")
        assert ran == [0, 4, 5, 6, 7]
        assert [o.trial.key for o in history][1:4] == [trial.key for trial in told]
        assert len({o.trial.key for o in history}) == 8


class Sleepers:
    """An executor whose first trial never ends; the others end at once."""

    n_workers = 2

    def submit(self, objective, trial):
        future = Future()
        if trial.number > 0:
            future.set_result(objective(trial))
        return future

    def shutdown(self):
        pass


@pytest.mark.parametrize(("order", "statuses"), [("arrival", ["timeout", *["success"] * 5]), ("trials", [])])
def test_what_is_running_when_a_search_ends_hides_no_later_outcome_only_by_arrival(order, statuses):
    study = Study(SPACE, "random", lookahead=6, order=order)
    n_ticks = []
    study.optimize(
        bowl, "20trials", executor=Sleepers(), stop=lambda: len(n_ticks) > 4, on_tick=lambda: n_ticks.append(1)
    )
    study.keep_unfinished()
    assert [o.status.value for o in study.history][:6] == statuses
    if statuses:
        assert study.history[0].error.kind is CauseKind.SEARCH_ENDED


# ---------------------------------------------------------------- decided together


def test_below_a_lookahead_of_64_every_decision_is_taken_alone():
    study = Study(SPACE, spy := Spy(), lookahead=63)
    run_in_any_order(study, 70, n_open=63, seed=0)
    assert {n for _, _, n in spy.looks} == {1}


def test_an_eighth_of_the_lookahead_is_decided_from_what_the_first_trial_is_shown():
    warm_start = [SPACE.sample_configuration() for _ in range(3)]
    study = Study(SPACE, spy := Spy(), lookahead=64, warm_start=warm_start)
    run_in_any_order(study, 90, n_open=64, seed=0)
    firsts = [3 + 8 * k for k in range(len(spy.looks))]
    assert firsts[-1] in range(90 - 8, 90 + 64)
    for first, (shown, pending, n) in zip(firsts, spy.looks, strict=True):
        n_shown = max(0, first - 64 + 1)
        assert (shown, pending, n) == (list(range(n_shown)), list(range(n_shown, first)), 8)


@pytest.mark.parametrize("strategy", ["random", "bo:n_global=50,n_local=5"])
def test_run_decided_together_does_not_depend_on_the_order_of_outcomes(strategy):
    digests = set()
    for n_open, seed in [(1, 0), (64, 1), (20, 2)]:
        study = Study(SPACE, strategy, seed=5, lookahead=64)
        run_in_any_order(study, 100, n_open=n_open, seed=seed)
        digests.add(run_digest(study.history[:100]))
    assert len(digests) == 1


@pytest.mark.parametrize("n_before", [66, 72, 77])
def test_run_decided_together_is_resumed_from_the_middle_of_a_batch(tmp_path, n_before):
    whole = Study(SPACE, "bo:n_global=50,n_local=5", seed=3, lookahead=64)
    run_in_any_order(whole, 90, n_open=1, seed=0)
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "bo:n_global=50,n_local=5", seed=3, lookahead=64, store=store)
        run_in_any_order(study, n_before, n_open=1, seed=0)
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "bo:n_global=50,n_local=5", seed=3, lookahead=64, store=store)
        run_in_any_order(study, 90, n_open=10, seed=1)
        assert run_digest(study.history[:90]) == run_digest(whole.history[:90])


def test_batch_of_another_size_is_refused():
    class Short(Spy):
        def suggest_batch(self, history, rng, n):
            return super().suggest_batch(history, rng, n - 1)

    with pytest.raises(StrategyError, match="was asked for 8 suggestions and returned 7"):
        Study(SPACE, Short(), lookahead=64).ask()


def test_more_trials_are_submitted_ahead_the_more_workers_there_are():
    assert [submitted_at_once(n) for n in (1, 4, 7, 8, 256)] == [2, 5, 8, 10, 320]
