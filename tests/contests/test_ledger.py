from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.contests import Contender, Ledger, OpenRound, Rules, derive_ledger, paired_samples, plan_rounds
from cashmere.contests.budgets import SCHEDULES
from cashmere.exceptions import InvalidParameterError, MissingParameterError
from cashmere.records.work_budget import WorkBudget

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "sh_budgets.json").read_text())["cases"]
STATISTICAL = Rules(elimination="statistical")


def make(losses, seconds=None, capacities=None):
    """Return contenders with these losses; None is a failure."""
    seconds = [np.ones(len(each)) for each in losses] if seconds is None else seconds
    capacities = [None] * len(losses) if capacities is None else capacities
    return [
        Contender(
            name=f"s{i}",
            losses=np.array([np.nan if loss is None else loss for loss in each], dtype=np.float64),
            seconds=np.asarray(time, dtype=np.float64),
            capacity=capacity,
        )
        for i, (each, time, capacity) in enumerate(zip(losses, seconds, capacities, strict=True))
    ]


def shortened(contenders, lengths):
    return [
        Contender(name=c.name, losses=c.losses[:n], seconds=c.seconds[:n], capacity=c.capacity)
        for c, n in zip(contenders, lengths, strict=True)
    ]


@st.composite
def contests(draw):
    """Random evaluations, in thirds so that ties are common, with failures; rules; a budget."""
    c = draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    lengths = [draw(st.integers(0, 30)) for _ in range(c)]
    losses = [np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 9, n) / 3 + 0.4 * i) for i, n in enumerate(lengths)]
    capacities = [draw(st.one_of(st.none(), st.integers(0, 12))) for _ in range(c)]
    contenders = make(losses, [rng.random(n) for n in lengths], capacities)
    rules = Rules(
        elimination=draw(st.sampled_from(["highest", "statistical"])),
        b_first=draw(st.integers(1, 7)),
        n_initial=draw(st.integers(1, 5)),
        eta=draw(st.integers(2, 4)),
        schedule=draw(st.sampled_from(SCHEDULES)),
        tie=draw(st.sampled_from(["keep", "cut"])),
    )
    budget = draw(
        st.one_of(
            st.builds(WorkBudget, trials=st.integers(1, 120)),
            st.builds(WorkBudget, worker_seconds=st.floats(0.1, 50)),
            st.builds(WorkBudget, trials=st.integers(1, 120), worker_seconds=st.floats(0.1, 50)),
        )
    )
    return contenders, rules, budget


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(str(case[k]) for k in ("c", "eta", "B", "b_init")))
def test_rounds_are_those_of_the_plan(case, schedule):
    c, budget = case["c"], case["B"]
    contenders = make([np.full(budget, 0.1 * i) for i in range(c)])
    rules = Rules(b_first=case["b_init"], eta=case["eta"], schedule=schedule)
    ledger = derive_ledger(contenders, rules, budget=WorkBudget(trials=budget))
    found = [(len(r.alive), r.granted[0]) for r in ledger.rounds]
    planned = plan_rounds(c, budget, first=case["b_init"], eta=case["eta"], schedule=schedule)
    assert found == [tuple(p) for p in planned if p.contenders > 1]
    assert ledger.open == OpenRound(number=len(found), alive=(0,), quotas=(None,))


@settings(deadline=None)
@given(contests(), st.data())
def test_finished_rounds_never_change(contest, data):
    contenders, rules, budget = contest
    now = derive_ledger(contenders, rules, budget=budget)
    before = derive_ledger(
        shortened(contenders, [data.draw(st.integers(0, len(c.losses))) for c in contenders]), rules, budget=budget
    )
    assert now.rounds[: len(before.rounds)] == before.rounds
    assert derive_ledger(contenders, rules, budget=budget, known=before) == now


@settings(deadline=None)
@given(contests())
def test_survivors_shrink_and_quotas_grow_within_the_budget(contest):
    contenders, rules, budget = contest
    ledger = derive_ledger(contenders, rules, budget=budget)
    totals = [0] * len(contenders)
    alive = tuple(i for i, c in enumerate(contenders) if c.capacity != 0)
    for number, each in enumerate(ledger.rounds):
        assert (each.number, each.alive) == (number, alive)
        for i, granted, total in zip(each.alive, each.granted, each.totals, strict=True):
            totals[i] += granted
            assert granted >= 0 and total == totals[i] <= len(contenders[i].losses)
        assert set(each.dropped) <= set(alive) and len(each.reasons) == len(each.dropped)
        alive = each.survivors
    if rules.elimination == "highest" and budget.trials is not None:
        # A contender alone has no limit: there the study ends the run.
        assert sum(sum(each.granted) for each in ledger.rounds if len(each.alive) > 1) <= budget.trials
    if ledger.open is None:
        assert not alive
    else:
        assert ledger.open.alive == alive
        limits = zip(ledger.open.alive, ledger.open.quotas, strict=True)
        assert any(quota is None or len(contenders[i].losses) < quota for i, quota in limits)


@settings(deadline=None)
@given(contests())
def test_plain_data_give_the_same_ledger(contest):
    contenders, rules, budget = contest
    ledger = derive_ledger(contenders, rules, budget=budget)
    assert Ledger.from_json(json.loads(json.dumps(ledger.to_json(), allow_nan=False))) == ledger


def test_the_order_in_which_evaluations_arrive_does_not_matter():
    contenders = make([[0.5, 0.1], [0.4, 0.3, 0.0], [0.6]])
    ledger = derive_ledger(contenders, Rules(b_first=2), budget=WorkBudget(trials=30))
    assert ledger.open == OpenRound(number=0, alive=(0, 1, 2), quotas=(2, 2, 2))
    ledger = derive_ledger(
        make([[0.5, 0.1], [0.4, 0.3, 0.0], [0.6, 0.6]]), Rules(b_first=2), budget=WorkBudget(trials=30)
    )
    assert ledger.rounds[0].scores == (0.1, 0.3, 0.6)  # the third evaluation of s1 is beyond its quota
    assert ledger.rounds[0].dropped == (1, 2)


def test_a_highest_value_contest_needs_a_budget():
    with pytest.raises(MissingParameterError, match="budget"):
        derive_ledger(make([[], []]), Rules())
    assert derive_ledger(make([[], []]), STATISTICAL).open.quotas == (5, 5)


def test_a_budget_below_the_number_of_contenders_takes_the_first_ones():
    ledger = derive_ledger(make([[], [], []]), Rules(), budget=WorkBudget(trials=2))
    assert ledger.open.quotas == (1, 1, 0)
    ledger = derive_ledger(make([[0.4], [0.3], []]), Rules(), budget=WorkBudget(trials=2))
    assert ledger.rounds[0].scores == (0.4, 0.3, None)
    assert tuple(map(str, ledger.rounds[0].reasons)) == (
        "best loss 0.4; the 1 kept of 3 reach 0.3",
        "never evaluated: the budget is too small",
    )


@pytest.mark.parametrize(("floor", "expected"), [(-np.inf, 0.9), (0.5, 0.9), (1.0, 1.0)])
def test_failures_have_the_worst_loss_granted_so_far(floor, expected):
    contenders = make([[0.9, 0.2], [None, None], [0.4, 7.0], [0.8, None, 99.0]])
    contenders[2] = shortened(contenders, [2, 2, 1, 3])[2]
    rules = Rules(b_first=1)
    ledger = derive_ledger(contenders, rules, budget=WorkBudget(trials=40), failure_floor=floor)
    assert ledger.rounds[0].scores == (0.9, expected, 0.4, 0.8)


def test_without_any_success_failures_are_equal():
    ledger = derive_ledger(make([[None], [None], [None]]), Rules(b_first=1), budget=WorkBudget(trials=30))
    assert ledger.rounds[0].scores == (1.0, 1.0, 1.0)
    assert ledger.open.alive == (0, 1)  # a tie


def test_ties_are_kept_for_a_round_but_the_last_one_goes_to_the_leader():
    losses = [[0.1] * 60, [0.1] * 60, [0.1] * 60, [0.5] * 60]
    kept = derive_ledger(make(losses), Rules(b_first=2, eta=2), budget=WorkBudget(trials=60))
    assert [r.survivors for r in kept.rounds] == [(0, 1, 2), (0, 1), (0,)]
    cut = derive_ledger(make(losses), Rules(b_first=2, eta=2, tie="cut"), budget=WorkBudget(trials=60))
    assert [r.survivors for r in cut.rounds] == [(0, 1), (0,)]


def test_exhausted_contenders_leave():
    contenders = make([[0.1, 0.2], [0.5] * 5, [0.6] * 5, []], capacities=[2, None, None, 0])
    ledger = derive_ledger(contenders, Rules(), budget=WorkBudget(trials=60))
    assert ledger.rounds[0].totals == (2, 5, 5)
    assert str(ledger.rounds[0].reasons[0]) == "all of its 2 configurations have been evaluated"
    assert ledger.open.alive == (1,)
    everything = derive_ledger(make([[0.1, 0.2]], capacities=[2]), Rules(), budget=WorkBudget(trials=60))
    assert everything.open is None


def test_time_is_divided_by_the_measured_costs():
    seconds = [np.full(100, cost) for cost in (1.0, 4.0, 2.0, 1.0, 1.0)]
    contenders = make([np.full(100, loss) for loss in (0.1, 0.2, 0.3, 0.4, 0.5)], seconds)
    ledger = derive_ledger(contenders, Rules(b_first=2), budget=WorkBudget(worker_seconds=98))
    # Round 0 takes 18 s. The 80 s left are for two rounds: 40 s for two survivors that cost 5 s together.
    assert [(r.alive, r.granted) for r in ledger.rounds[1:]] == [((0, 1), (8, 8))]
    late = derive_ledger(contenders, Rules(b_first=2), budget=WorkBudget(worker_seconds=10))
    assert late.rounds[1].granted == (1, 1)  # no time is left, but each gets one evaluation
    both = derive_ledger(contenders, Rules(b_first=2), budget=WorkBudget(worker_seconds=98, trials=22))
    assert both.rounds[1].granted == (3, 3)
    still = derive_ledger(
        make([[0.1] * 9, [0.2] * 9], [np.zeros(9)] * 2), Rules(), budget=WorkBudget(worker_seconds=98)
    )
    assert still.open.alive == (0,)


def test_statistical_contest_step_by_step():
    rng = np.random.default_rng(0)
    losses = [rng.normal(mean, 0.1, size=40) for mean in (0.0, 0.05, 1.0, 2.0)]
    ledger = derive_ledger(make(losses), STATISTICAL)
    assert [r.granted[0] for r in ledger.rounds[:3]] == [5, 1, 1]
    assert [r.test for r in ledger.rounds[:3]] == [None, None, "friedman"]
    first = next(r for r in ledger.rounds if r.dropped)
    samples = paired_samples([each[: first.totals[0]] for each in losses], 5)
    assert len(samples) == first.totals[0] - 4
    assert first.dropped == (3,)
    assert first.p_value <= 0.05 and first.adjusted_p[3] < 0.05 <= first.adjusted_p[2]
    assert tuple(map(str, first.reasons)) == ("mean rank 4 against 1.33 of s1 (adjusted p = 0.034)",)
    dropped = [i for r in ledger.rounds for i in r.dropped]
    assert dropped[:2] == [3, 2]
    assert {r.test for r in ledger.rounds if len(r.alive) == 2} == {"wilcoxon"}


def test_authors_form_keeps_contenders_longer():
    rng = np.random.default_rng(0)
    losses = [rng.normal(mean, 0.1, size=40) for mean in (0.0, 0.05, 1.0, 2.0)]
    ours, theirs = (
        sum(len(r.alive) for r in derive_ledger(make(losses), Rules(elimination="statistical", authors_z=z)).rounds)
        for z in (False, True)
    )
    assert theirs > ours


def test_equal_losses_keep_everybody():
    ledger = derive_ledger(make([[0.3] * 20] * 3), STATISTICAL)
    assert ledger.open.alive == (0, 1, 2)
    assert all(r.p_value in (None, 1.0) for r in ledger.rounds)


@pytest.mark.parametrize(
    "options",
    [
        {"elimination": "lot"},
        {"schedule": "loose"},
        {"tie": "toss"},
        {"eta": 1},
        {"b_first": 0},
        {"b_first": "many"},
        {"n_initial": 0},
        {"n_initial": 2.5},
        {"alpha": 1.0},
        {"max_extra": -1},
        {"min_blocks": 1},
    ],
)
def test_impossible_rules_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        Rules(**options)
