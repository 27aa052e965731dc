"""Selection under limits: what ensembles cost, and which members still fit."""

from __future__ import annotations

import numpy as np
import pytest

from cashmere.ensembles import IncrementalSelection
from cashmere.ensembles.limits import Cost, Limit, allowed_within
from cashmere.evaluation.metrics import METRICS
from cashmere.exceptions import ArrayError

BYTES = Cost(fixed=10.0, own={0: 100.0, 1: 20.0, 2: 30.0, 3: 5.0})
SECONDS = Cost(
    fixed=1.0,
    own={0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0},
    shares={0: "a", 1: "a", 2: "b", 3: "b"},
    shared={"a": 10.0, "b": 20.0},
)


@pytest.fixture(scope="module")
def pool():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    predictions = []
    for noise in (0.4, 0.8, 1.0, 2.0):
        p = 1 / (1 + np.exp(-(2 * y - 1 + noise * rng.normal(size=200))))
        predictions.append(np.stack([1 - p, p], axis=1))
    return y, predictions


@pytest.mark.parametrize("cost", [BYTES, SECONDS])
@pytest.mark.parametrize("members", [(), (0,), (0, 1), (1, 2), (0, 1, 2, 3)])
def test_cost_with_one_more_member_is_that_of_the_larger_ensemble(cost, members):
    expected = [cost.of({*members, number}) for number in range(4)]
    np.testing.assert_allclose(cost.with_one_more(members, range(4)), expected)


def test_shared_costs_are_paid_once():
    assert SECONDS.of([0, 1]) == 1 + 1 + 2 + 10
    assert SECONDS.of([0, 2]) == 1 + 1 + 3 + 10 + 20


def test_without_limits_everything_is_allowed():
    assert allowed_within([], range(4)) is None


def selected(pool, *limits, numbers=range(4)):
    y, predictions = pool
    selection = IncrementalSelection(y, METRICS["log_loss"], size=10)
    return selection.select(numbers, predictions, allowed=allowed_within(limits, numbers))


@pytest.mark.parametrize("most", [15, 40, 45, 65, 70, 115, 165])
def test_a_selection_keeps_its_limit(pool, most):
    members = selected(pool, Limit(cost=BYTES, most=most)).members
    assert Limit(cost=BYTES, most=most).holds(members.tolist())


def test_all_limits_hold_at_once(pool):
    members = selected(pool, Limit(cost=BYTES, most=60), Limit(cost=SECONDS, most=14)).members
    assert members.tolist() == [1]


def test_a_limit_that_binds_nowhere_changes_nothing(pool):
    np.testing.assert_array_equal(selected(pool, Limit(cost=BYTES, most=1e9)).order, selected(pool).order)


def test_limits_know_candidates_by_their_numbers(pool):
    cost = Cost(fixed=0.0, own={7: 100.0, 8: 1.0, 9: 100.0, 10: 100.0})
    assert selected(pool, Limit(cost=cost, most=5), numbers=(7, 8, 9, 10)).members.tolist() == [1]


def test_a_later_selection_does_not_rely_on_a_limited_one(pool):
    y, predictions = pool
    selection = IncrementalSelection(y, METRICS["log_loss"], size=10)
    free = selection.select(range(4), predictions)
    selection.select(range(4), predictions, allowed=allowed_within([Limit(cost=BYTES, most=15)], range(4)))
    np.testing.assert_array_equal(selection.select(range(4), predictions).order, free.order)


def test_a_limit_that_nothing_keeps_is_an_error(pool):
    with pytest.raises(ArrayError, match="allowed"):
        selected(pool, Limit(cost=BYTES, most=12))
