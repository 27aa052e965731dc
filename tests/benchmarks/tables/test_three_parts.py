from __future__ import annotations

import numpy as np
import pytest

from benchmarks.tables.three_parts import split_rows


def shares(y: np.ndarray, rows: np.ndarray) -> dict[int, float]:
    codes, counts = np.unique(y[rows], return_counts=True)
    return dict(zip(codes.tolist(), (counts / len(rows)).tolist(), strict=True))


@pytest.mark.parametrize("n_rows", [1000, 500])
@pytest.mark.parametrize("codes", [[0, 1, 2], [0, 2, 3]], ids=["all codes", "a code that is absent"])
def test_classes_are_spread_evenly(codes, n_rows):
    y = np.random.default_rng(0).permutation(np.repeat(codes, [700, 250, 50]))
    parts = split_rows(y, n_rows, classes=True)
    assert [len(part) for part in parts] == [0.6 * n_rows, 0.2 * n_rows, 0.2 * n_rows]
    assert len(np.unique(np.concatenate(parts))) == n_rows
    for part in parts:
        assert (np.diff(part) > 0).all()
        assert shares(y, part) == pytest.approx({codes[0]: 0.7, codes[1]: 0.25, codes[2]: 0.05}, abs=0.006)


def test_class_of_one_row_trains_and_the_others_stay_even():
    y = np.repeat([0, 1, 2], [300, 100, 1])
    train, validation, test = split_rows(y, 1000, classes=True)
    assert 400 in train
    assert np.bincount(y[validation]).tolist() == np.bincount(y[test]).tolist() == [60, 20]


def test_class_of_one_row_is_not_drawn_from_a_larger_table():
    y = np.repeat([0, 1, 2], [300, 100, 1])
    parts = split_rows(y, 200, classes=True)
    assert np.bincount(y[np.concatenate(parts)]).tolist() == [150, 50]
    # As many common rows as may be drawn: nothing is left to draw from.
    assert 400 not in np.concatenate(split_rows(y, 400, classes=True))


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_class_of_few_rows_is_always_trained_on(size):
    y = np.repeat([0, 1], [400, size])
    train, validation, test = split_rows(y, 1000, classes=True)
    assert (y[train] == 1).any()
    assert len(train) + len(validation) + len(test) == len(y)


def test_more_classes_than_test_rows_are_split_anyway():
    y = np.repeat(np.arange(30), 4)
    assert [len(part) for part in split_rows(y, 1000, classes=True)] == [72, 24, 24]


def test_values_are_drawn_without_strata():
    y = np.random.default_rng(0).normal(size=100)
    assert [len(part) for part in split_rows(y, 50, classes=False)] == [30, 10, 10]
