from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.evaluation.row_origins import Origin, explain_rows

SEEDS = st.integers(0, 2**32 - 1)


def make_rows(seed, n_rows=24, n_columns=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_columns)), np.arange(n_rows) % 2, rng


def explain(row, label, X, y, nominal=None):
    nominal = np.zeros(X.shape[1], dtype=bool) if nominal is None else nominal
    return explain_rows(np.atleast_2d(row), np.array([label]), X, y, nominal=nominal)


@settings(deadline=None)
@given(seed=SEEDS)
def test_training_rows_are_kept_only_under_their_own_class(seed):
    X, y, _ = make_rows(seed)
    assert explain_rows(X, y, X, y, nominal=np.zeros(3, dtype=bool)) == [Origin.KEPT] * len(X)
    assert Origin.KEPT not in explain_rows(X, 1 - y, X, y, nominal=np.zeros(3, dtype=bool))


@settings(deadline=None)
@given(seed=SEEDS, t=st.floats(0.01, 0.99))
def test_rows_between_two_of_a_class_are_explained(seed, t):
    X, y, _ = make_rows(seed)
    assert explain(X[0] + t * (X[2] - X[0]), 0, X, y) == [Origin.BETWEEN]


@settings(deadline=None)
@given(seed=SEEDS, t=st.floats(0.01, 1.0))
def test_rows_beyond_are_told_from_rows_between(seed, t):
    X, y, _ = make_rows(seed)
    assert explain(X[1] - t * (X[3] - X[1]), 1, X, y) == [Origin.BEYOND]
    assert explain(X[1] - 50 * (X[3] - X[1]), 1, X, y)[0] is not Origin.BEYOND


@settings(deadline=None)
@given(seed=SEEDS, t=st.floats(0.01, 0.49))
def test_rows_towards_another_class_stay_nearer_to_their_own(seed, t):
    X, y, _ = make_rows(seed, n_rows=10)
    X[y == 1] += 10  # outside the hull of the other class
    assert explain(X[0] + t * (X[1] - X[0]), 0, X, y) == [Origin.ACROSS]
    assert explain(X[0] + (1 - t) * (X[1] - X[0]), 0, X, y) == [Origin.UNEXPLAINED]


@settings(deadline=None)
@given(seed=SEEDS)
def test_means_of_rows_are_centroids_and_points_outside_the_hull_are_not(seed):
    X, y, rng = make_rows(seed)
    centroid = rng.dirichlet(np.ones(4)) @ X[y == 0][:4]
    assert explain(centroid, 0, X, y) == [Origin.CENTROID]
    assert explain(X.max(axis=0) + 1, 0, X, y) == [Origin.UNEXPLAINED]


@settings(deadline=None)
@given(seed=SEEDS)
def test_nominal_values_must_occur_in_the_class(seed):
    X, y, rng = make_rows(seed, n_columns=4)
    X[:, 3] = rng.permutation(np.arange(len(X)) % 3) + 3 * y
    nominal = np.array([False, False, False, True])
    row = X[0] + 0.3 * (X[2] - X[0])
    own, foreign = X[y == 0, 3], X[y == 1, 3]
    values = [value for value in np.unique(own) if value != row[3]]
    row[3] = values[0]
    assert explain(row, 0, X, y, nominal)[0] in (Origin.MIXED, Origin.BETWEEN)
    row[3] = foreign[0]
    assert explain(row, 0, X, y, nominal) == [Origin.UNEXPLAINED]


@pytest.mark.parametrize("shift", [1e-5, 1e-3])
def test_a_row_a_little_off_its_line_is_not_explained(shift):
    X, y, _ = make_rows(0, n_rows=8)
    X = np.hstack([X, np.zeros((8, 1))])  # no mean of training rows leaves this plane
    row = X[0] + 0.4 * (X[2] - X[0])
    assert explain(row, 0, X, y) == [Origin.BETWEEN]
    assert explain(row + shift * np.array([0, 0, 0, 1]), 0, X, y) == [Origin.UNEXPLAINED]


def test_copies_of_one_row_have_no_line():
    X, y = np.ones((4, 2)), np.array([0, 0, 1, 1])
    assert explain([2.0, 2.0], 0, X, y) == [Origin.UNEXPLAINED]
    assert explain([1.0, 1.0], 0, X, y) == [Origin.KEPT]
