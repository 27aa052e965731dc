from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from cashmere.analysis.ranking_curves import corners, ranking_curves
from cashmere.exceptions import ArrayError


@pytest.mark.parametrize("weighted", [False, True])
def test_curves_equal_those_of_scikit_learn(weighted):
    rng = np.random.default_rng(0)
    z = rng.random(500) < 0.2
    score = np.round(z + rng.normal(size=500), 1)  # with ties
    weight = rng.integers(0, 4, 500).astype(float) if weighted else None
    found = ranking_curves(z, score, weight=weight)
    rate, recall, _ = roc_curve(z, score, sample_weight=weight, drop_intermediate=False)
    np.testing.assert_allclose(found.false_positive_rate, rate)
    np.testing.assert_allclose(found.recall, recall)
    precision, recall, _ = precision_recall_curve(z, score, sample_weight=weight)
    np.testing.assert_allclose(found.recall[1:], recall[-2::-1])
    np.testing.assert_allclose(found.precision[1:], precision[-2::-1])
    assert found.area == pytest.approx(roc_auc_score(z, score, sample_weight=weight))
    assert found.average_precision == pytest.approx(average_precision_score(z, score, sample_weight=weight))


def test_a_class_alone_has_no_curve():
    with pytest.raises(ArrayError, match="others"):
        ranking_curves(np.ones(3, dtype=bool), np.arange(3.0))
    with pytest.raises(ArrayError, match="weight"):
        ranking_curves(np.array([True, False]), np.arange(2.0), weight=np.array([1.0, 0.0]))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40))
def test_curves_rise_and_are_invariant_to_monotone_maps(rows):
    z, score = (np.array(part) for part in zip(*rows, strict=True))
    if z.all() or not z.any():
        return
    found, mapped = ranking_curves(z, score), ranking_curves(z, np.exp(score) - 7)
    np.testing.assert_array_equal(found.recall, mapped.recall)
    for part in (found.recall, found.false_positive_rate):
        assert (np.diff(part) >= 0).all()
        assert (part[0], part[-1]) == (0, 1)
    assert 0 <= found.area <= 1


def test_few_points_keep_the_area_below_a_curve():
    rng = np.random.default_rng(1)
    z = rng.random(20_000) < 0.3
    found = ranking_curves(z, z + rng.normal(size=20_000))
    kept = corners(found.false_positive_rate, found.recall, 120)
    assert len(kept) <= 122
    area = np.diff(found.false_positive_rate[kept]) @ (found.recall[kept][1:] + found.recall[kept][:-1]) / 2
    assert area == pytest.approx(found.area, abs=1e-3)
