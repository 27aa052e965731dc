"""Rungs of rows: what is promoted, and what strategies see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, Float
from hypothesis import given
from hypothesis import strategies as st

from cashmere.records.cause import Cause, CauseKind
from cashmere.records.origin import OriginKind
from cashmere.records.trial import History, Observation, Outcome, Trial, TrialStatus
from cashmere.strategies.shared.promotion import on_all_rows, promotion

SPACE = ConfigurationSpace()
SPACE.add(Float("x", (0.0, 1.0)))
RUNGS = (1 / 9, 1 / 3, 1.0)


def make_history(*tried, pending=()):
    """Make a history of triples (x, rung, loss); a loss of None is a failure."""
    observations = []
    for number, (x, rung, loss) in enumerate(tried):
        status = TrialStatus.ERROR if loss is None else TrialStatus.SUCCESS
        observations.append(Observation(trial=make_trial(number, x, rung), outcome=Outcome(status=status, loss=loss)))
    waiting = tuple(make_trial(len(tried) + k, x, rung) for k, (x, rung) in enumerate(pending))
    return History(observations=tuple(observations), pending=waiting)


def make_trial(number, x, rung):
    return Trial(number=number, configuration=Configuration(SPACE, values={"x": x}), seed=0, fidelity=RUNGS[rung])


def promoted(history, **options):
    found = promotion(history, RUNGS, **options)
    return None if found is None else (found.configuration["x"], RUNGS.index(found.fidelity))


def test_the_best_third_of_a_rung_is_promoted():
    tried = [(0.1, 0, 0.5), (0.2, 0, 0.4)]
    assert promoted(make_history(*tried)) is None
    assert promoted(make_history(*tried, (0.3, 0, 0.6))) == (0.2, 1)
    assert promotion(make_history(*tried, (0.3, 0, 0.6)), RUNGS).origin.kind is OriginKind.PROMOTED


def test_nothing_is_promoted_twice_even_while_the_first_promotion_runs():
    tried = [(0.1, 0, 0.5), (0.2, 0, 0.4), (0.3, 0, 0.6)]
    assert promoted(make_history(*tried, pending=[(0.2, 1)])) is None
    assert promoted(make_history(*tried, (0.2, 1, 0.3))) is None


def test_higher_rungs_come_first():
    low = [(0.1 * k, 0, 0.1 * k) for k in range(1, 10)]
    middle = [(0.1, 1, 0.3), (0.2, 1, 0.2), (0.3, 1, 0.1)]
    assert promoted(make_history(*low, *middle)) == (pytest.approx(0.3), 2)


def test_late_every_rung_promotes_its_best():
    assert promoted(make_history((0.1, 0, 0.5)), is_late=True) == (0.1, 1)
    assert promoted(make_history((0.1, 0, 0.5), (0.1, 1, 0.4)), is_late=True) == (0.1, 2)
    assert promoted(make_history((0.1, 0, 0.5), (0.1, 1, 0.4), (0.1, 2, 0.3)), is_late=True) is None


def test_failures_are_not_promoted_and_do_not_count():
    assert promoted(make_history((0.1, 0, None), (0.2, 0, None), (0.3, 0, 0.5))) is None


def test_configurations_that_may_not_have_more_rows_are_skipped():
    tried = [(0.1 * k, 0, 0.1 * k) for k in range(1, 7)]
    share = {0.1: 1 / 9}
    found = promoted(make_history(*tried), largest_share=lambda c: share.get(round(c["x"], 3), 1.0))
    assert found == (pytest.approx(0.2), 1)


WITH_ALGORITHMS = ConfigurationSpace()
WITH_ALGORITHMS.add(Categorical("algorithm", ["a", "b", "c"]), Float("x", (0.0, 1.0)))


def make_trial_of(number, algorithm, x, rung):
    configuration = Configuration(WITH_ALGORITHMS, values={"algorithm": algorithm, "x": x})
    return Trial(number=number, configuration=configuration, seed=0, fidelity=RUNGS[rung])


def make_history_of(*tried, pending=()):
    """Make a history of quadruples (algorithm, x, rung, loss)."""
    observations = [
        Observation(
            trial=make_trial_of(number, algorithm, x, rung), outcome=Outcome(status=TrialStatus.SUCCESS, loss=loss)
        )
        for number, (algorithm, x, rung, loss) in enumerate(tried)
    ]
    waiting = tuple(make_trial_of(len(tried) + k, *each) for k, each in enumerate(pending))
    return History(observations=tuple(observations), pending=waiting)


def promoted_of(history, **options):
    found = promotion(history, RUNGS, **options)
    if found is None:
        return None
    return found.configuration["algorithm"], round(found.configuration["x"], 3), RUNGS.index(found.fidelity)


def test_algorithms_with_the_fewest_trials_above_go_first():
    tried = [("a", 0.1), ("a", 0.2), ("b", 0.3), ("a", 0.4), ("b", 0.5), ("c", 0.6)]
    tried += [("c", k / 20) for k in range(6, 18)]
    losses = [*np.linspace(0, 1, 6), *[2.0] * 12]
    known = [(*each, 0, loss) for each, loss in zip(tried, losses, strict=True)]
    order = []
    while (found := promoted_of(make_history_of(*known, pending=[(*each, 1) for each in order]))) is not None:
        order.append(found[:2])
    assert order == [("a", 0.1), ("b", 0.3), ("c", 0.6), ("a", 0.2), ("b", 0.5), ("a", 0.4)]


def test_the_first_of_every_algorithm_goes_up_whatever_its_loss():
    tried = [("a", 0.1, 0, 0.5), ("b", 0.2, 0, 0.9)]
    assert promoted_of(make_history_of(*tried)) == ("a", 0.1, 1)
    assert promoted_of(make_history_of(*tried, pending=[("a", 0.1, 1)])) == ("b", 0.2, 1)
    assert promoted_of(make_history_of(*tried, pending=[("a", 0.1, 1), ("b", 0.2, 1)])) is None


def test_rungs_above_wait_until_algorithms_are_compared():
    low = [("a", 0.1, 0, 0.5), ("a", 0.2, 0, 0.6), ("a", 0.3, 0, 0.7)]
    middle = [("a", 0.1, 1, 0.4), ("a", 0.2, 1, 0.45), ("a", 0.3, 1, 0.45)]
    assert promoted_of(make_history_of(*low, *middle)) == ("a", 0.1, 2)
    running = make_history_of(*low, *middle, pending=[("b", 0.4, 0)])
    assert promoted_of(running) is None
    assert promoted_of(running, is_late=True) == ("a", 0.1, 2)


def test_the_algorithm_that_gains_most_from_rows_goes_first():
    """On the second rung b is behind, but it has gained much more from rows than the others."""
    low = [("a", 0.1, 0, 0.50), ("b", 0.1, 0, 0.80), ("c", 0.1, 0, 0.70)]
    middle = [("a", 0.1, 1, 0.49), ("b", 0.1, 1, 0.52), ("c", 0.1, 1, 0.69)]
    assert promoted_of(make_history_of(*low, *middle)) == ("b", 0.1, 2)


def test_configurations_that_could_not_end_in_time_are_not_promoted():
    tried = make_history((0.1, 0, 0.5), (0.2, 0, 0.4), (0.3, 0, 0.6))
    slow = [replace(o, outcome=replace(o.outcome, duration_seconds=10.0)) for o in tried]
    slow = History(observations=tuple(slow))
    assert promoted(slow, seconds_left=20.0) == (0.2, 1)  # two thirds of 3 x 10 s
    assert promoted(slow, seconds_left=19.0) is None


def test_strategies_see_each_configuration_once_as_if_on_all_rows():
    history = make_history((0.1, 0, 0.6), (0.2, 0, 0.5), (0.3, 0, None), (0.2, 1, 0.4), (0.2, 2, 0.35))
    seen = on_all_rows(history, RUNGS)
    assert [o.trial.number for o in seen] == [0, 2, 4]
    assert [o.loss for o in seen] == pytest.approx([0.6 - 0.1 - 0.05, None, 0.35])
    assert seen.seen == history.seen


def test_more_rows_are_never_expected_to_harm():
    worse = make_history((0.1, 0, 0.5), (0.2, 0, 0.6), (0.1, 1, 0.7))
    assert [o.loss for o in on_all_rows(worse, RUNGS)] == [0.6, 0.7]


def test_trials_cut_short_show_how_much_more_rows_bring_at_least():
    history = make_history((0.1, 0, 0.5), (0.2, 0, 0.6), (0.1, 1, 0.3))
    outcome = Outcome(status=TrialStatus.SUCCESS, loss=0.3, cut_short=Cause(kind=CauseKind.TIME_LIMIT))
    history = replace(history, observations=(*history.observations[:2], replace(history[2], outcome=outcome)))
    # A third of the rows brought 0.2; all rows are expected to bring half of that.
    assert [o.loss for o in on_all_rows(history, RUNGS)] == pytest.approx([0.6 - 0.2 - 0.1, 0.3 - 0.1])


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.floats(0, 1)), max_size=40),
    st.booleans(),
)
def test_promotions_end(tried, is_late):
    """However losses fall, each configuration reaches each rung at most once, and never skips one."""
    history = make_history(*((x / 10, 0, loss) for x, _, loss in tried))
    rng = np.random.default_rng(0)
    reached = {}
    for _ in range(3 * len(tried) + 1):
        found = promotion(history, RUNGS, is_late=is_late)
        if found is None:
            break
        rung = RUNGS.index(found.fidelity)
        x = found.configuration["x"]
        assert reached.get(x, 0) == rung - 1
        reached[x] = rung
        trial = make_trial(len(history), x, rung)
        outcome = Outcome(status=TrialStatus.SUCCESS, loss=float(rng.random()))
        history = History(observations=(*history.observations, Observation(trial=trial, outcome=outcome)))
    assert promotion(history, RUNGS, is_late=is_late) is None
