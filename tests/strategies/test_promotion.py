"""Rungs of rows: who is promoted, and what strategies see."""

from __future__ import annotations

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


def test_nobody_is_promoted_twice_even_while_the_first_time_runs():
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


def test_who_may_not_have_more_rows_is_passed_over():
    tried = [(0.1 * k, 0, 0.1 * k) for k in range(1, 7)]
    share = {0.1: 1 / 9}
    found = promoted(make_history(*tried), largest_share=lambda c: share.get(round(c["x"], 3), 1.0))
    assert found == (pytest.approx(0.2), 1)


def test_algorithms_with_the_fewest_trials_above_go_first():
    space = ConfigurationSpace()
    space.add(Categorical("algorithm", ["a", "b", "c"]), Float("x", (0.0, 1.0)))

    def trial(number, name, x, rung):
        configuration = Configuration(space, values={"algorithm": name, "x": x})
        return Trial(number=number, configuration=configuration, seed=0, fidelity=RUNGS[rung])

    tried = [("a", 0.1), ("a", 0.2), ("b", 0.3), ("a", 0.4), ("b", 0.5), ("c", 0.6)]
    losses = [*np.linspace(0, 1, 6), *[2.0] * 12]
    rows = [trial(k, *(tried[k] if k < 6 else ("c", k / 20)), 0) for k in range(18)]
    known = [
        Observation(trial=each, outcome=Outcome(status=TrialStatus.SUCCESS, loss=loss))
        for each, loss in zip(rows, losses, strict=True)
    ]
    order, above = [], ()
    while (found := promotion(History(observations=tuple(known), pending=above), RUNGS)) is not None:
        order.append((found.configuration["algorithm"], round(found.configuration["x"], 3)))
        above += (trial(18 + len(above), *order[-1], 1),)
    assert order == [("a", 0.1), ("b", 0.3), ("c", 0.6), ("a", 0.2), ("b", 0.5), ("a", 0.4)]


def test_strategies_see_each_configuration_once_as_if_on_all_rows():
    history = make_history((0.1, 0, 0.6), (0.2, 0, 0.5), (0.3, 0, None), (0.2, 1, 0.4), (0.2, 2, 0.35))
    seen = on_all_rows(history, RUNGS)
    assert [o.trial.number for o in seen] == [0, 2, 4]
    assert [o.loss for o in seen] == pytest.approx([0.6 - 0.1 - 0.05, None, 0.35])
    assert seen.seen == history.seen


def test_cut_trials_do_not_tell_what_more_rows_bring():
    worse = make_history((0.1, 0, 0.5), (0.1, 1, 0.7))
    assert [o.loss for o in on_all_rows(worse, RUNGS)] == [0.7]
    cut = make_history((0.1, 0, 0.5), (0.2, 0, 0.6), (0.1, 1, 0.3))
    outcome = Outcome(status=TrialStatus.SUCCESS, loss=0.3, cut_short=Cause(kind=CauseKind.TIME_LIMIT))
    last = Observation(trial=cut[2].trial, outcome=outcome)
    cut = History(observations=(*cut.observations[:2], last))
    assert [o.loss for o in on_all_rows(cut, RUNGS)] == [0.6, 0.3]


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
