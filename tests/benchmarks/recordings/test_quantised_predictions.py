"""Predictions as steps: nothing moves further than half a step, and no label changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks.recordings.quantised_predictions import (
    LEAST,
    add_up,
    differences,
    most_similar,
    to_codes,
    to_predictions,
    value_step,
)
from cashmere.data.task import TaskType

probability = st.floats(0, 1, width=32) | st.sampled_from([0.0, 1e-12, 1e-7, 1e-5, 0.4999, 0.5, 0.5001, 1 - 1e-6, 1.0])


def log_odds(p, rest):
    return np.log(np.maximum(p, LEAST)) - np.log(np.maximum(rest, LEAST))


@given(arrays(np.float64, (2, 5), elements=probability))
def test_log_odds_of_two_classes_move_by_half_a_step(second):
    given_ = np.stack([1 - second, second], axis=-1).astype(np.float32)
    back = to_predictions(to_codes(given_, TaskType.BINARY), TaskType.BINARY)
    np.testing.assert_array_equal(back.argmax(axis=-1), given_.argmax(axis=-1))
    np.testing.assert_allclose(back.sum(axis=-1), 1, atol=1e-6)
    before, now = (log_odds(*np.moveaxis(np.float64(each), -1, 0)[::-1]) for each in (given_, back))
    # Steps are 0.067 wide near one half and 0.3 where a probability is 5e-8.
    assert (np.abs(now - before) <= 0.0085 * np.hypot(4, before) + 1e-2).all()


@given(arrays(np.float64, (2, 3, 4), elements=st.floats(1e-9, 1)), st.booleans())
def test_the_likeliest_of_several_classes_stays_the_likeliest(weights, tied):
    if tied:
        weights[..., 2] = weights[..., 1]
    given_ = (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)
    back = to_predictions(to_codes(given_, TaskType.MULTICLASS), TaskType.MULTICLASS)
    np.testing.assert_array_equal(back.argmax(axis=-1), given_.argmax(axis=-1))
    np.testing.assert_allclose(back.sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(back, given_, atol=0.05)


@given(arrays(np.float64, (2, 6), elements=st.floats(-8, 8)), st.floats(0.01, 0.5))
def test_values_near_zero_move_by_half_a_step(values, step):
    back = to_predictions(to_codes(values, TaskType.REGRESSION, step), TaskType.REGRESSION, step)
    assert (np.abs(back - values) <= step / 2 * np.hypot(1, values / 8) * 1.05 + 1e-6).all()


def test_step_of_values_follows_the_best_configuration():
    y = np.random.default_rng(0).normal(size=1000)
    predictions = y + np.array([[0.5], [1.0]]) * np.random.default_rng(1).normal(size=(2, 1000))
    assert value_step(predictions, y) == pytest.approx(0.5 / 16, rel=0.1)
    smallest = value_step(y[None], y)
    (back,) = to_predictions(
        to_codes(np.array([[1e9, -1e9]]), TaskType.REGRESSION, smallest), TaskType.REGRESSION, smallest
    )
    np.testing.assert_allclose(back, [65504, -65504], rtol=1e-3)


@given(arrays(np.int16, (7, 4), elements=st.integers(-32768, 32767)))
def test_differences_add_up_to_the_codes(codes):
    parents = most_similar(codes)
    assert (parents < 0).sum() == 1
    np.testing.assert_array_equal(add_up(differences(codes, parents), parents), codes)


def test_parents_in_a_circle_are_refused():
    with pytest.raises(ValueError, match="no tree"):
        add_up(np.zeros((3, 2), dtype=np.int16), np.array([-1, 2, 1]))


def test_most_similar_configurations_are_neighbours():
    rng = np.random.default_rng(0)
    centres = rng.integers(-100, 100, size=(2, 300))
    codes = np.concatenate([centre + rng.integers(-3, 4, size=(5, 300)) for centre in centres]).astype(np.int16)
    parents = most_similar(codes)
    crossing = [i for i, parent in enumerate(parents) if parent >= 0 and (i < 5) != (parent < 5)]
    assert len(crossing) == 1
