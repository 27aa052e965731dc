"""Patience on recordings: the rule, and its summary."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.experiments.patience import JudgedPool, judge, stop_after, summarise
from benchmarks.recordings.finding import find_recordings
from benchmarks.recordings.recorded_history import load_recorded

NUMBERS = [10, 20, 30, 40, 50, 60]


@pytest.mark.parametrize(
    ("losses", "least", "stretch", "end"),
    [
        ([6, 5, 4, 3, 2, 1], 0, 2.0, 60),
        ([2, 1, 3, 3, 3, 3], 0, 2.0, 40),
        ([1, 2, 3, 3, 3, 3], 30, 2.0, 30),
        ([2, 1, 3, 3, 3, 3], 0, np.inf, 60),
        ([2, 1, 3, 3, 3, 0], 40, 0.0, 40),
    ],
)
def test_rule_stops_after_a_stretch_without_improvement(losses, least, stretch, end):
    assert NUMBERS[stop_after(NUMBERS, losses, least=least, stretch=stretch)] == end


def test_change_is_the_effect_of_continuing():
    run = [
        JudgedPool(recording="a", rows=60, seed=0, candidates=n, cross_fitted=loss, test=test)
        for n, loss, test in zip(NUMBERS, [2, 1, 3, 3, 3, 3], [5, 4, 4, 3, 4, 6], strict=True)
    ]
    found = summarise(pd.DataFrame(run)).set_index("rule")
    assert found.loc["to the end", "mean %"] == 0
    assert found.loc["40 at most", "mean %"] == pytest.approx(-50)
    assert found.loc["40, then 2 x", "end"] == 40


def test_every_algorithm_comes_before_any_comes_twice():
    (recording,) = find_recordings(["cmc-classic"])
    found = list(judge(load_recorded(recording.path), rows=60, seed=0, most=20))
    assert [pool.candidates for pool in found] == [10, 20]
    assert np.isfinite([pool.test for pool in found]).all()
