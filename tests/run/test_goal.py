from __future__ import annotations

import pytest

from cashmere.records.budget import Budget
from cashmere.run.goal import Goal, Spent

SPENT = Spent(trials=4, seconds=60.0)


@pytest.mark.parametrize(
    ("goal", "rest"),
    [
        (Goal(trials=10), Budget(trials=10)),
        (Goal(trials=4), None),
        (Goal(seconds=100.0), Budget(seconds=40.0)),
        (Goal(seconds=60.5), None),  # less than a second is left
        (Goal(trials=10, seconds=100.0), Budget(trials=10, seconds=40.0)),
        (Goal(trials=4, seconds=100.0), None),
    ],
)
def test_rest_counts_all_trials_and_the_seconds_from_now(goal, rest):
    assert goal.rest(SPENT) == rest
    assert Goal.from_json(goal.to_json()) == goal


def test_goal_of_a_call_counts_all_trials_and_its_own_seconds():
    assert Goal.of_call(Budget(trials=7, seconds=30.0), SPENT) == Goal(trials=7, seconds=90.0)


def test_larger_goal_stays_and_a_limit_that_is_no_longer_given_goes():
    assert Goal(trials=9).including(Goal(trials=5)) == Goal(trials=9)
    assert Goal(trials=9).including(Goal(seconds=90.0)) == Goal(seconds=90.0)
    assert Goal().including(Goal(trials=5)) == Goal(trials=5)
