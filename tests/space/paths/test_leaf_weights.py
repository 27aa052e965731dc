"""The least weight of a leaf under deviances."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.data.task import TaskProfile, TaskType
from cashmere.evaluation.metrics import get_metric
from cashmere.space import BuildContext, make_space
from cashmere.space.path import PathData
from cashmere.space.paths.leaf_weights import least_leaf_weight, weight_of_effective_row

TASK, N_ROWS, N_ROUNDS = TaskType.REGRESSION, 2000, 50


def deviance_terms(y, f, power):
    """Half the Tweedie deviance of e^f, without what does not depend on f."""
    return -y * np.exp((1 - power) * f) / (1 - power) + np.exp((2 - power) * f) / (2 - power)


@settings(deadline=None)
@given(st.floats(1.1, 1.9), st.floats(0.01, 1e4), st.integers(0, 2**31))
def test_weight_is_the_second_derivative_at_the_mean_for_each_effective_row(power, scale, seed):
    rng = np.random.default_rng(seed)
    y = scale * rng.gamma(2.0, size=50) * (rng.random(50) < 0.5)
    y[0], w = scale, rng.uniform(0.1, 3.0, size=50)
    f, step = np.log(np.average(y, weights=w)), 1e-3
    before, at, after = (np.sum(w * deviance_terms(y, f + s, power)) for s in (-step, 0.0, step))
    second = (after - 2 * at + before) / step**2
    expected = second / len(y) * np.average(y**2, weights=w) / np.average(y, weights=w) ** 2
    assert weight_of_effective_row(y, w, power) == pytest.approx(expected, rel=1e-3)


def test_zeros_alone_need_no_least_weight():
    learner, X = SimpleNamespace(objective="gamma"), np.zeros((3, 1))
    data = PathData(X=X, y=X[:, 0], weight=None, unseen=X, n_classes=1, categorical=X[0] > 0, n_threads=1)
    assert least_leaf_weight(learner, data) is None
    assert least_leaf_weight(learner, replace(data, y=X[:, 0] + 2)) == 5


@pytest.mark.parametrize("algorithm", ["lightgbm", "xgboost"])
@pytest.mark.parametrize(("metric", "share"), [("tweedie@1.7", 0.1), ("gamma", 1.0)])
@pytest.mark.parametrize("unit", [1.0, 1e4])
def test_boosters_hardly_learn_from_noise_whatever_the_unit(algorithm, metric, share, unit):
    rng = np.random.default_rng(3)
    y = unit * rng.lognormal(0.0, 1.5, size=2 * N_ROWS) * (rng.random(2 * N_ROWS) < share)
    X, metric = rng.normal(size=(2 * N_ROWS, 6)).astype(np.float32), get_metric(metric, TASK)
    profile = TaskProfile(task_type=TASK, n_rows=N_ROWS, n_columns=6, power=metric.power)
    space, no_codes = make_space("default", profile), np.zeros(6, dtype=bool)
    configuration = space.completed({"algorithm": algorithm})
    context = BuildContext(
        task_type=TASK, n_classes=1, n_rows=N_ROWS, n_features=6, categorical=no_codes, power=metric.power
    )
    data = PathData(
        X=X[:N_ROWS], y=y[:N_ROWS], weight=None, unseen=X[N_ROWS:], n_classes=1, categorical=no_codes, n_threads=1
    )
    path = space.algorithm_of(configuration).path.follow(space.build(configuration, context)[-1], data)
    path.advance(N_ROUNDS)
    constant = metric.loss(y[N_ROWS:], np.full(N_ROWS, y[:N_ROWS].mean()))
    assert metric.loss(y[N_ROWS:], path.predict()) < 1.1 * constant  # with leaves of any weight, up to three times it
