from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from cashmere.contests.elimination import Verdict, drop_defeated, drop_highest

FRIEDMAN = json.loads((Path(__file__).parents[1] / "vectors" / "friedman_holm.json").read_text())
LOSSES = np.array(FRIEDMAN["losses_rows_are_blocks_columns_are_candidates"])
NAMES = ["a", "b", "c", "d"]


def kept(verdict, k):
    return [i for i in range(k) if i not in verdict.dropped]


def test_the_best_values_stay():
    verdict = drop_highest(np.array([0.3, 0.1, 0.4, 0.2]), np.zeros(4), 2, max_extra=1)
    assert kept(verdict, 4) == [1, 3]
    assert tuple(map(str, verdict.reasons)) == tuple(
        f"best loss {loss}; the 2 kept of 4 reach 0.2" for loss in (0.3, 0.4)
    )


def test_ties_stay_up_to_a_number_and_are_ordered_by_the_latest_losses():
    recent = np.array([0.5, 0.3, 0.1, 0.4, 0.4])
    nearly = np.array([0.2, 0.2 + 1e-9, 0.1, 0.3, 0.3])
    assert kept(drop_highest(nearly, recent, 2, max_extra=0), 5) == [0, 2]  # the best value comes first
    assert kept(drop_highest(nearly, recent, 2, max_extra=1), 5) == [0, 1, 2]
    equal = np.array([0.2, 0.2, 0.1, 0.2, 0.2])
    assert kept(drop_highest(equal, recent, 2, max_extra=0), 5) == [1, 2]
    assert kept(drop_highest(equal, recent, 2, max_extra=1), 5) == [1, 2, 3]
    assert kept(drop_highest(equal, recent, 2, max_extra=2), 5) == [1, 2, 3, 4]
    assert kept(drop_highest(equal, recent, 2, max_extra=9), 5) == [1, 2]  # otherwise none would leave


def test_ties_that_would_keep_everybody_are_cut():
    assert kept(drop_highest(np.full(2, 0.3), np.array([0.4, 0.3]), 1, max_extra=1), 2) == [1]


def test_all_stay_if_no_more_than_are_kept():
    assert drop_highest(np.array([1.0, 2.0]), np.zeros(2), 2) == Verdict()


def test_the_reason_says_that_a_contender_was_never_evaluated():
    verdict = drop_highest(np.array([np.inf, 0.3, np.inf]), np.zeros(3), 1)
    assert verdict.dropped == (0, 2)
    assert set(map(str, verdict.reasons)) == {"never evaluated: the budget is too small"}


@given(nps.arrays(np.float64, st.integers(2, 12), elements=st.integers(0, 4).map(float)), st.data())
def test_some_leave_and_enough_stay(scores, data):
    k = len(scores)
    n_keep, extra = data.draw(st.integers(1, k - 1)), data.draw(st.integers(0, 2))
    stay = kept(drop_highest(scores, scores[::-1], n_keep, max_extra=extra), k)
    assert n_keep <= len(stay) <= min(n_keep + extra, k - 1)
    gone = [i for i in range(k) if i not in stay]
    assert scores[stay].max() <= scores[gone].min()


@pytest.mark.parametrize(
    ("form", "authors_z"), [("corrected", False), ("authors_variant_without_se", True)], ids=["corrected", "authors"]
)
def test_significantly_worse_contenders_leave(form, authors_z):
    verdict = drop_defeated(LOSSES, NAMES, authors_z=authors_z)
    assert kept(verdict, 4) == FRIEDMAN[form]["survivors_alpha0.05"]
    assert verdict.test == "friedman"
    assert verdict.p_value == pytest.approx(FRIEDMAN["friedman_p"])
    assert verdict.adjusted_p[3] == pytest.approx(FRIEDMAN[form]["holm_adjusted"]["3"])
    assert "mean rank 4 against 1.12 of a (adjusted p = " in str(verdict.reasons[-1])


def test_of_two_the_worse_leaves():
    verdict = drop_defeated(LOSSES[:, [2, 0]], ["c", "a"])
    assert (verdict.dropped, verdict.test, verdict.p_value) == ((0,), "wilcoxon", 0.015625)
    assert tuple(map(str, verdict.reasons)) == ("mean rank 1.88 against 1.12 of a (Wilcoxon p = 0.016)",)
    assert drop_defeated(LOSSES[:, [2, 0]], ["c", "a"], alpha=0.01).dropped == ()
    assert not drop_defeated(LOSSES[:, [0]], ["a"]).dropped


def test_two_of_equal_mean_rank_stay():
    steps = np.arange(1.0, 41.0)
    samples = np.stack([np.zeros(40), np.where(steps > 20, steps, -steps)], axis=1)
    verdict = drop_defeated(samples, ["a", "b"])
    assert verdict.p_value < 0.05
    assert not verdict.dropped


def test_with_too_few_blocks_there_is_no_test():
    assert drop_defeated(LOSSES[:2], NAMES) == Verdict()
    assert drop_defeated(LOSSES[:2], NAMES, min_blocks=2).test == "friedman"
    assert drop_defeated(np.empty((0, 4)), NAMES) == Verdict()


@pytest.mark.parametrize("k", [2, 3, 5])
def test_equal_losses_keep_all(k):
    verdict = drop_defeated(np.full((9, k), 0.4), [str(i) for i in range(k)])
    assert (verdict.dropped, verdict.p_value) == ((), 1.0)


def test_level_holds_if_nothing_differs():
    """At 5 %, about one in twenty tests drops a contender by chance."""
    rng = np.random.default_rng(0)
    for k in (2, 4):
        drops = [bool(drop_defeated(rng.normal(size=(20, k)), NAMES[:k]).dropped) for _ in range(600)]
        assert 0.01 < np.mean(drops) < 0.08
