"""Importances and effects of known functions, and those of scikit-learn as oracle."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.stats import chi2_contingency, spearmanr
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.inspection import partial_dependence, permutation_importance

from cashmere.data.column import ColumnKind
from cashmere.explanations.column_groups import (
    associations,
    cramers_v,
    explained_by_levels,
    group_columns,
    standardised_ranks,
)
from cashmere.explanations.effects import column_effect
from cashmere.explanations.permutation import loss_increase
from cashmere.explanations.permutation import permutation_importance as ours
from cashmere.explanations.unseen_rows import SourceColumn, UnseenRows

A, B = (SourceColumn(name=name, kind=ColumnKind.NUMERIC, places=(i,)) for i, name in enumerate("ab"))


class Rows(UnseenRows):
    """Rows whose predictions are a function of their values."""

    def predict(self, values=None, rows=None, texts=None):
        rows = np.arange(len(self)) if rows is None else rows
        return self.predictor(self.values[rows] if values is None else values)


def rows_of(function, values, y=None, weight=None):
    n = len(values)
    return Rows(
        predictor=function, values=values, texts=(), y=np.zeros(n) if y is None else y, weight=weight,
        fold=np.zeros(n, dtype=int), group=np.arange(n), n_validation_rows=n,
    )  # fmt: skip


def squared(y):
    return lambda p, w: float(np.average((y - p) ** 2, weights=w))


def test_importance_of_a_linear_model_is_twice_its_explained_variance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = X @ [1.0, 2.0] + 0.1 * rng.normal(size=2000)
    unseen = rows_of(lambda values: values @ [1.0, 2.0], X, y)
    first, second = ours(unseen, [[A], [B]], squared(y), repeats=5, rng=rng)
    assert first.mean == pytest.approx(2.0, rel=0.1)
    assert second.mean == pytest.approx(8.0, rel=0.1)
    assert first.lower < 2 < first.upper
    (both,) = ours(unseen, [[A, B]], squared(y), repeats=5, rng=rng)
    assert both.mean == pytest.approx(10.0, rel=0.1)


def test_importance_equals_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + X[:, 1] ** 2
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, y)
    expected = permutation_importance(model, X, y, n_repeats=20, scoring="neg_mean_squared_error", random_state=0)
    found = ours(rows_of(model.predict, X, y), [[A], [B]], squared(y), repeats=20, rng=rng)
    np.testing.assert_allclose([each.mean for each in found], expected.importances_mean, rtol=0.1)


@pytest.mark.long
def test_intervals_have_about_their_nominal_coverage():
    inside = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 2))
        y = X[:, 0] + 0.5 * rng.normal(size=100)
        (found,) = ours(rows_of(lambda values: values[:, 0], X, y), [[A]], squared(y), repeats=5, rng=rng)
        inside.append(found.lower <= 2.0 <= found.upper)
    assert 0.75 < np.mean(inside) <= 1


def test_unused_column_has_no_importance_in_any_draw():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(100, 2))
    (found,) = ours(rows_of(lambda values: values[:, 0], X, X[:, 1]), [[B]], squared(X[:, 1]), repeats=2, rng=rng)
    assert (found.mean, found.lower, found.upper) == (0, 0, 0)


def test_rows_of_a_group_are_drawn_together():
    rng = np.random.default_rng(2)
    base, group = np.zeros(200), np.repeat(np.arange(5), 40)
    truth = np.repeat(rng.normal(size=5), 40)  # all rows of a group say the same

    def width(group):
        _, low, high = loss_increase(
            squared(truth), base, [truth], [np.arange(200)], weight=np.ones(200), group=group,
            rng=np.random.default_rng(0),
        )  # fmt: skip
        return high - low

    assert width(group) > 3 * width(np.arange(200))


def test_partial_dependence_equals_that_of_scikit_learn():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, X[:, 0] * X[:, 1])
    found = column_effect(rows_of(model.predict, X), A, None, rows=np.arange(300))
    expected = partial_dependence(
        model, X, [0], custom_values={0: np.array(found.points)}, kind="average", method="brute"
    )
    np.testing.assert_allclose(found.partial_dependence[:, 0], expected["average"][0])


def test_local_effects_ignore_rows_that_cannot_exist():
    rng = np.random.default_rng(4)
    a = rng.random(4000)
    X = np.column_stack([a, a + 0.01 * rng.normal(size=4000)])
    unseen = rows_of(lambda values: values[:, 0] * values[:, 1], X)  # about a squared on these rows
    found = column_effect(unseen, A, None, rows=np.arange(4000))
    points = np.array(found.points)
    expected = points**2 / 2  # the derivative with respect to a is b, which is about a
    np.testing.assert_allclose(np.diff(found.ale[:, 0]), np.diff(expected), atol=0.01)
    assert np.ptp(found.partial_dependence[:, 0]) == pytest.approx(0.5, abs=0.02)  # b at its mean everywhere
    assert np.interp(a, points, found.ale[:, 0]).mean() == pytest.approx((a**2).mean(), abs=0.01)
    assert found.share.sum() == pytest.approx(1)


def test_local_effects_are_centred_on_the_rows_where_most_have_one_value():
    X = np.zeros((100, 2))
    X[:5, 0] = 1.0
    unseen = rows_of(lambda values: 2 * values[:, 0], X)
    found = column_effect(unseen, A, None, rows=np.arange(100))
    np.testing.assert_allclose(found.ale[:, 0], 2 * np.array(found.points))
    np.testing.assert_allclose(found.ale, found.partial_dependence)


def test_effects_of_levels_are_means_by_level_with_missing_as_one():
    codes = np.array([0.0, 1.0, np.nan, 1.0])
    column = SourceColumn(name="c", kind=ColumnKind.CATEGORICAL, categories=("x", "y"), places=(0,))
    unseen = rows_of(lambda values: np.nan_to_num(values[:, 0], nan=5.0), codes[:, None])
    found = column_effect(unseen, column, None, rows=np.arange(4))
    assert found.points == ("y", "x", "(missing)")
    assert found.partial_dependence[:, 0].tolist() == [1, 0, 5]
    assert found.share.tolist() == [0.5, 0.25, 0.25]
    assert column_effect(rows_of(unseen.predictor, np.zeros((3, 1))), column, None, rows=np.arange(3)) is None


def test_associated_columns_form_groups():
    rng = np.random.default_rng(5)
    a, level = rng.normal(size=1000), rng.integers(0, 4, 1000)
    columns = [
        *(SourceColumn(name=n, kind=ColumnKind.NUMERIC, places=(i,)) for i, n in enumerate(["a", "exp_a", "noise"])),
        *(
            SourceColumn(name=n, kind=ColumnKind.CATEGORICAL, categories=tuple("wxyz"), places=(i,))
            for i, n in enumerate(["level", "recoded"], start=3)
        ),
        SourceColumn(name="by_level", kind=ColumnKind.NUMERIC, places=(5,)),
        SourceColumn(name="text", kind=ColumnKind.TEXT, text=0),
    ]
    values = np.column_stack([a, np.exp(a), rng.normal(size=1000), level, 3 - level, level + 0.01 * a])
    values[::7, 1] = np.nan
    found = associations(values, columns)
    np.testing.assert_array_equal(found, found.T)
    present = ~np.isnan(values[:, 1])
    assert associations(values[present], columns)[0, 1] == pytest.approx(1)
    assert found[0, 2] == pytest.approx(abs(spearmanr(a, values[:, 2]).statistic))
    assert group_columns(found) == [[0, 1], [2], [3, 4, 5], [6]]


def test_independent_columns_of_many_levels_have_small_associations():
    rng = np.random.default_rng(6)
    first, second = rng.integers(0, 40, 2000), rng.integers(0, 40, 2000)
    assert cramers_v(first, second) < 0.05
    assert cramers_v(first, first) == pytest.approx(1, abs=0.02)
    ranks = standardised_ranks(rng.normal(size=2000))
    assert explained_by_levels(first, ranks[:, None])[0] < 0.1
    assert explained_by_levels(first, standardised_ranks(first.astype(float))[:, None])[0] == pytest.approx(1)


def test_the_association_of_levels_is_that_of_their_whole_table():
    rng = np.random.default_rng(1)
    first = rng.integers(0, 4, 300)
    second = (first + rng.integers(0, 3, 300)) % 5
    table = np.histogram2d(first, second, bins=(4, 5))[0]
    phi = chi2_contingency(table, correction=False).statistic / 300 - 3 * 4 / 299
    assert cramers_v(first, second) == pytest.approx(np.sqrt(phi / (min(4 - 9 / 299, 5 - 16 / 299) - 1)))


def test_thousands_of_levels_take_little_memory():
    levels = np.random.default_rng(2).permutation(4000)
    tracemalloc.start()
    try:
        assert cramers_v(levels, np.arange(4000)) == 0
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
