from __future__ import annotations

import numpy as np
import pytest

from cashmere.data.task import TaskType
from cashmere.ensembles import select_ensemble
from cashmere.ensembles.worth import worth_of_groups
from cashmere.evaluation.metrics import get_metric

BRIER = get_metric("brier", TaskType.BINARY)


def problem(n=12, n_rows=60, seed=0):
    """Return probabilities of two classes, some of them better, and targets."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_rows) % 2)
    right = np.clip(rng.normal(rng.uniform(0.45, 0.7, size=(n, 1)), 0.2, size=(n, n_rows)), 0, 1)
    second = np.where(y == 1, right, 1 - right)
    return np.stack([1 - second, second], axis=2), y


def loss_of(predictions, y, kept, weight=None):
    found = select_ensemble(predictions[kept], y, BRIER, size=10, weight=weight)
    return BRIER.loss(y, np.tensordot(found.weights, predictions[kept], axes=1), weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_worth_is_the_difference_of_two_selections(weighted):
    predictions, y = problem()
    weight = np.linspace(0.5, 2, len(y)) if weighted else None
    groups = np.arange(len(predictions)) % 4
    worth = worth_of_groups(predictions, groups, y, BRIER, n_groups=4, size=10, row_weights=weight)
    whole = loss_of(predictions, y, np.full(len(predictions), True), weight)
    expected = [loss_of(predictions, y, groups != group, weight) - whole for group in range(4)]
    np.testing.assert_allclose(worth, expected, atol=1e-9)
    assert (worth > 0).any()


def test_groups_without_members_are_worth_nothing():
    predictions, y = problem()
    predictions[5:] = 1 - predictions[5:]  # worse than chance
    worth = worth_of_groups(predictions, (np.arange(12) >= 5) * 2, y, BRIER, n_groups=4, size=5)
    assert worth[0] > 0
    np.testing.assert_array_equal(worth[1:], 0)


def test_a_twin_in_another_group_takes_the_place():
    predictions, y = problem(n=2)
    twins = np.concatenate([predictions, predictions])
    np.testing.assert_allclose(
        worth_of_groups(twins, np.array([0, 0, 1, 1]), y, BRIER, n_groups=2, size=10), 0, atol=1e-12
    )


def test_the_only_group_is_worth_everything():
    predictions, y = problem(n=3)
    assert worth_of_groups(predictions, np.ones(3, dtype=int), y, BRIER, n_groups=2).tolist() == [0, np.inf]
