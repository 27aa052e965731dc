from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cashmere.space.estimators.standardisation import StandardisedColumns, nominal_columns

NUMBERS = st.floats(-1e6, 1e6, width=32) | st.just(float("nan"))
TABLES = hnp.arrays(np.float32, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=NUMBERS)


def standardise(X, categorical=None):
    categorical = np.zeros(X.shape[1], dtype=bool) if categorical is None else categorical
    return StandardisedColumns(categorical).fit(X)


@settings(deadline=None)
@given(X=TABLES)
def test_columns_have_no_gaps_mean_zero_and_variance_one_or_are_zero(X):
    result = standardise(X).transform(X)
    assert np.isfinite(result).all()
    np.testing.assert_allclose(result.mean(axis=0), 0, atol=1e-6)
    is_constant = np.ptp(result, axis=0) == 0
    assert np.all(result[:, is_constant] == 0)
    np.testing.assert_allclose(result[:, ~is_constant].std(axis=0), 1, rtol=1e-6)


def test_gaps_become_the_median_of_numbers_and_the_most_frequent_code():
    gap = np.nan
    X = np.array([[1, 0, 0], [2, 3, 0], [9, 3, 1], [10, 0, 1], [11, 3, 1], [gap, gap, gap]], dtype=np.float32)
    model = standardise(X, np.array([False, True, False]))
    assert list(model.filling_) == [9.0, 3.0, 1.0]  # never 0.5 in the last one: it has two levels
    assert np.isfinite(model.transform(np.full((1, 3), gap))).all()


def test_rows_to_predict_do_not_change_what_was_learned():
    X = np.arange(6, dtype=np.float32).reshape(3, 2)
    model = standardise(X)
    assert np.array_equal(model.transform(X)[:1], model.transform(X[:1]))


def test_columns_of_codes_and_of_two_values_are_nominal():
    X = np.array([[0, 0, 5, np.nan], [1, 1, 6, 1], [2, np.nan, 7, 1]])
    assert nominal_columns(X, np.array([True, False, False, False])).tolist() == [True, True, False, True]


@pytest.mark.parametrize("value", [0.1, 1e30])
def test_constant_columns_become_zero_in_spite_of_rounding(value):
    X = np.full((7, 1), value, dtype=np.float32)
    assert np.all(standardise(X).transform(X) == 0)
