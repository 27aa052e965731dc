"""How well one column predicts the target."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score

from cashmere.data.task import TaskType
from cashmere.inspection.solo_skill import solo_skill, target_matrix

N = 600


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def part(rng):
    return rng.permutation(N) % 3


def test_a_column_that_knows_the_target_has_nearly_full_skill(rng, part):
    y = rng.integers(0, 3, N)
    targets = target_matrix(y, TaskType.MULTICLASS)
    assert solo_skill(y.astype(float), targets, part) > 0.99
    assert solo_skill(y.astype(float), targets, part, n_levels=3) > 0.95
    values = rng.lognormal(0, 3, N)
    assert solo_skill(np.log(values), target_matrix(values, TaskType.REGRESSION), part) > 0.99


def test_noise_has_no_skill(rng, part):
    targets = target_matrix(rng.integers(0, 2, N), TaskType.BINARY)
    assert solo_skill(rng.normal(size=N), targets, part) < 0.05
    assert abs(solo_skill(np.arange(N) % 200 * 1.0, targets, part, n_levels=200)) < 0.2


@pytest.mark.parametrize("n_rows", [300, 1000])
def test_weak_relations_show_on_short_tables(n_rows):
    skills = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values, part = rng.normal(size=n_rows), rng.permutation(n_rows) % 3
        y = (rng.random(n_rows) < 1 / (1 + np.exp(-values))).astype(int)  # area under the curve 0.74
        noisy = values / 2 + rng.normal(size=n_rows)  # R squared 0.2
        targets = target_matrix(y, TaskType.BINARY), target_matrix(noisy, TaskType.REGRESSION)
        skills.append([solo_skill(values, each, part) for each in targets])
    assert np.all(np.mean(skills, axis=0) > 0.08)


def test_identifying_a_rare_class_is_skill(rng, part):
    y = (np.arange(N) % 40 == 0).astype(int)
    targets = target_matrix(y, TaskType.BINARY)
    assert solo_skill(y + rng.uniform(0, 0.5, N), targets, part) > 0.95


def test_missing_values_can_predict(rng, part):
    y = rng.integers(0, 2, N)
    targets = target_matrix(y, TaskType.BINARY)
    values = np.where(y == 1, np.nan, rng.normal(size=N))
    assert solo_skill(values, targets, part) > 0.95
    assert solo_skill(np.where(y == 1, np.nan, 0.0), targets, part, n_levels=1) > 0.95


def test_skill_of_levels_is_the_explained_variance_of_shrunken_means(rng, part):
    levels, y = rng.integers(0, 4, N), rng.normal(size=N)
    targets = target_matrix(y + levels, TaskType.REGRESSION)
    predicted, mean = np.empty(N), np.empty(N)
    for number in range(3):
        train, test = part != number, part == number
        mean[test] = targets[train, 0].mean()
        for level in range(4):
            rows = train & (levels == level)
            shrunk = (targets[rows, 0].sum() + 5 * targets[train, 0].mean()) / (rows.sum() + 5)
            predicted[test & (levels == level)] = shrunk
    expected = 1 - np.square(targets[:, 0] - predicted).sum() / np.square(targets[:, 0] - mean).sum()
    assert solo_skill(levels.astype(float), targets, part, n_levels=4) == pytest.approx(expected)
    assert expected == pytest.approx(r2_score(targets[:, 0], predicted), abs=0.01)


@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-1e3, 1e3))
def test_increasing_transformations_change_nothing(scale, shift):
    values = np.random.default_rng(0).normal(size=90)
    y = np.round(values, 1)
    targets, part = target_matrix(y, TaskType.REGRESSION), np.arange(90) % 3
    np.testing.assert_allclose(target_matrix(y * scale + shift, TaskType.REGRESSION), targets)
    assert solo_skill(values * scale, targets, part) == pytest.approx(solo_skill(values, targets, part), abs=1e-6)


def test_many_classes_are_the_frequent_ones_and_the_rest():
    y = np.repeat(np.arange(30), np.arange(30, 0, -1))
    targets = target_matrix(y, TaskType.MULTICLASS)
    assert targets.shape == (len(y), 20)
    assert (targets.sum(axis=1) == 1).all()
    assert targets[:, 0].sum() == 30 and targets[:, -1].sum() == sum(range(1, 12))


def test_skill_is_zero_for_a_constant_target():
    assert solo_skill(np.arange(9.0), np.ones((9, 1)), np.arange(9) % 3) == 0.0
