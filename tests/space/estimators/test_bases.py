from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cashmere.space.estimators.bases import PiecewiseLinearColumns

NUMBERS = st.floats(-1e6, 1e6, width=32)
TABLES = hnp.arrays(np.float32, st.tuples(st.integers(1, 40), st.integers(1, 4)), elements=NUMBERS)


@settings(deadline=None)
@given(X=TABLES, n_bins=st.integers(1, 9))
def test_a_weighted_sum_of_the_bins_gives_back_the_column(X, n_bins):
    basis = PiecewiseLinearColumns(n_bins=n_bins).fit(X)
    bent, start = basis.transform(X), 0
    for column, padded in zip(X.T, basis.edges_.T, strict=True):
        edges = padded[~np.isnan(padded)]
        n_columns = max(1, len(edges) - 1)
        part = bent[:, start : start + n_columns]
        again = edges[0] + part @ np.diff(edges) if len(edges) > 1 else part[:, 0]
        np.testing.assert_allclose(again, column, rtol=1e-6, atol=1e-6 * np.abs(X).max())
        start += n_columns
    assert start == bent.shape[1]


def test_each_bin_rises_from_zero_to_one_between_its_edges_and_is_constant_outside():
    basis = PiecewiseLinearColumns(n_bins=2).fit(np.array([[0.0], [1.0], [2.0], [3.0], [10.0]]))
    assert list(basis.edges_[:, 0]) == [0.0, 2.0, 10.0]
    bent = basis.transform(np.array([[-5.0], [1.0], [2.0], [6.0], [99.0]]))
    assert bent.tolist() == [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], [1.0, 0.5], [1.0, 1.0]]


def test_columns_with_few_values_are_unchanged():
    X = np.column_stack([np.arange(12) % 2, np.arange(12) % 3, np.arange(12)]).astype(float)
    bent = PiecewiseLinearColumns(n_bins=4).fit_transform(X)
    assert bent.shape == (12, 6)
    assert np.array_equal(bent[:, :2], X[:, :2])


@pytest.mark.parametrize(("max_columns", "n_outputs"), [(100, 16), (8, 8), (5, 4), (2, 4)])
def test_wide_tables_get_fewer_bins(max_columns, n_outputs):
    X = np.random.default_rng(0).normal(size=(50, 4))
    basis = PiecewiseLinearColumns(n_bins=4, max_columns=max_columns)
    assert basis.fit_transform(X).shape == (50, n_outputs)
