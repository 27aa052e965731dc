from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, TimeSeriesSplit

from cashmere.data.resampling import choose_resampling, make_folds
from cashmere.data.task import TaskType
from cashmere.exceptions import DataError, InvalidParameterError

BINARY, MULTICLASS, REGRESSION = TaskType


@settings(max_examples=50, deadline=None)
@given(y=st.lists(st.integers(0, 4), min_size=2, max_size=60), k=st.integers(2, 10), seed=st.integers(0, 99))
def test_every_row_validates_once_and_classes_are_spread(y, k, seed):
    y = np.unique(np.array(y), return_inverse=True)[1]
    folds = make_folds(y, MULTICLASS, f"{k}fold", seed=seed)
    assert len(folds) == min(k, len(y))
    joined = np.concatenate([fold.validation for fold in folds])
    assert sorted(joined) == list(range(len(y)))
    for fold in folds:
        assert sorted([*fold.train, *fold.validation]) == list(range(len(y)))
    counts = np.array([np.bincount(y[fold.validation], minlength=5) for fold in folds])
    assert (counts.max(axis=0) - counts.min(axis=0)).max() <= 1
    sizes = counts.sum(axis=1)
    assert sizes.max() - sizes.min() <= 1


def test_seed_decides_the_folds():
    y = np.arange(40) % 2
    a, b, c = (make_folds(y, BINARY, "5fold", seed=seed)[0].validation for seed in (1, 1, 2))
    assert np.array_equal(a, b) and not np.array_equal(a, c)


def test_holdout_takes_a_quarter_of_each_class():
    y = np.repeat([0, 1, 2], [100, 8, 1])
    (fold,) = make_folds(y, MULTICLASS, "holdout", seed=0)
    assert np.bincount(y[fold.validation], minlength=3).tolist() == [25, 2, 0]


def test_holdout_validates_at_most_twenty_thousand_rows():
    (fold,) = make_folds(np.zeros(200_000), REGRESSION, "holdout", seed=0)
    assert len(fold.validation) == 20_000


def test_holdout_of_classes_with_one_row_each_is_possible():
    (fold,) = make_folds(np.arange(3), MULTICLASS, "holdout", seed=0)
    assert len(fold.validation) == 1 and len(fold.train) == 2


@pytest.mark.parametrize(("n", "expected"), [(100, 5), (20_000, 5), (20_001, 1)])
def test_auto_depends_on_the_rows(n, expected):
    assert len(make_folds(np.zeros(n), REGRESSION, "auto", seed=0)) == expected


@pytest.mark.parametrize(
    ("n_rows", "n_cells", "expected"),
    [
        (100, 1000, "5fold"),
        (5000, 2_400_000, "5fold"),
        (5000, 2_400_001, "3fold"),
        (5001, 240_000, "5fold"),
        (5001, 240_001, "3fold"),
        (30_000, 240_000, "5fold"),
        (30_000, 240_001, "3fold"),
        (37_500, 6_000_000, "3fold"),
        (37_500, 6_000_001, "holdout"),
        (37_501, 500_000, "holdout"),
        (2000, 2_400_001, "3fold"),
        (2000, 24_000_000, "3fold"),  # up to four times as many
        (2000, 24_000_001, "holdout"),
        (5000, 12_000_000, "3fold"),  # twice as many
        (5000, 12_000_001, "holdout"),
    ],
)
def test_a_budget_of_time_decides_how_many_folds_there_are(n_rows, n_cells, expected):
    assert choose_resampling(n_rows, n_cells, seconds=60) == expected


@pytest.mark.parametrize("splitter", [GroupKFold(3), KFold(13)])
def test_splitter_that_fails_is_an_error_of_ours(splitter):
    with pytest.raises(
        InvalidParameterError, match=r"Its folds cannot be read: .*list\(splitter.split\(X, y, groups\)\)"
    ):
        make_folds(np.zeros(12), REGRESSION, splitter, seed=0, n_columns=2)


def test_single_split_must_be_in_a_list():
    first, second = np.arange(8), np.arange(8, 12)
    with pytest.raises(InvalidParameterError, match=r"expected pairs, found ndarray; a single split is \[\(training"):
        make_folds(np.zeros(12), REGRESSION, (first, second), seed=0)
    (fold,) = make_folds(np.zeros(12), REGRESSION, [(first, second)], seed=0)
    assert fold.validation.tolist() == second.tolist()


@pytest.mark.parametrize("splitter", [KFold(3), RepeatedKFold(n_splits=2, n_repeats=2), TimeSeriesSplit(3)])
def test_splitters_of_sklearn_are_used_as_they_are(splitter):
    y = np.arange(12.0)
    folds = make_folds(y, REGRESSION, splitter, seed=0, n_columns=2)
    assert len(folds) == splitter.get_n_splits(np.zeros((12, 2)))


def test_pairs_of_rows_are_used():
    (fold,) = make_folds(np.arange(4.0), REGRESSION, [([0, 1], [2, 3])], seed=0)
    assert fold.train.tolist() == [0, 1] and fold.validation.tolist() == [2, 3]


@pytest.mark.parametrize(
    "resampling",
    ["", "fold", "0fold", "1fold", "-3fold", "five", 5, None, [], [([0], [])], [([0, 1], [1, 2])], [([0], [99])]],
)
def test_bad_resampling_is_refused(resampling):
    with pytest.raises(InvalidParameterError, match="resampling must be"):
        make_folds(np.arange(4.0), REGRESSION, resampling, seed=0)


@pytest.mark.parametrize("rows", [[True, True, False, False], [0.5, 1.5], ["0", "1"]])
def test_folds_of_anything_but_row_numbers_are_refused(rows):
    with pytest.raises(InvalidParameterError, match=r"expected row numbers, found .*flatnonzero"):
        make_folds(np.arange(4.0), REGRESSION, [(rows, [3])], seed=0)


def test_one_row_is_refused():
    with pytest.raises(DataError, match=r"1 sample\(s\).*n_samples=1.*minimum of 2"):
        make_folds(np.zeros(1), REGRESSION, "auto", seed=0)
