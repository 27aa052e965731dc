from __future__ import annotations

import math
import pickle
import subprocess
import sys
import time
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace
from threadpoolctl import threadpool_info, threadpool_limits

from cashmere.exceptions import (
    ClusterError,
    InconsistentResumeError,
    InvalidParameterError,
    LookaheadError,
    StrategyError,
    UnknownNameError,
    UsageError,
)
from cashmere.execution.in_process import InProcessExecutor, run_trial
from cashmere.execution.limits import Limits
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.origin import OriginKind
from cashmere.records.trial import Outcome, Suggestion, TrialStatus
from cashmere.records.work_budget import WorkBudget
from cashmere.storage.store import RunStore
from cashmere.study import Study, run_digest
from contracts.executor_contract import Checkpointing

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})


def bowl(trial):
    x, y = trial.configuration["x"], trial.configuration["y"]
    if y > 0.9:
        raise ValueError("too high")
    loss = (x - 0.3) ** 2 + (y - 0.6) ** 2
    return Outcome(status=TrialStatus.SUCCESS, loss=loss, fold_losses=(loss,), predictions=np.float32([x, y]))


def slow_bowl(trial):
    time.sleep(0.02 + 0.15 * (trial.number % 3 == 0))
    return bowl(trial)


@pytest.mark.parametrize("strategy", [pytest.param("random", marks=pytest.mark.slow), "bo"])
def test_same_seed_gives_the_same_digest_for_1_2_and_4_workers(strategy):
    digests = set()
    for n_workers in (1, 2, 4):
        executor = WorkerProcessExecutor(n_workers, limits=Limits(seconds=20), n_threads=1)
        try:
            study = Study(SPACE, strategy, seed=5, lookahead=4)
            digests.add(run_digest(study.optimize(slow_bowl, "24trials", executor=executor)))
        finally:
            executor.shutdown()
    assert len(digests) == 1


class FourAtOnce:
    """An executor whose trials finish four at a time; the last of `n_trials` is lost with its cluster."""

    n_workers = 4

    def __init__(self, n_trials=math.inf):
        self.n_trials = n_trials
        self._waiting = []

    def submit(self, objective, trial):
        self._waiting.append((trial, Future()))
        future = self._waiting[-1][1]
        if len(self._waiting) == 4:
            for trial, each in self._waiting:
                if trial.number + 1 < self.n_trials:
                    each.set_result(run_trial(objective, trial))
                else:
                    each.set_exception(ClusterError("tcp://nowhere", "lost"))
            self._waiting.clear()
        return future

    def shutdown(self):
        pass


def test_outcomes_that_come_together_are_stored_together_and_the_run_is_the_same(tmp_path):
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "bo", seed=5, lookahead=4, store=store)
        history = study.optimize(bowl, "8trials", executor=FourAtOnce())
        stored_at = [o.finished_at for o in store.load(SPACE).values()]
    assert len(set(stored_at[:4])) == len(set(stored_at[4:])) == 1
    assert run_digest(history) == run_digest(Study(SPACE, "bo", seed=5, lookahead=4).optimize(bowl, "8trials"))


def test_what_has_finished_is_stored_although_the_cluster_is_lost(tmp_path):
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "random", lookahead=4, store=store)
        with pytest.raises(ClusterError):
            study.optimize(bowl, "8trials", executor=FourAtOnce(n_trials=4))
        assert list(store.load(SPACE)) == [0, 1, 2]


def test_other_seed_gives_another_run():
    first, second = (run_digest(Study(SPACE, "random", seed=s).optimize(bowl, "5trials")) for s in (0, 1))
    assert first != second


def test_strategy_sees_exactly_the_outcomes_the_lookahead_allows():
    seen = []

    class Spy:
        def suggest(self, history, rng):
            from cashmere.records.trial import Suggestion

            seen.append((len(history), len(history.pending)))
            return Suggestion(configuration=SPACE.sample_configuration())

    Study(SPACE, Spy(), lookahead=3).optimize(bowl, "8trials")
    assert seen == [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (3, 2), (4, 2), (5, 2)]


def test_more_workers_than_lookahead_is_refused():
    executor = WorkerProcessExecutor(2)
    try:
        with pytest.raises(LookaheadError, match="has 2 workers, but the lookahead of the study is 1") as caught:
            Study(SPACE, "random").optimize(bowl, "3trials", executor=executor)
    finally:
        executor.shutdown()
    assert (caught.value.lookahead, caught.value.n_open) == (1, 2)


def test_asking_beyond_the_lookahead_is_refused():
    study = Study(SPACE, "random", lookahead=2)
    study.ask(), study.ask()
    with pytest.raises(LookaheadError, match="trial 0 has no outcome yet, and the lookahead is 2") as caught:
        study.ask()
    assert (caught.value.lookahead, caught.value.n_open, caught.value.instance) == (2, 2, study)


class InPairs:
    """Decides the two trials of a pair from the outcomes of all earlier pairs, for which it must wait."""

    def suggest(self, history, rng):
        number = len(history.trials)
        if len(history) < number - number % 2:
            return None
        before = sum(o.loss for o in history[: number - number % 2])
        return Suggestion(configuration=Configuration(SPACE, values={"x": (0.37 * number + before) % 1, "y": 0.5}))


def test_strategy_that_waits_makes_the_same_run_with_any_lookahead_and_workers():
    digests = {run_digest(Study(SPACE, InPairs(), lookahead=q).optimize(bowl, "11trials")) for q in (1, 2, 3, 8)}
    executor = WorkerProcessExecutor(2)
    try:
        study = Study(SPACE, InPairs(), lookahead=8)
        digests.add(run_digest(study.optimize(bowl, "11trials", executor=executor)))
    finally:
        executor.shutdown()
    assert len(digests) == 1


def test_strategy_that_waits_is_shown_one_more_outcome_at_a_time():
    seen = []

    class Spy(InPairs):
        def suggest(self, history, rng):
            seen.append((len(history), len(history.pending)))
            return super().suggest(history, rng)

    study = Study(SPACE, Spy(), lookahead=4)
    trials = [study.ask(), study.ask()]
    assert not study.can_ask()
    with pytest.raises(UsageError, match="more outcomes"):
        study.ask()
    for trial in reversed(trials):
        study.tell(trial, run_trial(bowl, trial))
    assert study.can_ask() and study.can_ask()
    assert seen == [(0, 0), (0, 1), (0, 2), (1, 1), (2, 0)]


def test_strategy_that_never_decides_is_an_error():
    class Mute:
        def suggest(self, history, rng):
            return None

    with pytest.raises(StrategyError, match="returned None for trial 0"):
        Study(SPACE, Mute()).optimize(bowl, "3trials")


OTHER = ConfigurationSpace({"z": (0.0, 1.0)})
WIDER = ConfigurationSpace({"x": (0.0, 10.0), "y": (0.0, 10.0)})


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (SPACE.get_default_configuration(), "of the type Configuration for trial 0. .* must return a Suggestion"),
        ({"x": 0.1, "y": 0.2}, "of the type dict for trial 0"),
        (Suggestion(configuration=OTHER.get_default_configuration()), "another space for trial 0: .* has no 'z'"),
        (Suggestion(configuration=5), "Fixed returned a configuration of the type int for trial 0"),
        (Suggestion(configuration={"x": 7.0, "y": 0.2}), r"trial 0 that is not in the space: 'x' is 7.0 \(.*Range"),
        (Suggestion(configuration={"x": "a", "y": 0.2}), "not in the space: 'x' is 'a'"),
        (Suggestion(configuration={"x": 0.1}), "not in the space: Hyperparameter is active but has no value"),
        (Suggestion(configuration=Configuration(WIDER, values={"x": 8.0, "y": 0.2})), "'x' is 8.0"),
    ],
)
def test_what_is_no_suggestion_in_the_space_is_an_error(returned, text):
    class Fixed:
        def __init__(self, space):
            pass

        def suggest(self, history, rng):
            return returned

    with pytest.raises(StrategyError, match=text):
        Study(SPACE, Fixed).ask()


def test_values_of_the_space_need_no_configuration():
    class Plain:
        def suggest(self, history, rng):
            return Suggestion(configuration={"x": 0.25, "y": 0.5})

    trial = Study(SPACE, Plain()).ask()
    assert trial.configuration == Configuration(SPACE, values={"x": 0.25, "y": 0.5})


def test_error_of_a_strategy_says_which_trial_it_was_deciding():
    class Broken:
        def suggest(self, history, rng):
            raise ZeroDivisionError("boom")

    with pytest.raises(ZeroDivisionError, match="boom") as caught:
        Study(SPACE, Broken()).ask()
    assert caught.value.__notes__ == ["Broken was deciding trial 0."]


def test_objective_that_always_fails_is_told():
    study = Study(SPACE, "random", seed=1)
    with pytest.warns(UserWarning, match="All 3 trials have failed. The last: KeyError: 'nope'$"):
        study.optimize(lambda trial: trial.configuration["nope"], "3trials")
    with pytest.raises(InvalidParameterError, match="trial must be a Trial that ask"):
        study.tell(0, 0.3)
    with pytest.raises(InvalidParameterError, match="objective must be a function from a Trial"):
        study.optimize(3, "3trials")


def test_history_as_a_frame():
    def objective(trial):
        if trial.number == 1:
            raise ValueError("no\nluck")
        return trial.configuration["x"]

    history = Study(SPACE, "random", seed=1).optimize(objective, "3trials")
    frame = history.frame()
    assert frame["trial"].tolist() == [0, 1, 2]
    assert frame["status"].tolist() == ["success", "error", "success"]
    np.testing.assert_array_equal(frame["loss"].isna(), [False, True, False])
    assert frame["param_x"].tolist() == [o.trial.configuration["x"] for o in history]
    assert frame["loss"][0] == frame["param_x"][0] and frame["error"][1] == "ValueError: no"
    assert frame["finished_at"].is_monotonic_increasing
    assert Study(SPACE, "random").history.frame().empty


def test_class_that_does_not_take_the_space_is_an_error():
    class Without:
        def suggest(self, history, rng):
            return None

    with pytest.raises(StrategyError, match=r"Without cannot be made from a space .*first parameter of its __init__"):
        Study(SPACE, Without)


@pytest.mark.parametrize(
    ("space", "options", "text"),
    [
        ({"x": (0.0, 1.0)}, {}, "space must be a ConfigSpace"),
        (SPACE, {"seed": "1"}, "seed must be a whole number"),
        (SPACE, {"seed": -1}, "seed must be a whole number"),
        (SPACE, {"metric": "brier"}, "metric must be a Metric.*get_metric"),
        (SPACE, {"warm_start": [{"x": 0.5}]}, "warm_start must be configurations.*makes one from a dict"),
    ],
)
def test_what_no_study_can_be_made_of_is_refused(space, options, text):
    with pytest.raises(InvalidParameterError, match=text):
        Study(space, "random", **options)


def test_history_has_the_plan_of_the_study(tmp_path):
    seen = []

    class Spy:
        def suggest(self, history, rng):
            seen.append(history.budget)
            return Suggestion(configuration=SPACE.sample_configuration())

    Study(SPACE, Spy()).ask()
    for trials in (2, 4):  # the plan of the first call stays
        with RunStore(tmp_path) as store:
            Study(SPACE, Spy(), store=store).optimize(bowl, f"{trials}trials")
    assert seen == [None] + 4 * [WorkBudget(trials=2)]
    study = Study(SPACE, Spy(), plan=WorkBudget(worker_seconds=1 / 3))
    study.optimize(bowl, "1trials")
    assert study.history.budget == WorkBudget.from_text(str(WorkBudget(worker_seconds=1 / 3)))
    study = Study(SPACE, Spy())
    study.optimize(bowl, "0.1s")
    assert 0.09 < study.history.budget.worker_seconds <= 0.1


def test_outcomes_told_out_of_order_are_committed_in_order():
    study = Study(SPACE, "random", lookahead=3)
    trials = [study.ask() for _ in range(3)]
    assert study.tell(trials[2], run_trial(bowl, trials[2])) == []
    assert study.tell(trials[1], run_trial(bowl, trials[1])) == []
    assert [o.trial.number for o in study.tell(trials[0], run_trial(bowl, trials[0]))] == [0, 1, 2]


@pytest.mark.parametrize("order", ["trials", "arrival"])
@pytest.mark.parametrize("is_stored", [False, True])
def test_trials_are_told_once(tmp_path, order, is_stored):
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "random", lookahead=3, order=order, store=store if is_stored else None)
        trials = [study.ask() for _ in range(3)]
        for trial in (trials[0], trials[2]):
            study.tell(trial, run_trial(bowl, trial))
            with pytest.raises(UsageError, match=f"trial {trial.number}, which already has an outcome"):
                study.tell(trial, run_trial(bowl, trial))
        outcome = run_trial(bowl, trials[1])
        with pytest.raises(UsageError, match="trial 1, which already has"):
            study.tell_all([(trials[1], outcome), (trials[1], outcome)])
        study.tell(trials[1], outcome)
        assert [o.trial.number for o in study.history] == [0, 1, 2]


def test_trials_that_were_not_asked_for_cannot_be_told():
    study, other = Study(SPACE, "random"), Study(SPACE, "random", seed=1)
    trial = other.ask()
    for _ in range(2):
        with pytest.raises(UsageError, match="trial 0, but this study is not waiting for it"):
            study.tell(trial, run_trial(bowl, trial))
        if study.can_ask():
            study.ask()  # a trial of the same number, but of another configuration


@pytest.mark.parametrize("order", ["trials", "arrival"])
def test_resumed_study_asks_only_for_trials_without_an_outcome(tmp_path, order):
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "random", lookahead=4, order=order, store=store)
        trials = [study.ask() for _ in range(4)]
        for k in (0, 2, 3):
            study.tell(trials[k], run_trial(bowl, trials[k]))
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "random", lookahead=4, order=order, store=store)
        asked = []
        while study.can_ask():
            asked.append(study.ask())
        assert asked[0].number == 1
        assert {trial.number for trial in asked}.isdisjoint({0, 2, 3})
        for trial in asked:
            study.tell(trial, run_trial(bowl, trial))
        assert [o.trial.number for o in study.history] == list(range(3 + len(asked)))
        assert [o.trial.key for o in study.history][2:4] == [trial.key for trial in trials[2:]]


@pytest.mark.parametrize("prefix", [0, 1, 5, 11, 12])
def test_resume_after_any_prefix_equals_the_uninterrupted_run(tmp_path, prefix):
    whole = run_digest(Study(SPACE, "bo", seed=3, lookahead=4).optimize(bowl, "12trials"))
    with RunStore(tmp_path) as store:
        if prefix:
            Study(SPACE, "bo", seed=3, lookahead=4, store=store).optimize(bowl, f"{prefix}trials")
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "bo", seed=3, lookahead=4, store=store)
        assert len(study.history) == prefix
        assert run_digest(study.optimize(bowl, "12trials")) == whole


def test_trial_stored_ahead_of_its_turn_is_neither_lost_nor_repeated(tmp_path):
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "random", seed=3, lookahead=4, store=store)
        trials = [study.ask() for _ in range(4)]
        for k in (0, 2, 3):  # killed while trial 1 was still running
            study.tell(trials[k], run_trial(bowl, trials[k]))
    runs = []

    def counting(trial):
        runs.append(trial.number)
        return bowl(trial)

    with RunStore(tmp_path) as store:
        history = Study(SPACE, "random", seed=3, lookahead=4, store=store).optimize(counting, "6trials")
    assert sorted(runs) == [1, 4, 5]
    assert run_digest(history) == run_digest(Study(SPACE, "random", seed=3, lookahead=4).optimize(bowl, "6trials"))


def test_stored_trial_that_does_not_fit_the_decisions_is_found(tmp_path):
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "random", seed=3, lookahead=4, store=store)
        trials = [study.ask() for _ in range(3)]
        study.tell(trials[2], run_trial(bowl, trials[2]))
    with RunStore(tmp_path) as store, pytest.raises(InconsistentResumeError, match="trial 2"):
        Study(SPACE, "random", seed=4, lookahead=4, store=store).optimize(bowl, "6trials")


def test_aborted_outcome_is_not_an_observation():
    study = Study(SPACE, "random")
    trial = study.ask()
    assert study.tell(trial, Outcome(status=TrialStatus.ABORTED)) == []
    assert len(study.history) == 0


def test_losses_alone_are_returned_and_told():
    study = Study(SPACE, "random", lookahead=2)
    first, second = study.ask(), study.ask()
    assert [told.loss for told in study.tell(first, 0.5)] == [0.5]
    assert study.tell(second, float("nan"))[0].outcome.error.kind is CauseKind.NOT_FINITE
    assert study.optimize(lambda trial: trial.number, "5trials").losses[2:].tolist() == [2, 3, 4]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("loss", [float("inf"), "low", None])
def test_told_outcome_that_cannot_be_stored_is_a_failure(loss, together, tmp_path):
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "random", store=store)
        trial, outcome = study.ask(), Outcome(status=TrialStatus.SUCCESS, loss=loss)
        (told,) = study.tell_all([(trial, outcome)]) if together else study.tell(trial, outcome)
    assert told.status is TrialStatus.ERROR
    with RunStore(tmp_path, read_only=True) as store:
        assert store.load(SPACE)[0].status is TrialStatus.ERROR


def test_stop_ends_a_loop_without_a_budget_and_leaves_the_study_unplanned():
    seen = []
    study = Study(SPACE, "random")
    study.optimize(
        bowl, None, stop=lambda: len(seen) >= 3, callback=lambda study, observation: seen.append(observation)
    )
    assert len(study.history) == 3
    assert study.history.budget is None


def test_time_budget_ends_the_loop():
    start = time.perf_counter()
    history = Study(SPACE, "random").optimize(slow_bowl, "1s")
    assert 0.9 < time.perf_counter() - start < 2
    assert len(history) > 3


def test_nothing_is_decided_that_would_take_longer_than_the_time_left():
    asked = []

    class Slow:
        def suggest(self, history, rng):
            asked.append(time.perf_counter())
            time.sleep(0.4)
            return Suggestion(configuration=SPACE.sample_configuration())

    start = time.perf_counter()
    history = Study(SPACE, Slow()).optimize(bowl, "1.3s")
    assert time.perf_counter() - start < 1.3 + 0.3
    assert len(asked) == len(history) == 2  # the third would have fitted only on an idle machine


@pytest.mark.parametrize("order", ["trials", "arrival"])
def test_interrupted_search_is_continued_by_the_next_call(order):
    undisturbed = run_digest(Study(SPACE, "random", seed=2).optimize(bowl, "8trials"))
    numbers = []

    def interrupted(trial):
        numbers.append(trial.number)
        if len(numbers) == 4:
            raise KeyboardInterrupt
        return bowl(trial)

    study = Study(SPACE, "random", seed=2, order=order)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(interrupted, "8trials")
    assert len(study.history) == 3
    assert run_digest(study.optimize(interrupted, "8trials")) == undisturbed
    assert numbers == [0, 1, 2, 3, 3, 4, 5, 6, 7]


def test_outcome_that_comes_too_late_to_be_written_is_decided_again(tmp_path):
    ran = []

    def large(trial):
        ran.append(trial.number)
        return Outcome(status=TrialStatus.SUCCESS, loss=1.0, model=bytes(64 * 2**20))

    with RunStore(tmp_path, new=True) as store:
        study = Study(SPACE, "random", store=store)
        late = study.optimize(large, None, seconds_left=lambda: 0.1 if ran else 60.0)
        assert (ran, len(late), store.rows()) == ([0], 0, [])
        assert len(study.optimize(large, "1trials")) == 1


KILLED_BEFORE_ITS_FIRST_TRIAL_ENDS = """
import os, sys, time
from ConfigSpace import ConfigurationSpace
from cashmere.study import study
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.storage.store import RunStore

def endless(trial):
    time.sleep(1000)

def end():
    if searched.elapsed > 102:
        os._exit(9)

study._FORGOTTEN_SECONDS = 0.5
with RunStore(sys.argv[1]) as store:
    searched = study.Study(ConfigurationSpace({"x": (0.0, 1.0)}), "random", store=store, already_spent=100)
    searched.optimize(endless, "1h", executor=WorkerProcessExecutor(1), on_tick=end)
"""


@pytest.mark.long
def test_time_before_a_kill_counts_even_if_no_trial_had_ended(tmp_path):
    code = subprocess.run([sys.executable, "-c", KILLED_BEFORE_ITS_FIRST_TRIAL_ENDS, str(tmp_path)]).returncode
    assert code == 9
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "random", store=store)
        assert not study.history
        assert study.elapsed >= 101.4


def test_warm_start_comes_first():
    first = SPACE.sample_configuration(2)
    history = Study(SPACE, "random", warm_start=first).optimize(bowl, "4trials")
    assert [o.trial.configuration for o in history[:2]] == list(first)
    assert [str(o.trial.origin) for o in history[:2]] == ["warm start"] * 2


def test_failure_gets_its_substitute_loss_in_one_place():
    history = Study(SPACE, "random", seed=0, baseline_loss=0.7).optimize(bowl, "40trials")
    assert history.failures
    worst = max(0.7, *(o.loss for o in history.successes))
    assert {history.losses[o.trial.number] for o in history.failures} == {worst}


def test_study_whose_search_was_interrupted_is_pickled():
    study = Study(SPACE, "random")

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.optimize(bowl, "6trials", stop=stop)
    assert len(pickle.loads(pickle.dumps(study)).history) == 0


def test_study_is_pickled_without_its_store(tmp_path):
    with RunStore(tmp_path) as store:
        study = Study(SPACE, "bo", seed=3, store=store)
        study.optimize(bowl, "6trials")
        copy = pickle.loads(pickle.dumps(study))
    assert run_digest(copy.history) == run_digest(study.history)
    np.testing.assert_array_equal(copy.history.successes[0].predictions, study.history.successes[0].predictions)


def test_unknown_strategy_gets_the_nearest_names():
    with pytest.raises(UnknownNameError, match="'random'"):
        Study(SPACE, "randm")


def test_callback_sees_every_observation_in_order():
    numbers = []
    Study(SPACE, "random", lookahead=3).optimize(
        bowl, "7trials", callback=lambda study, observation: numbers.append(observation.trial.number)
    )
    assert numbers == list(range(7))


def test_strategies_decide_with_one_blas_thread_and_objectives_keep_theirs():
    seen = []

    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    class Watching:
        def suggest(self, history, rng):
            seen.append(threads())
            return Suggestion(configuration=space.sample_configuration())

    def objective(trial):
        seen.append(threads())
        return Outcome(status=TrialStatus.SUCCESS, loss=0.0)

    space = ConfigurationSpace({"x": (0.0, 1.0)}, seed=0)
    with threadpool_limits(2, user_api="blas"):
        Study(space, Watching()).optimize(objective, "1trials")
    assert seen == [{1}, {2}]


# ------------------------------------------------------------ budgets of time

DEAR_SPACE = ConfigurationSpace({"algorithm": ["dear", "middling", "cheap"], "x": (0.0, 1.0)})
SECONDS = {"dear": 100.0, "middling": 10.0, "cheap": 1.0}


def priced(trial):
    """Answer at once, but report a long duration."""
    x, seconds = trial.configuration["x"], SECONDS[trial.configuration["algorithm"]]
    return Outcome(status=TrialStatus.SUCCESS, loss=abs(x - 0.3), fold_losses=(0.0,), duration_seconds=seconds)


def one_of_each(x=0.5):
    return [Configuration(DEAR_SPACE, values={"algorithm": name, "x": x}) for name in DEAR_SPACE["algorithm"].choices]


def timed_study(**options):
    return Study(DEAR_SPACE, options.pop("strategy", "bo"), plan=WorkBudget(worker_seconds=1000.0), **options)


def run_trials(study, n):
    for _ in range(n):
        study.tell(trial := study.ask(), priced(trial))


def test_share_of_time_left_follows_from_recorded_seconds():
    study = timed_study(warm_start=one_of_each())
    assert study.history.time_left.share == 1.0
    run_trials(study, 3)
    assert study.history.time_left.share == pytest.approx(1 - 111 / 1000, abs=1e-3)


@pytest.mark.parametrize("plan", [WorkBudget(trials=10), WorkBudget(trials=10, worker_seconds=1000.0)])
def test_with_a_number_of_trials_costs_do_not_count(plan):
    study = Study(DEAR_SPACE, "bo", plan=plan, warm_start=one_of_each())
    assert study.history.time_left is None
    run_trials(study, 3)
    assert [o.trial.configuration["algorithm"] for o in study.history] == ["dear", "middling", "cheap"]
    assert study.fit_into(0.001)


def test_warm_start_continues_with_what_is_cheapest_by_now():
    study = timed_study(warm_start=[*one_of_each(0.1), *one_of_each(0.9)])
    run_trials(study, 6)
    names = [o.trial.configuration["algorithm"] for o in study.history]
    assert sorted(names) == sorted([*SECONDS, *SECONDS])
    first = {name: names.index(name) for name in SECONDS}
    assert names[3:] == sorted(names[3:], key=SECONDS.get) or first["dear"] == max(first.values())
    assert all(o.trial.origin.kind is OriginKind.WARM_START for o in study.history)


def test_gains_of_a_warm_start_are_weighed_against_seconds():
    first = dict(zip(one_of_each(), [1e6, 1.0, 10.0], strict=True))
    run_trials(study := timed_study(warm_start=first), 3)
    assert [o.trial.configuration["algorithm"] for o in study.history] == ["dear", "cheap", "middling"]
    run_trials(study := Study(DEAR_SPACE, "bo", plan=WorkBudget(trials=3), warm_start=first), 3)
    assert [o.trial.configuration for o in study.history] == list(first)


def test_resuming_under_a_budget_of_time_equals_the_uninterrupted_run(tmp_path):
    with RunStore(tmp_path / "whole") as store:
        run_trials(study := timed_study(seed=3, warm_start=one_of_each(), store=store), 12)
        whole = run_digest(study.history)
    with RunStore(tmp_path / "part") as store:
        run_trials(timed_study(seed=3, warm_start=one_of_each(), store=store), 5)
    with RunStore(tmp_path / "part") as store:
        run_trials(study := timed_study(seed=3, warm_start=one_of_each(), store=store), 7)
        assert run_digest(study.history) == whole


@pytest.mark.parametrize(
    ("plan", "seconds", "kinds"),
    [
        (WorkBudget(worker_seconds=1000.0), 28.0, {OriginKind.RANDOM}),  # a quarter of 111 s is 27.75 s
        (WorkBudget(worker_seconds=1000.0), 27.0, {OriginKind.MODEL}),
        (WorkBudget(trials=10), 28.0, {OriginKind.MODEL}),
    ],
)
def test_decisions_take_no_more_than_their_share_of_a_budget_of_time(plan, seconds, kinds):
    study = Study(DEAR_SPACE, "bo:random_fraction=0,n_initial=1", plan=plan, warm_start=one_of_each())
    run_trials(study, 3)
    study.suggest_seconds[0] = seconds
    run_trials(study, 1)
    assert {study.history[3].trial.origin.kind} == kinds


def test_in_the_last_seconds_only_what_fits_is_started():
    study = timed_study(warm_start=one_of_each(), strategy="random")
    run_trials(study, 9)
    for _ in range(5):
        assert study.fit_into(4.0)
        trial = study.ask()
        assert trial.configuration["algorithm"] == "cheap"
        study.tell(trial, priced(trial))
    assert OriginKind.LAST_SECONDS in {o.trial.origin.kind for o in study.history}
    assert not study.fit_into(0.05)
    assert not study.fit_into(0.04)
    assert not study.fit_into(0.04, has_checkpoints=lambda configuration: True)  # too short for any result
    assert study.fit_into(1000.0)


class OneIsFree(InProcessExecutor):
    """Two workers, one of which is busy with the second trial forever; the others end at once."""

    n_workers = 2

    def __init__(self):
        self.numbers = []

    def submit(self, objective, trial):
        self.numbers.append(trial.number)
        return Future() if trial.number == 1 else super().submit(objective, trial)


def test_loop_leaves_a_free_worker_to_what_waits_for_it():
    study, executor = timed_study(warm_start=one_of_each(), strategy="random", lookahead=4), OneIsFree()
    study.optimize(
        priced,
        None,
        executor=executor,
        seconds_left=lambda: 1000.0 if len(executor.numbers) < 4 else 0.01,
        others_wait=lambda: True,
    )
    assert executor.numbers == [0, 1, 2, 3]
    assert study.n_running == 1


@pytest.mark.parametrize("others_wait", [True, False])
def test_no_decision_is_replaced_by_a_shorter_one_while_others_wait(others_wait):
    study = timed_study(warm_start=one_of_each(), strategy="random")
    run_trials(study, 9)
    history = study.optimize(
        priced,
        None,
        seconds_left=lambda: 4.0,  # dear and middling trials take longer
        others_wait=lambda: others_wait,
        stop=lambda: len(study.history) >= 20,
    )
    replaced = any(o.trial.origin.kind is OriginKind.LAST_SECONDS for o in history)
    assert (replaced, len(history) == 20) == (not others_wait, not others_wait)
    n_before = len(history)
    history = study.optimize(priced, None, seconds_left=lambda: 4.0, stop=lambda: len(study.history) > n_before)
    assert len(history) > n_before  # once nothing waits any longer, shorter trials use the rest of the time


def test_loop_ends_when_nothing_more_would_end_in_time():
    study = timed_study(warm_start=one_of_each(), strategy="random")
    history = study.optimize(priced, None, seconds_left=lambda: 1000.0 if len(study.history) < 4 else 0.01)
    assert len(history) == 4


def test_resumed_study_takes_what_the_clock_decided_as_it_is_stored(tmp_path):
    with RunStore(tmp_path) as store:
        study = timed_study(warm_start=one_of_each(), strategy="random", lookahead=4, store=store)
        run_trials(study, 9)
        late = study.ask()  # never ends
        decided = []
        for _ in range(2):
            assert study.fit_into(4.0)
            decided.append(study.ask())
            study.tell(decided[-1], priced(decided[-1]))
    with RunStore(tmp_path) as store:
        study = timed_study(warm_start=one_of_each(), strategy="random", lookahead=4, store=store)
        again = study.ask()
        assert again.key == late.key
        assert study.fit_into(4.0)
        assert study.ask().configuration["algorithm"] == "cheap"
        assert [o.trial.key for o in study.history][-2:] == [trial.key for trial in decided]
        study.tell(again, priced(again))
        assert len(study.history) == 12


@pytest.mark.parametrize(
    ("shape", "is_first"),
    [((3, 2), True), ((5, 2), True), ((3, 2), False), ((5, 2), False), ((4,), False), ((4, 3), False)],
)
def test_predictions_for_other_rows_or_classes_are_a_failure(tmp_path, shape, is_first):
    def predicted(trial, shape):
        return replace(bowl_at_share(trial), predictions=np.ones(shape, dtype=np.float32))

    with RunStore(tmp_path) as store:
        study = Study(SPACE, "random", seed=1, store=store, targets=np.zeros(4))
        if not is_first:
            study.tell(trial := study.ask(), predicted(trial, (4, 2)))
        study.tell(trial := study.ask(), predicted(trial, shape))
        study.tell(trial := study.ask(), predicted(trial, (4, 2)))
        hostile, good = study.history[-2:]
    assert (hostile.status, hostile.error.kind, hostile.loss) == (TrialStatus.ERROR, CauseKind.UNUSABLE, None)
    assert str(shape) in str(hostile.error)
    assert good.succeeded
    with RunStore(tmp_path) as store:  # all its predictions can be used together
        assert len(store.load(SPACE)) == 2 + (not is_first)


RUNGS = (1 / 9, 1 / 3, 1.0)


def bowl_at_share(trial):
    """A bowl that is worse with fewer rows."""
    loss = (trial.configuration["x"] - 0.3) ** 2 + 0.1 * (1 - trial.fidelity)
    return Outcome(status=TrialStatus.SUCCESS, loss=loss, fold_losses=(loss,))


def climb(strategy="random", *, store=None, n_trials=40, **options):
    study = Study(SPACE, strategy, seed=1, store=store, rungs=RUNGS, **options)
    return study.optimize(bowl_at_share, f"{n_trials}trials")


@pytest.mark.parametrize("strategy", ["random", "bo", "tpe", "rising_bandit"])
def test_best_configurations_climb_the_rungs(strategy):
    history = climb(strategy)
    by_rung = [{o.trial.key: o.loss for o in history if o.trial.fidelity == share} for share in RUNGS]
    assert 1 <= len(by_rung[2]) <= len(by_rung[1]) / 3
    assert len(by_rung[1]) <= len(by_rung[0]) / 3
    assert by_rung[2].keys() <= by_rung[1].keys() <= by_rung[0].keys()
    assert min(by_rung[0], key=by_rung[0].get) in by_rung[1]
    assert len({(o.trial.key, o.trial.fidelity) for o in history}) == len(history)


def test_strategies_see_every_configuration_once():
    class Watching:
        def __init__(self):
            self.seen = []

        def suggest(self, history, rng):
            self.seen.append(history)
            return Suggestion(configuration=SPACE.sample_configuration())

    watching = Watching()
    climb(watching, n_trials=15)
    for history in watching.seen:
        assert len({o.trial.key for o in history}) == len(history)


def test_configuration_that_may_not_have_all_rows_stays_below():
    history = climb(largest_share=lambda configuration: 1 / 3)
    assert {o.trial.fidelity for o in history} == {1 / 9, 1 / 3}


def test_climb_is_continued_where_it_was(tmp_path):
    with RunStore(tmp_path) as store:
        first = climb(store=store, n_trials=17)
    with RunStore(tmp_path) as store:
        history = climb(store=store, n_trials=30)
    assert [o.trial for o in history[:17]] == [o.trial for o in first]
    assert {o.trial.fidelity for o in history} == set(RUNGS)


def test_late_the_best_climbs_alone():
    study = Study(SPACE, "random", seed=1, rungs=RUNGS, plan=WorkBudget(worker_seconds=3.0))

    def slow(trial):
        return replace(bowl_at_share(trial), duration_seconds=1.5)

    for _ in range(3):
        trial = study.ask()
        study.tell(trial, slow(trial))
    assert [o.trial.fidelity for o in study.history] == list(RUNGS)


def test_trials_are_raced_against_those_on_as_many_rows():
    study = Study(SPACE, "random", seed=1, rungs=RUNGS, fold_racing="forgiving")
    for _ in range(3):
        trial = study.ask()
        study.tell(trial, bowl_at_share(trial))
    promoted = study.ask()
    assert promoted.fidelity == RUNGS[1]
    assert promoted.stop_above == np.inf


@pytest.mark.long
@pytest.mark.parametrize("plan", [WorkBudget(worker_seconds=100.0), WorkBudget(trials=10, worker_seconds=100.0)])
def test_trials_that_run_at_the_end_of_the_time_are_kept(plan, tmp_path):
    (told := tmp_path / "told").mkdir()

    def tell(trial):
        time.sleep(1.0)  # so that the coordinator reads what was sent
        (told / str(trial.number)).touch()
        time.sleep(60)

    objective = Checkpointing(bowl_at_share, tell)
    executor = WorkerProcessExecutor(2, n_threads=1)
    with RunStore(tmp_path / "run") as store:
        study = Study(SPACE, "random", seed=1, lookahead=2, store=store, plan=plan)
        try:
            study.optimize(objective, None, executor=executor, stop=lambda: len([*told.iterdir()]) == 2)
        finally:
            executor.shutdown()
        study.keep_unfinished()
        kept = [(o.trial.number, o.outcome.cut_short.kind) for o in study.history]
    expected = [(0, CauseKind.SEARCH_ENDED), (1, CauseKind.SEARCH_ENDED)] if plan.trials is None else []
    assert kept == expected
    assert [row["number"] for row in RunStore(tmp_path / "run", read_only=True).rows()] == [
        number for number, _ in kept
    ]
    assert study.ask().number == len(kept)


class Waiting:
    """An executor whose trials end when the test ends them."""

    n_workers = 4

    def __init__(self, n_trials):
        self.futures = [Future() for _ in range(n_trials)]

    def submit(self, objective, trial):
        return self.futures[trial.number]

    def end(self, number, loss):
        self.futures[number].set_result(Outcome(status=TrialStatus.SUCCESS, loss=loss))


def test_results_behind_a_trial_that_had_none_at_the_end_count(tmp_path):
    study = Study(SPACE, "random", seed=1, lookahead=4, plan=WorkBudget(worker_seconds=100.0))
    executor = Waiting(5)
    executor.end(2, 0.5)
    n_ticks = iter(range(100))
    study.optimize(bowl, None, executor=executor, stop=lambda: next(n_ticks) > 8)
    assert len(study.history) == 0
    cut = Cause(kind=CauseKind.SEARCH_ENDED)
    executor.futures[0].set_result(Outcome(status=TrialStatus.SUCCESS, loss=0.4, cut_short=cut))
    for number in (1, 3, 4):
        executor.futures[number].set_result(Outcome(status=TrialStatus.ABORTED, error=cut))
    study.keep_unfinished()
    assert [(o.status, o.loss) for o in study.history] == [
        (TrialStatus.SUCCESS, 0.4),
        (TrialStatus.TIMEOUT, None),
        (TrialStatus.SUCCESS, 0.5),
    ]
    assert study.ask().number == 3


def search_with_late_trials(study):
    """Search until two trials are running, another has ended behind them, and two are waiting."""
    executor = Waiting(5)
    executor.end(2, 0.5)
    n_ticks = iter(range(100))
    study.optimize(bowl, None, executor=executor, stop=lambda: next(n_ticks) > 8)
    for number in (0, 1):
        executor.futures[number].set_running_or_notify_cancel()
    study.cancel_waiting()
    return executor


def test_trials_that_end_after_the_search_count_at_once(tmp_path):
    with RunStore(tmp_path / "run") as store:
        study = Study(SPACE, "random", seed=1, lookahead=4, store=store, plan=WorkBudget(worker_seconds=100.0))
        executor = search_with_late_trials(study)
        assert not study.take_late(lambda: 100.0)
        executor.end(1, 0.4)
        assert study.take_late(lambda: 100.0)
        assert not study.take_late(lambda: 100.0)
        expected = [(1, 0.4), (2, 0.5)]
        assert [(o.trial.number, o.loss) for o in study.history] == expected
        assert study.n_running == 1
        executor.futures[0].set_result(Outcome(status=TrialStatus.ABORTED))
        study.keep_unfinished()
        assert [(o.trial.number, o.loss) for o in study.history] == [(0, None), *expected]
    rows = RunStore(tmp_path / "run", read_only=True).rows()
    assert [(row["number"], row["status"]) for row in rows] == [(0, "timeout"), (1, "success"), (2, "success")]


def test_trials_that_end_too_late_to_be_stored_are_decided_again():
    study = Study(SPACE, "random", seed=1, lookahead=4, plan=WorkBudget(worker_seconds=100.0))
    executor = search_with_late_trials(study)
    study.count_stored()
    executor.end(0, 0.4)
    assert not study.take_late(lambda: 0.0)
    executor.futures[1].set_result(Outcome(status=TrialStatus.ABORTED))
    study.keep_unfinished()
    assert [o.status.value for o in study.history] == ["timeout", "timeout", "success"]
    assert study.ask().number == 3


def test_in_the_order_of_trials_those_that_end_after_the_search_run_again():
    study = Study(SPACE, "random", seed=1, lookahead=4, plan=WorkBudget(trials=9))
    executor = Waiting(5)
    n_ticks = iter(range(100))
    study.optimize(bowl, None, executor=executor, stop=lambda: next(n_ticks) > 8)
    executor.end(0, 0.4)
    assert not study.take_late(lambda: 100.0)
    study.keep_unfinished()
    assert len(study.history) == 0
    assert study.ask().number == 0


@pytest.mark.parametrize("plan", [WorkBudget(worker_seconds=100.0), WorkBudget(trials=9)], ids=["time", "trials"])
def test_stored_results_count_although_an_earlier_trial_was_killed(plan, tmp_path):
    with RunStore(tmp_path / "run") as store:
        study = Study(SPACE, "random", seed=1, lookahead=6, store=store, plan=plan)
        trials = [study.ask() for _ in range(5)]
        study.tell_all([(trial, float(trial.number)) for trial in trials if trial.number != 1])
    with RunStore(tmp_path / "run") as store:  # trial 1 was running when the process was killed
        study = Study(SPACE, "random", seed=1, lookahead=6, store=store, plan=plan)
        assert [o.trial.number for o in study.history] == [0]
        assert study.n_counting == (4 if plan.trials is None else 1)
        study.count_stored()
        counted = [o.trial.number for o in study.history]
        assert counted == ([0, 2, 3, 4] if plan.trials is None else [0])
        repeated = study.ask()
        assert repeated.key == trials[1].key
        study.tell(repeated, 1.0)
        history = study.optimize(lambda trial: float(trial.number), "7trials")
        assert [o.trial.number for o in history] == list(range(7))
        assert [o.trial.key for o in history][:5] == [trial.key for trial in trials]


def test_trials_that_no_worker_has_begun_at_the_end_can_be_cancelled():
    study = Study(SPACE, "random", seed=1, lookahead=4, plan=WorkBudget(worker_seconds=100.0))
    executor = Waiting(5)
    for number in (0, 1):
        executor.futures[number].set_running_or_notify_cancel()
    n_ticks = iter(range(100))
    study.optimize(bowl, None, executor=executor, stop=lambda: next(n_ticks) > 8)
    assert study.n_running == 4
    study.cancel_waiting()
    assert study.n_running == 2
    executor.end(0, 0.4)
    assert study.n_running == 1
    executor.end(1, 0.5)
    study.keep_unfinished()
    assert [(o.trial.number, o.loss) for o in study.history] == [(0, 0.4), (1, 0.5)]


@pytest.mark.parametrize(
    ("plan", "visible"),
    [
        (WorkBudget(worker_seconds=100.0), [[], [], [1], [1, 2], *[[1, 2, 3]] * 3]),  # whatever has ended
        (WorkBudget(trials=9), [[], [], [], []]),  # trial 4 waits for trial 0
    ],
    ids=["time", "trials"],
)
def test_a_long_trial_hides_later_outcomes_only_under_a_budget_of_trials(plan, visible):
    seen, random = [], Study(SPACE, "random").strategy

    class Watching:
        def suggest(self, history, rng):
            seen.append([o.trial.number for o in history])
            pending = [trial.number for trial in history.pending]
            assert sorted(seen[-1] + pending) == list(range(len(seen) - 1))
            return random.suggest(history, rng)

    study = Study(SPACE, Watching(), seed=1, lookahead=4, plan=plan)
    executor = Waiting(7)
    for number in (1, 2, 3):
        executor.end(number, 0.5)
    n_ticks = iter(range(100))
    study.optimize(bowl, None, executor=executor, stop=lambda: len(seen) == len(visible) and next(n_ticks) > 8)
    assert seen == visible
