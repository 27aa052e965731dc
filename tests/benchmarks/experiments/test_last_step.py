"""Rules of the last step, judged on recordings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks.experiments.last_step import (
    REFERENCE,
    Pool,
    judge,
    mean_of_parts,
    nearest_weights,
    partly_equal,
    quadratic_choice,
)
from benchmarks.recordings.recorded_history import RECORDED, load_recorded
from cashmere.evaluation.metrics import METRICS


def pool(predictions, y):
    metric = METRICS["rmse"]
    losses = np.array([metric.loss(y, prediction) for prediction in predictions])
    return Pool(predictions=list(predictions), y=y, metric=metric, losses=losses)


@given(arrays(np.float64, 8, elements=st.floats(-3, 3)), st.sampled_from([0.125, 0.2, 0.5, 1.0]))
def test_nearest_weights_are_weights_and_no_others_are_nearer(point, most):
    found = nearest_weights(point, most)
    assert found.sum() == pytest.approx(1, abs=1e-6)
    assert found.min() >= 0
    assert found.max() <= most + 1e-12
    equal = np.full(8, 1 / 8)
    assert np.linalg.norm(found - point) <= np.linalg.norm(equal - point) + 1e-6


def test_quadratic_choice_prefers_different_errors_as_far_as_diversity_counts():
    y = np.random.default_rng(0).normal(size=200)
    error, other = np.random.default_rng(1).normal(size=(2, 200))
    similar = [y + error, y + 1.01 * error, y + 1.1 * other]
    assert sorted(quadratic_choice(pool(similar, y), 2, 0.9)) == [0, 2]
    assert sorted(quadratic_choice(pool(similar, y), 2, 0.01)) == [0, 1]


def test_weights_become_equal_as_their_share_grows():
    weights = np.array([0.7, 0.0, 0.3])
    np.testing.assert_allclose(partly_equal(weights, 0.5), [0.6, 0.0, 0.4])
    np.testing.assert_allclose(partly_equal(weights, 1.0), [0.5, 0.0, 0.5])


def test_mean_of_parts_is_a_mean_of_selections():
    rng = np.random.default_rng(0)
    y = rng.normal(size=100)
    weights = mean_of_parts(pool(y + rng.normal(size=(6, 100)), y), 5, rng)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(weights * 125, np.round(weights * 125), atol=1e-9)


def test_rules_are_judged_on_rows_that_did_not_choose():
    history = load_recorded(RECORDED / "quake-volcano.zip")
    judged = {row.rule: row for row in judge(history, rows=250, candidates=12, n_pools=1)}
    assert judged[REFERENCE].change == 0
    assert judged["among the best 10"].members <= 10
    assert {row.pools for row in judged.values()} == {1}
    assert all(abs(row.change) < 20 for row in judged.values())
