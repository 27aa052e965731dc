"""Combinations of two numeric columns: the right ones are found, and none is infinite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone

from cashmere.space.estimators.arithmetic_features import ArithmeticFeatures
from cashmere.space.estimators.combinations import MOST_FEATURES, OPERATIONS, combined, n_arithmetic_features

EXTREMES = [float(np.float32(x)) for x in (0.0, -0.0, 3.4e38, -3.4e38, 1e-45)]
NUMBERS = st.floats(width=32) | st.sampled_from(EXTREMES)
COLUMNS = hnp.arrays(np.float32, 5, elements=NUMBERS.filter(lambda x: not np.isinf(x)))


def numbers(n_rows=2000, n_columns=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns)).astype(np.float32)


def fitted(X, y, n_classes=1, categorical=()):
    mask = np.isin(np.arange(X.shape[1]), categorical)
    return ArithmeticFeatures(mask, n_classes, seed=0).fit(X, y)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("x1_plus_x2", lambda X: np.sin(2 * (X[:, 1] + X[:, 2]))),
        ("x1_minus_x2", lambda X: np.sin(2 * (X[:, 1] - X[:, 2]))),
        ("x1_times_x2", lambda X: X[:, 1] * X[:, 2]),
        ("x1_over_x2", lambda X: np.tanh(X[:, 1] / X[:, 2])),
        ("x1_under_x2", lambda X: np.tanh(X[:, 2] / X[:, 1])),
    ],
)
@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_the_combination_that_makes_the_target_comes_first(name, target, n_classes):
    X = numbers()
    y = target(X)
    if n_classes > 1:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    assert fitted(X, y, n_classes).get_feature_names_out()[6] == name


def test_columns_that_add_up_are_not_combined():
    X = numbers()
    made = fitted(X, X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * X[:, 2] ** 2)
    assert len(made.combinations_) <= 1
    assert (made.transform(X)[:, 6 + len(made.combinations_) :] == 0).all()


def test_categories_are_left_alone():
    X = numbers()
    X[:, 1] = np.random.default_rng(1).integers(0, 5, len(X))
    made = fitted(X, X[:, 0] * X[:, 1], categorical=[1])
    assert 1 not in made.combinations_[:, :2]


@pytest.mark.parametrize("n_numeric", [0, 1, 2, 3, 30])
def test_width_depends_on_the_shape_only(n_numeric):
    X = numbers(50, n_numeric + 2)
    mask = np.arange(n_numeric + 2) >= n_numeric
    X[:, mask] = 1
    made = ArithmeticFeatures(mask).fit(X, X[:, 0])
    width = n_arithmetic_features(mask)
    assert width <= MOST_FEATURES
    result = made.transform(X)
    assert np.array_equal(result[:, : n_numeric + 2], X)
    assert result.shape == (50, n_numeric + 2 + width)
    assert len(set(made.get_feature_names_out())) == n_numeric + 2 + width


@pytest.mark.parametrize("column", [np.nan, 0.0, 3e38])
def test_columns_without_content_do_no_harm(column):
    X = numbers(300, 4)
    X[:, 1] = column
    X[:, 2] = np.where(np.arange(300) % 2, np.nan, X[:, 2])
    made = fitted(X, X[:, 0]).transform(X)
    assert not np.isinf(made).any()


@given(a=COLUMNS, b=COLUMNS, operation=st.integers(0, len(OPERATIONS) - 1))
def test_no_result_is_infinite_and_gaps_stay(a, b, operation):
    result = combined(a.astype(np.float64), b.astype(np.float64), operation).astype(np.float32)
    assert not np.isinf(result).any()
    assert np.array_equal(np.isnan(result), np.isnan(a) | np.isnan(b))


def test_same_seed_same_columns_and_rows_do_not_depend_on_each_other():
    X = numbers()
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3]
    made = fitted(X, y)
    again = clone(made).fit(X, y)
    together = made.transform(X)
    assert np.array_equal(again.transform(X), together)
    assert np.array_equal(made.transform(X[7:8]), together[7:8])
