from __future__ import annotations

import numpy as np
import pytest

from cashmere.data.rungs import LEAST_ROWS, rows_at, rung_order, rungs
from cashmere.data.task import TaskType


@pytest.mark.parametrize("n_rows", [1, 2, 9_999, 10_000, 29_999])
def test_small_tables_have_one_rung(n_rows):
    assert rungs(n_rows) == (1.0,)


@pytest.mark.parametrize("n_rows", [30_000, 90_000, 150_000, 980_000, 10_000_000])
def test_rungs_ascend_by_thirds_and_none_is_small(n_rows):
    shares = rungs(n_rows)
    assert len(shares) > 1 and shares[-1] == 1.0
    np.testing.assert_allclose(np.divide(shares[1:], shares[:-1]), 3)
    assert LEAST_ROWS <= rows_at(shares[0], n_rows) < 3 * LEAST_ROWS


def test_a_share_has_at_least_one_row():
    assert rows_at(1 / 27, 5) == 1 and rows_at(1.0, 5) == 5


@pytest.mark.parametrize("task_type", list(TaskType))
def test_order_is_a_permutation_that_depends_on_the_seed(task_type):
    y = np.arange(1000) % 3
    order = rung_order(y, task_type, 1)
    np.testing.assert_array_equal(np.sort(order), np.arange(1000))
    np.testing.assert_array_equal(order, rung_order(y, task_type, 1))
    assert not np.array_equal(order, rung_order(y, task_type, 2))


def test_every_leading_slice_has_the_classes_in_their_shares():
    y = np.repeat([0, 1, 2], [900, 97, 3])
    ordered = y[rung_order(y, TaskType.MULTICLASS, 0)]
    for n in (10, 37, 111, 333, 1000):
        counts = np.bincount(ordered[:n], minlength=3)
        assert (counts > 0).all()
        assert (np.abs(counts - n * np.array([0.9, 0.097, 0.003])) <= 2).all()


def test_rows_of_a_class_enter_at_random():
    y = np.repeat([0, 1], 500)
    first = rung_order(y, TaskType.BINARY, 0)[:100]
    assert 150 < first[y[first] == 0].mean() < 350 and np.ptp(first[y[first] == 0]) > 300
