from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.contests.budgets import SCHEDULES, cut_chain, first_round, number_of_rounds, plan_rounds
from cashmere.exceptions import InvalidParameterError

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "sh_budgets.json").read_text())["cases"]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(str(case[k]) for k in ("c", "eta", "B", "b_init")))
def test_rounds_agree_with_vectors(case, schedule):
    planned = plan_rounds(case["c"], case["B"], first=case["b_init"], eta=case["eta"], schedule=schedule)
    expected = case[schedule]["rounds_r_candidates_perCandidate_total"]
    assert [[r, m, b, m * b] for r, (m, b) in enumerate(planned)] == expected
    assert case["B"] - sum(m * b for m, b in planned) == case[schedule]["unused"]
    assert list(cut_chain(case["c"], case["eta"])) == case["chain"]
    assert len(cut_chain(case["c"], case["eta"])) - 1 == case["Rmax"]


@given(st.integers(1, 100), st.integers(2, 6), st.integers(1, 2000), st.integers(1, 20), st.sampled_from(SCHEDULES))
def test_the_budget_is_never_exceeded_and_contenders_only_leave(c, eta, budget, first, schedule):
    planned = plan_rounds(c, budget, first=first, eta=eta, schedule=schedule)
    spent = sum(m * b for m, b in planned)
    assert spent <= budget
    counts = [m for m, _ in planned[1:]]
    assert counts == sorted(counts, reverse=True)
    assert len(planned) == number_of_rounds(c, eta=eta, schedule=schedule)
    if schedule != "strict" and planned[-1].contenders == 1 and (len(planned) > 1 or schedule == "inclusive"):
        assert spent == budget


@given(st.integers(1, 10**6), st.integers(2, 9))
def test_cuts_are_as_many_as_the_logarithm_says(c, eta):
    chain = cut_chain(c, eta)
    n_cuts = len(chain) - 1
    assert eta**n_cuts >= c and (n_cuts == 0 or eta ** (n_cuts - 1) < c)
    assert all(later == math.ceil(former / eta) for former, later in itertools.pairwise(chain))


@given(st.integers(1, 50), st.integers(1, 300), st.integers(1, 20))
def test_a_scarce_budget_shrinks_the_first_round_only(c, budget, first):
    granted = first_round(c, budget, first)
    if c * first <= budget:
        assert granted == (first,) * c
    elif budget >= c:
        assert set(granted) == {max(1, budget // (2 * c))}
    else:
        assert granted == (1,) * budget + (0,) * (c - budget)
    assert sum(granted) <= budget
    assert first_round(c, None, first) == (first,) * c


def test_impossible_numbers_are_refused():
    with pytest.raises(InvalidParameterError, match="n_contenders"):
        cut_chain(0, 3)
    with pytest.raises(InvalidParameterError, match="eta"):
        cut_chain(3, 1)
    with pytest.raises(InvalidParameterError, match="budget"):
        plan_rounds(3, 0, first=5)
    with pytest.raises(InvalidParameterError, match="first"):
        plan_rounds(3, 10, first=0)
