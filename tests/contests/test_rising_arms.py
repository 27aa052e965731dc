from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.contests import Contender, RisingRules, derive_standing, find_beaten, pessimistic_and_optimistic
from cashmere.exceptions import InvalidParameterError
from cashmere.records.work_budget import WorkBudget

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "rising_bandit.json").read_text())
REWARDS = VECTOR["rewards_best_so_far_after_each_pull"]
NAMES = list(REWARDS)
BEST = 1 - np.array([REWARDS[name] for name in NAMES])


def arm(losses, *, capacity=None, seconds=1.0):
    losses = np.array(losses, dtype=float)
    return Contender(name="", losses=losses, seconds=np.full(len(losses), seconds), capacity=capacity)


def pulled(best, n=5):
    """Return evaluations whose lowest loss after each pull of n is the given one."""
    return arm(np.repeat(best, n))


@pytest.mark.parametrize("case", VECTOR["cases"], ids=lambda case: f"{case['mode']}-{case['steps']}")
def test_bounds_and_eliminations_are_those_of_the_vector(case):
    pessimistic, optimistic = pessimistic_and_optimistic(
        BEST, case["steps"], window=case["C"], slope=case["mode"], least_loss=0.0
    )
    for i, name in enumerate(NAMES):
        assert 1 - pessimistic[i] == pytest.approx(case["bounds"][name]["l"])
        assert 1 - optimistic[i] == pytest.approx(case["bounds"][name]["u"])
    assert [NAMES[i] for i in find_beaten(pessimistic, optimistic)] == case["eliminated"]


@pytest.mark.parametrize("slope", ["paper", "authors"])
def test_a_check_judges_the_pulls_of_its_cycle(slope):
    rules = RisingRules(slope=slope)
    arms = [pulled(best) for best in BEST]
    standing = derive_standing(arms, rules, budget=WorkBudget(trials=100), failure_loss=1.0, least_loss=0.0)
    check = standing.checks[0]
    assert check.cycle == rules.first_check
    assert check.horizon == 20 - 3 * check.cycle
    expected = pessimistic_and_optimistic(BEST[:, : check.cycle], check.horizon, window=3, slope=slope, least_loss=0.0)
    np.testing.assert_allclose([check.pessimistic, check.optimistic], expected)
    assert check.dropped == tuple(find_beaten(*expected))


def test_first_check_is_after_four_pulls_or_three_with_the_authors_slope():
    for slope, cycles in (("paper", 4), ("authors", 3)):
        rules = RisingRules(slope=slope)
        good, bad = np.full(100, 0.1), np.full(100, 0.3)
        for n in range(1, 5 * cycles + 1):
            standing = derive_standing([arm(good[:n]), arm(bad[:n])], rules, budget=WorkBudget(trials=100))
            assert standing.alive == ((0, 1) if n < 5 * cycles else (0,))
            assert standing.quotas == ((5 * cycles, 5 * cycles) if n < 5 * cycles else (None,))


def test_a_falling_arm_stays_as_long_as_it_could_catch_up():
    best = np.array([[0.10] * 6, [0.5, 0.45, 0.40, 0.35, 0.30, 0.25]])
    arms = [pulled(row) for row in best]
    long, short = (derive_standing(arms, RisingRules(), budget=WorkBudget(trials=n)) for n in (200, 60))
    assert long.alive == (0, 1)
    assert (
        short.alive == (0,) and short.checks[0].horizon == 4
    )  # 60 - 40 evaluations are 4 pulls: 0.35 - 4 * 0.05 > 0.1
    endless = derive_standing(arms, RisingRules())
    assert endless.alive == (0, 1) and endless.checks[-1].horizon == np.inf


def test_seconds_count_in_evaluations_of_mean_duration():
    arms = [arm(np.full(20, 0.1), seconds=1.0), arm(np.full(20, 0.1), seconds=3.0)]
    standing = derive_standing(arms, RisingRules(), budget=WorkBudget(worker_seconds=120.0))
    assert standing.checks[0].horizon == (120 - 80) / 2 // 5
    both = derive_standing(arms, RisingRules(), budget=WorkBudget(worker_seconds=120.0, trials=55))
    assert both.checks[0].horizon == 3


def test_failures_are_the_worst_losses_and_an_arm_without_success_leaves():
    nan = np.full(20, np.nan)
    recovered = np.concatenate([nan[:15], np.full(5, 0.4)])
    standing = derive_standing([arm(np.full(20, 0.3)), arm(nan), arm(recovered)], RisingRules())
    assert standing.alive == (0, 2)
    assert standing.checks[0].optimistic == (0.3, np.inf, -np.inf)
    assert derive_standing([arm(nan), arm(nan)], RisingRules()).alive == (0, 1)  # never all
    bounded = derive_standing(
        [arm(np.full(20, 0.3)), arm(recovered)], RisingRules(), budget=WorkBudget(trials=45), failure_loss=1.0
    )
    assert bounded.checks[0].optimistic[1] == pytest.approx(0.4 - 0.6 / 3)


def test_exhausted_arms_leave_and_the_last_one_takes_the_rest():
    arms = [arm([0.5, 0.4], capacity=2), arm(np.full(20, 0.4)), arm([0.4] * 7, capacity=7)]
    assert derive_standing(arms, RisingRules()).alive == (1,)
    assert derive_standing(arms[::2], RisingRules()).alive == ()
    assert derive_standing([arm([], capacity=3)], RisingRules()).quotas == (3,)
    assert derive_standing([arm([])], RisingRules()).quotas == (None,)


@given(st.integers(0, 2**32), st.integers(2, 5), st.sampled_from(["paper", "authors"]))
def test_later_evaluations_change_no_check_and_the_best_arm_is_never_beaten(seed, k, slope):
    rng = np.random.default_rng(seed)
    losses = rng.random((k, 60)) * rng.random((k, 1))
    losses[rng.random((k, 60)) < 0.2] = np.nan
    rules, budget = RisingRules(slope=slope), WorkBudget(trials=300)
    before = derive_standing([arm(row[: rng.integers(61)]) for row in losses], rules, budget=budget)
    after = derive_standing([arm(row) for row in losses], rules, budget=budget)
    assert after.checks[: len(before.checks)] == before.checks
    assert set(after.alive) <= set(before.alive)
    for check in after.checks:
        assert int(np.argmin(check.pessimistic)) not in [check.alive.index(i) for i in check.dropped]
        assert all(o <= p for o, p in zip(check.optimistic, check.pessimistic, strict=True))


@pytest.mark.parametrize(
    "options", [{"window": 0}, {"window": 1, "slope": "authors"}, {"evaluations_per_pull": 0}, {"slope": "steep"}]
)
def test_impossible_rules_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        RisingRules(**options)
