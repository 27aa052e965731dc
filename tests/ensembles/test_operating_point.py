"""Thresholds that reach a rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cashmere.ensembles.operating_point import RATES, OperatingPoint


def rate_of(rate, called, is_positive, weight):
    right = {
        "recall": called & is_positive,
        "specificity": ~called & ~is_positive,
        "precision": called & is_positive,
    }[rate]
    whole = {"recall": is_positive, "specificity": ~is_positive, "precision": called}[rate]
    return (weight * right).sum() / (weight * whole).sum()


@settings(deadline=None)
@example(1074, "precision", 0.95, False)
@given(st.integers(0, 10_000), st.sampled_from(RATES), st.sampled_from([0.1, 0.5, 0.8, 0.95]), st.booleans())
def test_rate_is_reached_and_no_better_threshold_is(seed, rate, least, is_weighted):
    rng = np.random.default_rng(seed)
    is_positive = rng.random(200) < 0.3
    p = np.round(np.clip(rng.normal(0.3 + 0.3 * is_positive, 0.2), 0.01, 1), 2)  # with ties
    weight = rng.integers(1, 4, 200).astype(float) if is_weighted else np.ones(200)
    threshold = OperatingPoint(rate, least).threshold(p, is_positive, weight)
    assert 0 < threshold < 1
    reached = rate_of(rate, p >= threshold, is_positive, weight)
    possible = max(rate_of(rate, p >= each, is_positive, weight) for each in p) if rate == "precision" else 1.0
    assert reached >= min(least, possible) - 1e-12
    if rate == "precision" and possible >= least:
        assert all(rate_of(rate, p >= each, is_positive, weight) < least for each in np.unique(p[p < threshold]))
    if rate == "precision":
        return
    own, further = (is_positive, p[p > threshold]) if rate == "recall" else (~is_positive, p[p < threshold])
    if len(further):  # without the last of the rows that are right, none would be to spare
        called = p > further.min() if rate == "recall" else p >= further.max()
        assert rate_of(rate, called, is_positive, weight) < least * (1 + 1 / own.sum())


@pytest.mark.parametrize("rate", ["recall", "specificity"])
def test_new_rows_reach_the_rate_on_average(rate):
    rng, least, found = np.random.default_rng(0), 0.9, []
    for _ in range(400):
        is_positive = rng.random(120) < 0.3
        p = 1 / (1 + np.exp(-rng.normal(is_positive, 1)))
        threshold = OperatingPoint(rate, least).threshold(p[:60], is_positive[:60])
        found.append(rate_of(rate, p[60:] >= threshold, is_positive[60:], np.ones(60)))
    assert least - 0.005 < np.mean(found) < least + 0.05


def test_levels_that_nothing_reaches_get_the_closest_threshold():
    is_positive = np.array([False, True, True])
    assert OperatingPoint("precision", 0.99).threshold(np.array([0.9, 0.8, 0.1]), is_positive) < 0.1
    assert OperatingPoint("recall", 0.99).threshold(np.array([0.9, 0.8, 0.2]), is_positive) < 0.2
    assert 0.9 < OperatingPoint("specificity", 0.99).threshold(np.array([0.9, 0.8, 0.2]), is_positive) < 1


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("recall>=0.95", "recall>=0.95"),
        (" Sensitivity >= .9 ", "recall>=0.9"),
        ("precision>=0", None),
        ("recall>=1", None),
        ("recall>0.9", None),
        ("f1>=0.9", None),
    ],
)
def test_wishes_are_read(text, read):
    found = OperatingPoint.parse(text)
    assert (None if found is None else str(found)) == read
