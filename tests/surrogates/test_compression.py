from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.surrogates.compression import (
    BLOCK_VALUES,
    FARTHEST,
    compress,
    cut_values,
    distances_to_truth,
    row_blocks,
    stack_rows,
)


def squared_distances(lines):
    return np.square(lines[:, None] - lines[None]).sum(axis=-1)


@given(
    n=st.integers(1, 12),
    n_rows=st.integers(1, 30),
    n_classes=st.integers(2, 5),
    seed=st.integers(0, 99),
    w=st.booleans(),
)
def test_all_coordinates_keep_the_distances(n, n_rows, n_classes, seed, w):
    rng = np.random.default_rng(seed)
    stack = rng.dirichlet(np.ones(n_classes), size=(n, n_rows)).astype(np.float32)
    weights = rng.random(n_rows) + 0.1
    coordinates = compress(stack, rng.integers(n_classes, size=n_rows), n, row_weights=weights if w else None)
    by_row = np.square(stack[:, None] - stack[None]).sum(axis=-1)
    expected = np.average(by_row, axis=-1, weights=weights if w else None)
    np.testing.assert_allclose(squared_distances(coordinates), expected, atol=1e-6)


def test_values_are_in_units_of_the_target():
    rng = np.random.default_rng(0)
    y = rng.normal(size=50)
    stack = y + rng.normal(size=(8, 50))
    scaled = compress(1000 + 3 * stack, 1000 + 3 * y, 8)
    np.testing.assert_allclose(squared_distances(scaled), squared_distances(compress(stack, y, 8)), rtol=1e-5)


def test_leading_coordinates_hold_most_of_the_variance():
    rng = np.random.default_rng(1)
    stack = (rng.normal(size=(30, 3)) * [3, 2, 1]) @ rng.normal(size=(3, 200)) + 0.01 * rng.normal(size=(30, 200))
    coordinates = compress(stack, rng.normal(size=200) * 10, 5)
    spread = coordinates.std(axis=0)
    assert np.all(np.diff(spread) < 0)
    assert spread[3] < 0.05 * spread[2]


def test_one_diverged_model_does_not_hide_the_others():
    rng = np.random.default_rng(2)
    y = rng.normal(size=100)
    stack = np.concatenate([y + rng.normal(size=(9, 100)), 1e30 * rng.normal(size=(1, 100))])
    coordinates = compress(stack, y, 20)
    assert coordinates.shape[1] >= 8
    assert len(np.unique(coordinates[:9], axis=0)) == 9


@pytest.mark.parametrize("stack", [np.full((4, 10, 2), 0.5), np.full((1, 10), 1e6), np.full((3, 1, 3), 1 / 3)])
def test_equal_predictions_are_one_point(stack):
    np.testing.assert_array_equal(compress(stack, np.zeros(stack.shape[1]), 5), np.zeros((len(stack), 1)))


def test_largest_coordinate_is_positive():
    rng = np.random.default_rng(3)
    coordinates = compress(rng.random((9, 40)), rng.random(40), 9)
    largest = np.abs(coordinates).argmax(axis=0)
    assert np.all(coordinates[largest, np.arange(coordinates.shape[1])] > 0)


def test_blocks_of_rows_change_nothing(monkeypatch):
    rng = np.random.default_rng(4)
    stack, y = rng.dirichlet(np.ones(4), size=(6, 50)), rng.integers(4, size=50)
    together = compress(stack, y, 6)
    monkeypatch.setattr("cashmere.surrogates.compression.BLOCK_VALUES", 6 * 4 * 7)
    assert len(list(row_blocks(stack))) == 8
    np.testing.assert_allclose(compress(stack, y, 6), together, atol=1e-6)


def test_blocks_cover_all_rows_once():
    stack = np.broadcast_to(np.float32(0), (1000, 100_003, 2))
    blocks = list(row_blocks(stack))
    assert [row for block in blocks[:2] for row in range(100_003)[block]] == list(range(blocks[1].stop))
    assert all(stack[:, block].size <= BLOCK_VALUES for block in blocks)


def test_stack_is_a_copy_of_all_rows_when_there_are_few():
    predictions = [np.ones((5, 2), dtype=np.float16), np.zeros((5, 2), dtype=np.float32)]
    stack, rows = stack_rows(predictions, np.arange(5), max_rows=5, max_values=10)
    assert stack.dtype == np.float32
    np.testing.assert_array_equal(rows, range(5))
    np.testing.assert_array_equal(stack, predictions)


def test_rows_are_bounded_and_the_same_at_every_call():
    y = np.repeat([0, 1], [900, 100])
    predictions = [np.arange(3000.0).reshape(1000, 3)]
    stack, rows = stack_rows(predictions, y, max_rows=50, max_values=90)
    assert stack.shape == (1, 30, 3)
    np.testing.assert_array_equal(np.bincount(y[rows]), [27, 3])
    np.testing.assert_array_equal(stack[0], predictions[0][rows])
    np.testing.assert_array_equal(stack_rows(predictions, y, max_rows=50, max_values=90)[1], rows)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_distance_to_truth_is_the_root_of_the_squared_error(n_classes, monkeypatch):
    monkeypatch.setattr("cashmere.surrogates.compression.BLOCK_VALUES", 100)
    rng = np.random.default_rng(5)
    stack, y, weights = (
        rng.dirichlet(np.ones(n_classes), size=(4, 30)),
        rng.integers(n_classes, size=30),
        rng.random(30),
    )
    squares = np.square(stack - np.eye(n_classes)[y]).sum(axis=2)
    found = distances_to_truth(stack, y, row_weights=weights)
    np.testing.assert_allclose(found, np.sqrt(np.average(squares, axis=1, weights=weights)))
    values, target = rng.normal(size=(4, 30)), rng.normal(size=30)
    expected = np.sqrt(np.square(values - target).mean(axis=1)) / target.std()
    np.testing.assert_allclose(distances_to_truth(values, target), expected)


def test_values_are_cut_as_they_are_compressed():
    rng = np.random.default_rng(6)
    y = 5 + 2 * rng.normal(size=80)
    stack = np.concatenate([y + rng.normal(size=(6, 80)), 1e8 * rng.normal(size=(2, 80))]).astype(np.float32)
    cut = stack.copy()
    cut_values(cut, y)
    assert cut.dtype == np.float32
    np.testing.assert_array_equal(cut[:6], stack[:6])
    np.testing.assert_allclose(np.abs(cut[6:] - y.mean()), FARTHEST * y.std(), rtol=1e-6)
    np.testing.assert_allclose(compress(cut, y, 8), compress(stack, y, 8), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(distances_to_truth(cut, y), distances_to_truth(stack, y), rtol=1e-6)


def test_probabilities_are_not_cut():
    stack = np.full((2, 4, 3), 1e3)
    cut_values(stack, np.zeros(4, dtype=int))
    np.testing.assert_array_equal(stack, 1e3)
