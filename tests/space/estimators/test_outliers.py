from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import log_loss

from cashmere.data.task import TaskProfile, TaskType
from cashmere.model.content import check_objects
from cashmere.model.content.fault import ContentError
from cashmere.space.component import BuildContext
from cashmere.space.estimators.outliers import OutlierClipper
from cashmere.space.named.registry import make_space

NUMBERS = st.one_of(st.floats(-(2.0**127), 2.0**127, width=32), st.just(float("nan")))
TABLES = hnp.arrays(np.float32, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=NUMBERS)


def clipper(n_columns: int) -> OutlierClipper:
    return OutlierClipper(np.zeros(n_columns, dtype=bool))


@settings(deadline=None)
@given(X=TABLES)
def test_most_rows_gaps_and_the_type_stay(X):
    clipped = clipper(X.shape[1]).fit_transform(X)
    assert clipped.dtype == X.dtype
    assert np.array_equal(np.isnan(clipped), np.isnan(X))
    # One on either side, with so few rows.
    assert ((clipped != X) & ~np.isnan(X)).sum(axis=0).max() <= 2
    assert (np.abs(np.nan_to_num(clipped)) <= np.abs(np.nan_to_num(X))).all() or (clipped != X).any()


def test_a_wild_number_comes_closer_and_long_tails_stay():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=2000), np.exp(rng.normal(size=2000)), rng.random(2000) < 0.001])
    wild = X.copy()
    wild[7, 0], wild[8, 1] = -1e9, 1e9
    fitted = clipper(3).fit(wild)
    np.testing.assert_array_equal(fitted.transform(X), X)
    clipped = fitted.transform(wild)
    assert clipped[7, 0] == pytest.approx(-3 * 2.6, abs=1)
    assert clipped[8, 1] == pytest.approx(3 * np.exp(2.6), rel=0.3)


def test_the_bound_is_three_times_as_far_as_the_most_extreme_other_row():
    column = np.append(np.arange(200.0), 1e6)  # of 201 rows, two may be outliers on either side
    fitted = clipper(1).fit(column[:, None])
    assert (fitted.least_[0], fitted.most_[0]) == (100 - 3 * 98, 100 + 3 * 98)


def test_codes_and_columns_with_mostly_one_number_stay():
    X = np.zeros((500, 2), dtype=np.float32)
    X[0] = 1e6
    X[:, 0] += np.arange(500) % 3
    fitted = OutlierClipper(np.array([True, False])).fit(X)
    np.testing.assert_array_equal(fitted.transform(X), X)


def test_rows_are_sampled_evenly_from_long_tables(monkeypatch):
    monkeypatch.setattr("cashmere.space.estimators.outliers._MOST_ROWS", 100)
    X = np.sort(np.random.default_rng(0).normal(size=(1000, 1)), axis=0)
    np.testing.assert_array_equal(clipper(1).fit_transform(X), X)


@pytest.mark.parametrize("changes", [{"least_": np.zeros(2)}, {"most_": np.full(3, np.nan)}, {"most_": None}])
def test_tampered_bounds_are_refused(changes):
    fitted = clipper(3).fit(np.random.default_rng(0).normal(size=(50, 3)))
    check_objects(fitted)
    vars(fitted).update(changes)
    with pytest.raises(ContentError):
        check_objects(fitted)


@pytest.mark.parametrize("algorithm", ["extra_trees", "logistic_regression", "knn", "svm", "mlp"])
def test_learners_hardly_notice_wild_numbers(algorithm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    wild = X.copy()
    wild[np.arange(4), np.arange(4)] = 1e8
    profile = TaskProfile(task_type=TaskType.BINARY, n_rows=400, n_columns=4, n_classes=2, has_categories=False)
    space = make_space("default", profile)
    context = BuildContext(
        task_type=TaskType.BINARY, n_classes=2, n_rows=400, n_features=4, categorical=np.zeros(4, dtype=bool)
    )
    losses = [
        log_loss(
            y[400:],
            space.build(space.completed({"algorithm": algorithm}), context)
            .fit(table[:400], y[:400])
            .predict_proba(X[400:]),
        )
        for table in (X, wild)
    ]
    assert losses[1] < losses[0] + 0.1
