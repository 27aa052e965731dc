"""No fold separates rows of a group, and none looks into the future."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import TimeSeriesSplit

from cashmere.data.resampling import choose_resampling, make_folds
from cashmere.data.row_structure import RowStructure, StructureKind
from cashmere.data.rungs import rung_order
from cashmere.data.structured_folds import structured_folds, structured_holdout
from cashmere.data.task import TaskType
from cashmere.exceptions import DataError

GROUPS, TIME = StructureKind.GROUPS, StructureKind.TIME
LABELS = st.lists(st.integers(0, 12), min_size=2, max_size=60).filter(lambda values: len(set(values)) > 1)


def separated(structure, fold):
    """Return whether a fold respects the structure; assert that it contains no row twice."""
    assert len(np.intersect1d(fold.train, fold.validation)) == 0 and len(fold.train) and len(fold.validation)
    train, validation = structure.codes[fold.train], structure.codes[fold.validation]
    return not set(train) & set(validation) if structure.kind is GROUPS else train.max() < validation.min()


@settings(max_examples=200, deadline=None)
@given(labels=LABELS, kind=st.sampled_from(StructureKind), n_folds=st.integers(1, 6), seed=st.integers(0, 99))
def test_folds_respect_the_structure(labels, kind, n_folds, seed):
    structure = RowStructure.from_values(labels, kind)
    n_folds = max(min(n_folds, structure.most_folds), 2 if kind is GROUPS else 1)
    y = np.random.default_rng(seed).integers(0, 3, len(labels))
    folds = structured_folds(structure, n_folds, np.random.default_rng(seed), classes=y)
    assert len(folds) == n_folds and all(separated(structure, fold) for fold in folds)
    judged = np.concatenate([fold.validation for fold in folds])
    assert len(np.unique(judged)) == len(judged)
    if kind is GROUPS:
        assert len(judged) == len(labels)
        for fold in folds:
            assert len(fold.train) + len(fold.validation) == len(labels)


@settings(max_examples=200, deadline=None)
@given(labels=LABELS, kind=st.sampled_from(StructureKind), n=st.integers(1, 30), seed=st.integers(0, 99))
def test_holdouts_respect_the_structure(labels, kind, n, seed):
    structure = RowStructure.from_values(labels, kind)
    fold = structured_holdout(structure, min(n, len(labels)), np.random.default_rng(seed))
    assert separated(structure, fold) and len(fold.train) + len(fold.validation) == len(labels)


@settings(max_examples=50, deadline=None)
@given(labels=LABELS, resampling=st.sampled_from(["auto", "2fold", "holdout"]), seed=st.integers(0, 99))
@pytest.mark.parametrize("kind", list(StructureKind))
@pytest.mark.parametrize("task_type", [TaskType.MULTICLASS, TaskType.REGRESSION])
def test_every_resampling_respects_the_structure(kind, task_type, labels, resampling, seed):
    structure = RowStructure.from_values(labels, kind)
    y = np.arange(len(labels)) % 3
    resampling = choose_resampling(len(y), structure=structure) if resampling == "auto" else resampling
    if resampling == "2fold" and structure.most_folds < 2:
        return
    folds = make_folds(y, task_type, resampling, seed=seed, structure=structure)
    assert folds and all(separated(structure, fold) for fold in folds)


@pytest.mark.parametrize(("n_rows", "n_folds"), [(100, 5), (97, 3), (20, 4), (12, 6)])
def test_folds_in_time_are_those_of_scikit_learn(n_rows, n_folds):
    order = np.random.default_rng(0).permutation(n_rows)
    folds = structured_folds(RowStructure.from_values(order, TIME), n_folds, np.random.default_rng(0))
    rows = np.argsort(order)  # from the oldest to the newest
    expected = TimeSeriesSplit(n_folds, test_size=n_rows // (2 * n_folds)).split(rows)
    for fold, (train, validation) in zip(folds, expected, strict=True):
        np.testing.assert_array_equal(fold.train, np.sort(rows[train]))
        np.testing.assert_array_equal(fold.validation, np.sort(rows[validation]))


@pytest.mark.parametrize(("n_rows", "n_folds", "gap"), [(100, 5, 7), (97, 3, 30), (20, 4, 2), (200, 5, 120)])
def test_gaps_are_those_of_scikit_learn(n_rows, n_folds, gap):
    order = np.random.default_rng(0).permutation(n_rows)
    structure = RowStructure.from_values(order, TIME, gap=gap + 1)
    rows = np.argsort(order)
    test_size = (n_rows - gap) // 2 // n_folds
    expected = TimeSeriesSplit(n_folds, test_size=test_size, gap=gap).split(rows)
    folds = structured_folds(structure, n_folds, np.random.default_rng(0))
    for fold, (train, validation) in zip(folds, expected, strict=True):
        np.testing.assert_array_equal(fold.train, np.sort(rows[train]))
        np.testing.assert_array_equal(fold.validation, np.sort(rows[validation]))
    holdout = structured_holdout(structure, 5, np.random.default_rng(0))
    assert order[holdout.train].max() == n_rows - 5 - gap - 1 and order[holdout.validation].min() == n_rows - 5


@pytest.mark.parametrize(("gap", "n_folds", "expected"), [(100, 5, (51, 50)), (150, 5, (26, 25)), (180, 5, (11, 10))])
def test_no_more_rows_validate_than_train_first(gap, n_folds, expected):
    structure = RowStructure.from_values(range(200), TIME, gap=gap)
    folds = structured_folds(structure, n_folds, np.random.default_rng(0))
    assert (len(folds[0].train), sum(len(fold.validation) for fold in folds)) == expected
    (holdout,) = make_folds(np.zeros(200), TaskType.REGRESSION, "holdout", seed=0, structure=structure)
    assert len(holdout.validation) == min(50, expected[1])
    assert choose_resampling(200, structure=structure) == "5fold"


def test_a_gap_leaves_fewer_folds():
    structure = RowStructure.from_values(range(20), TIME, gap=16)
    assert structure.usual_folds == 2 and choose_resampling(20, structure=structure) == "2fold"
    with pytest.raises(DataError, match=r"at most 4 blocks .* 5 folds were asked for"):
        structured_folds(structure, 5, np.random.default_rng(0))


def test_blocks_end_where_a_moment_does():
    months = RowStructure.from_values(np.repeat(np.arange(12), [1, 2, 30, 1, 1, 1, 40, 1, 1, 1, 1, 20]), TIME)
    folds = structured_folds(months, 3, np.random.default_rng(0))
    assert [(int(months.codes[f.train].max()), len(f.validation)) for f in folds] == [(5, 40), (6, 4), (10, 20)]


def test_holdout_in_time_is_the_newest_quarter():
    y = np.zeros(40)
    (fold,) = make_folds(y, TaskType.REGRESSION, "holdout", seed=0, structure=RowStructure.from_values(range(40), TIME))
    assert fold.validation.tolist() == list(range(30, 40))


def test_groups_are_dealt_evenly_and_differently_for_other_seeds():
    rng = np.random.default_rng(0)
    wards = RowStructure.from_values(np.repeat(np.arange(60), rng.integers(1, 12, 60)), GROUPS)
    rare = wards.codes % 6 == 0
    y = np.where(rng.random(len(rare)) < 0.8, rare, ~rare).astype(np.int64)  # a class that few groups have
    first, again, other = (make_folds(y, TaskType.BINARY, "5fold", seed=s, structure=wards) for s in (0, 0, 1))
    sizes = [len(fold.validation) for fold in first]
    shares = [y[fold.validation].mean() for fold in first]
    assert max(sizes) < 1.1 * min(sizes) and max(shares) < 1.15 * min(shares)
    assert all(np.array_equal(a.validation, b.validation) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a.validation, b.validation) for a, b in zip(first, other, strict=True))


def test_holdout_of_groups_has_about_a_quarter_of_the_rows_and_of_each_class():
    wards = RowStructure.from_values(np.arange(1000) // 10, GROUPS)
    y = (wards.codes % 5 == 0).astype(np.int64)
    (fold,) = make_folds(y, TaskType.BINARY, "holdout", seed=0, structure=wards)
    assert len(fold.validation) == 250 and y[fold.validation].mean() == pytest.approx(0.2, abs=0.05)


def test_a_giant_group_trains():
    wards = RowStructure.from_values([0] * 60 + list(range(1, 41)), GROUPS)
    fold = structured_holdout(wards, 25, np.random.default_rng(0))
    assert 0 not in wards.codes[fold.validation] and len(fold.validation) < 30


@pytest.mark.parametrize(
    ("labels", "kind", "resampling", "text"),
    [
        ("aabbcc", GROUPS, "5fold", "5 folds need as many groups, but 'groups' holds 3"),
        ([1, 1, 2, 2, 3], TIME, "3fold", "4 different moments for 3 folds in time, but 'time' holds 3"),
    ],
)
def test_too_few_groups_or_moments_are_refused(labels, kind, resampling, text):
    y = np.zeros(len(labels))
    with pytest.raises(DataError, match=text):
        make_folds(y, TaskType.REGRESSION, resampling, seed=0, structure=RowStructure.from_values(list(labels), kind))


@pytest.mark.parametrize(
    ("labels", "kind", "expected"),
    [
        ("aabb", GROUPS, "2fold"),
        ("abcdef", GROUPS, "5fold"),
        ([1, 2, 3], TIME, "2fold"),
        ([1, 2], TIME, "holdout"),
        ([1, 2, 3, 4, 5, 6], TIME, "3fold"),  # the older half only trains
        (list(range(20)), TIME, "5fold"),
        ([1, 2, 3, 4, 4, 4, 4, 4], TIME, "holdout"),
        ([4, 1, 1, 1, 1, 1, 2, 3], TIME, "3fold"),
    ],
)
def test_automatic_folds_are_not_more_than_groups_allow(labels, kind, expected):
    assert choose_resampling(100, structure=RowStructure.from_values(list(labels), kind)) == expected
    structure = RowStructure.from_values(list(labels), kind)
    assert choose_resampling(100, 100, seconds=600, structure=structure) == expected


@settings(max_examples=100, deadline=None)
@given(labels=LABELS, seed=st.integers(0, 99))
@pytest.mark.parametrize("task_type", [TaskType.MULTICLASS, TaskType.REGRESSION])
def test_rungs_hold_whole_groups_or_the_newest_rows(task_type, labels, seed):
    y = np.random.default_rng(seed).integers(0, 3, len(labels))
    groups = RowStructure.from_values(labels, GROUPS)
    order = rung_order(y, task_type, seed, groups)
    assert np.array_equal(np.sort(order), np.arange(len(y)))
    seen = groups.codes[order]
    assert np.count_nonzero(np.diff(seen)) == len(set(labels)) - 1  # rows of a group follow one another
    moments = RowStructure.from_values(labels, TIME)
    assert (np.diff(moments.codes[rung_order(y, task_type, seed, moments)]) <= 0).all()


def test_rungs_of_groups_have_the_classes_in_their_shares():
    wards = RowStructure.from_values(np.arange(3000) // 3, GROUPS)
    y = (wards.codes % 10 == 0).astype(np.int64)  # one ward in ten is of the second class
    for n in (300, 1000, 2000):
        assert y[rung_order(y, TaskType.BINARY, 0, wards)[:n]].mean() == pytest.approx(0.1, abs=0.02)


def test_many_groups_of_many_classes_take_the_memory_of_two_tables_of_shares():
    rng = np.random.default_rng(0)
    n_groups, n_classes = 1000, 200
    groups = RowStructure.from_values(np.arange(n_groups).repeat(2), GROUPS)
    classes = rng.permutation(np.arange(2 * n_groups) % n_classes)
    tracemalloc.start()
    try:
        structured_folds(groups, 5, rng, classes=classes)
        assert tracemalloc.get_traced_memory()[1] < 2.5 * 8 * n_groups * n_classes
    finally:
        tracemalloc.stop()
