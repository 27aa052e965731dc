"""Splits of recordings: every seed has its own, and all of them have the rows that no learner has seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_recording import make_recording

from benchmarks.recordings.recorded_history import RECORDED, load_recorded
from benchmarks.recordings.redrawn_split import draw_rows, redraw_split
from cashmere.data.task import TaskType


def rows_of(history):
    """Return the rows of both parts, each as what all configurations predict for it and its target."""
    validation, test = (
        {(part[history.succeeded, i].tobytes(), float(y)) for i, y in enumerate(targets)}
        for part, targets in ((history.validation, history.y_validation), (history.test, history.y_test))
    )
    return validation, test


@pytest.mark.parametrize("task_type", list(TaskType))
def test_parts_of_a_split_are_the_unseen_rows_and_share_none(task_type):
    history = make_recording(task_type)
    validation, test = rows_of(history)
    for seed in range(3):
        redrawn = rows_of(redraw_split(history, seed))
        assert [len(part) for part in redrawn] == [len(validation), len(test)]
        assert redrawn[0] | redrawn[1] == validation | test and not redrawn[0] & redrawn[1]


@pytest.mark.long
@pytest.mark.parametrize("name", ["quake-volcano", "cmc-classic", "delta_elevators-classic"])
def test_seeds_differ_and_one_seed_is_always_the_same(name):
    history = load_recorded(RECORDED / f"{name}.zip")
    again = redraw_split(redraw_split(history, 0), 1)
    splits = [redraw_split(history, seed) for seed in (0, 1, 1)]
    assert np.array_equal(splits[1].validation, splits[2].validation, equal_nan=True)
    assert not np.array_equal(splits[0].validation, splits[1].validation, equal_nan=True)
    assert not np.array_equal(again.validation, splits[1].validation, equal_nan=True)
    for split in splits:
        assert split.validation.shape == history.validation.shape and split.test.shape == history.test.shape
        if history.task_type.is_classification:
            shares = [np.bincount(y) / len(y) for y in (split.y_validation, split.y_test)]
            np.testing.assert_allclose(*shares, atol=2 / len(split.y_validation))


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.data(), st.booleans())
def test_exactly_n_rows_are_drawn(y, data, classes):
    n = data.draw(st.integers(1, len(y) - 1))
    drawn = draw_rows(np.array(y), n, data.draw(st.integers(0, 99)), classes=classes)
    assert drawn.sum() == n
    if classes:
        for code in set(y):
            of_class = np.array(y) == code
            assert abs(drawn[of_class].sum() - of_class.sum() * n / len(y)) < 1 + 1e-9
