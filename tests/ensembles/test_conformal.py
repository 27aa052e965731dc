"""Intervals and sets against their definition, against MAPIE, and by their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold

from cashmere.ensembles.conformal import MOST_SCORES, ConformalScores, scores_of
from cashmere.exceptions import InvalidParameterError


def cross_fitted(learner, X, y, n_folds, method):
    """Return out-of-fold predictions, the fold of each row, and the models."""
    fold, models = np.zeros(len(y), dtype=int), []
    outputs = None
    for number, (train, test) in enumerate(KFold(n_folds, shuffle=True, random_state=0).split(X)):
        models.append(learner().fit(X[train], y[train]))
        part = getattr(models[-1], method)(X[test])
        outputs = np.zeros((len(y), *part.shape[1:])) if outputs is None else outputs
        outputs[test], fold[test] = part, number
    return outputs, fold, models


@given(n=st.integers(4, 40), n_folds=st.integers(1, 4), coverage=st.floats(0.05, 0.8), seed=st.integers(0, 2**32 - 1))
def test_intervals_are_those_of_the_definition(n, n_folds, coverage, seed):
    rng = np.random.default_rng(seed)
    scores, fold = rng.exponential(size=n), np.arange(n) % n_folds
    found = ConformalScores.of_folds(scores, fold, n_folds)
    values = [rng.normal(size=5) for _ in range(n_folds)]
    r = int(np.ceil(round(coverage * (n + 1), 9)))
    for row, bounds in enumerate(found.intervals(values, coverage)):
        centres = np.array([values[k][row] for k in fold])
        lower, upper = -np.sort(scores - centres)[r - 1], np.sort(scores + centres)[r - 1]
        np.testing.assert_allclose(bounds, sorted([lower, upper]))


@given(n=st.integers(9, 40), n_folds=st.integers(1, 4), coverage=st.floats(0.1, 0.9), seed=st.integers(0, 2**32 - 1))
def test_sets_are_those_of_the_definition(n, n_folds, coverage, seed):
    rng = np.random.default_rng(seed)
    scores, fold = rng.uniform(size=n), np.arange(n) % n_folds
    p = [rng.dirichlet(np.ones(3), size=6) for _ in range(n_folds)]
    held = ConformalScores.of_folds(scores, fold, n_folds).sets(p, coverage)
    r = int(np.ceil(round(coverage * (n + 1), 9)))
    expected = np.array(
        [[sum(scores[i] < 1 - p[fold[i]][row, c] for i in range(n)) < r for c in range(3)] for row in range(6)]
    )
    for row in np.flatnonzero(~expected.any(axis=1)):
        expected[row, np.argmax(sum(each[row] for each in p))] = True
    np.testing.assert_array_equal(held, expected)


@pytest.mark.parametrize("coverage", [0.6, 0.9])
def test_intervals_are_those_of_mapie(coverage):
    regression = pytest.importorskip("mapie.regression")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.standard_t(3, size=120)
    X, y, new = X[:80], y[:80], X[80:]
    outputs, fold, models = cross_fitted(LinearRegression, X, y, 5, "predict")
    found = ConformalScores.of_folds(scores_of(y, outputs), fold, 5)
    oracle = regression.CrossConformalRegressor(
        LinearRegression(), confidence_level=coverage, method="plus", cv=KFold(5, shuffle=True, random_state=0)
    )
    _, expected = oracle.fit_conformalize(X, y).predict_interval(new)
    np.testing.assert_allclose(
        found.intervals([model.predict(new) for model in models], coverage), expected[:, :, 0], rtol=1e-9
    )


@pytest.mark.parametrize("coverage", [0.6, 0.9])
def test_sets_are_those_of_mapie(coverage):
    classification = pytest.importorskip("mapie.classification")
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 150)
    X = rng.normal(size=(150, 2)) + np.array([[0, 0], [1.2, 0], [0, 1.2]])[y]
    X, y, new = X[:100], y[:100], X[100:]
    outputs, fold, models = cross_fitted(LogisticRegression, X, y, 5, "predict_proba")
    held = ConformalScores.of_folds(scores_of(y, outputs), fold, 5).sets(
        [model.predict_proba(new) for model in models], coverage
    )
    oracle = classification.CrossConformalClassifier(
        LogisticRegression(),
        confidence_level=coverage,
        conformity_score="lac",
        cv=KFold(5, shuffle=True, random_state=0),
    )
    _, expected = oracle.fit_conformalize(X, y).predict_set(new, agg_scores="crossval")
    filled = expected[:, :, 0].any(axis=1)  # MAPIE leaves sets empty
    np.testing.assert_array_equal(held[filled], expected[filled, :, 0])
    assert held.any(axis=1).all()


def test_sets_hold_the_classes_of_rows_that_tie_whatever_the_rounding():
    share = 0.8
    y = (np.arange(100) >= 80).astype(int)  # the second class is rare, and every row has the same prediction
    for error in (-3e-8, 0.0, 3e-8):
        scores = ConformalScores.of_folds(
            scores_of(y, np.full((100, 2), [share, 1 - share])), np.zeros(100, dtype=int), 1
        )
        held = scores.sets([np.full((1, 2), [share + error, 1 - share - error], dtype=np.float32)], 0.7)
        assert held.tolist() == [[True, False]]
        held = scores.sets([np.full((1, 2), [share + error, 1 - share - error], dtype=np.float32)], 0.9)
        assert held.tolist() == [[True, True]]


@pytest.mark.parametrize("n_folds", [1, 5])
def test_coverage_of_new_rows_is_about_the_requested_one(n_folds):
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 2))
        y = X @ [1.0, 1.0] + rng.laplace(size=300)
        outputs, fold, models = cross_fitted(LinearRegression, X[:60], y[:60], max(n_folds, 2), "predict")
        if n_folds == 1:  # a holdout: the first fold only
            outputs, fold, models, truth = outputs[fold == 0], fold[fold == 0], models[:1], y[:60][fold == 0]
        else:
            truth = y[:60]
        scores = ConformalScores.of_folds(scores_of(truth, outputs), fold, n_folds)
        low, high = scores.intervals([model.predict(X[60:]) for model in models], 0.8).T
        covered.append(np.mean((low <= y[60:]) & (y[60:] <= high)))
    assert 0.8 - 0.02 < np.mean(covered) < 0.8 + 0.05


@given(n=st.integers(9, 60), n_folds=st.integers(1, 4), coverage=st.floats(0.1, 0.9), seed=st.integers(0, 2**32 - 1))
def test_sets_by_class_are_those_of_the_definition(n, n_folds, coverage, seed):
    rng = np.random.default_rng(seed)
    scores, fold, codes = rng.uniform(size=n), np.arange(n) % n_folds, rng.choice(3, n, p=[0.7, 0.25, 0.05])
    p = [rng.dirichlet(np.ones(3), size=6) for _ in range(n_folds)]
    found = ConformalScores.of_folds(scores, fold, n_folds, codes=codes, n_classes=3)
    expected = np.zeros((6, 3), dtype=bool)
    for c in range(3):
        of_class = np.flatnonzero(codes == c)
        r = int(np.ceil(round(coverage * (len(of_class) + 1), 9)))  # more than there are: every set holds the class
        for row in range(6):
            expected[row, c] = sum(scores[i] < 1 - p[fold[i]][row, c] for i in of_class) < r
    for row in np.flatnonzero(~expected.any(axis=1)):
        expected[row, np.argmax(sum(each[row] for each in p))] = True
    np.testing.assert_array_equal(found.sets(p, coverage, by_class=True), expected)


def test_sets_by_class_cover_each_class():
    covered = {False: [], True: []}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = (rng.random(900) < 0.1).astype(int)
        X = rng.normal(size=(900, 2)) + y[:, None]
        outputs, fold, models = cross_fitted(LogisticRegression, X[:500], y[:500], 5, "predict_proba")
        scores = ConformalScores.of_folds(scores_of(y[:500], outputs), fold, 5, codes=y[:500], n_classes=2)
        p = [model.predict_proba(X[500:]) for model in models]
        for by_class, shares in covered.items():
            held = scores.sets(p, 0.8, by_class=by_class)
            shares.append([held[y[500:] == c, c].mean() for c in (0, 1)])
    usual, rare = np.mean(covered[True], axis=0)
    assert 0.78 < usual < 0.84 and 0.78 < rare < 0.84
    assert np.mean(covered[False], axis=0)[1] < 0.4  # among all rows, the rare class hardly counts


def test_scores_of_a_rare_class_are_not_thinned_like_those_of_all_rows():
    rng = np.random.default_rng(0)
    n = 40_000
    codes = (rng.random(n) < 0.01).astype(int)
    found = ConformalScores.of_folds(rng.uniform(size=n), np.arange(n) % 5, 5, codes=codes, n_classes=2)
    assert found.classes[0].n_scores == pytest.approx(2_000, abs=2) and found.classes[1].n_scores == codes.sum()


def test_many_scores_are_thinned_to_larger_ones():
    rng = np.random.default_rng(0)
    scores, fold = rng.exponential(size=50_000), rng.integers(0, 5, 50_000)
    found = ConformalScores.of_folds(scores, fold, 5)
    assert found.n_scores == pytest.approx(MOST_SCORES, abs=2)
    assert max(each[-1] for each in found.folds) == scores.max()
    for level in (0.5, 0.9, 0.99):
        all_kept = np.concatenate(found.folds)
        assert level - 0.001 <= np.mean(scores <= np.quantile(all_kept, level, method="higher")) <= level + 0.002


def test_scores_of_probabilities_that_do_not_sum_to_one():
    np.testing.assert_allclose(scores_of(np.array([0, 1]), np.array([[0.2, 0.2], [0.9, 0.3]])), [0.5, 0.75])


@pytest.mark.parametrize("coverage", [0.0, -0.1, 0.95, 1.0, np.nan])
def test_a_coverage_that_too_few_rows_cannot_promise_is_refused(coverage):
    scores = ConformalScores.of_folds(np.arange(9.0), np.zeros(9, dtype=int), 1)
    with pytest.raises(InvalidParameterError, match=r"at most 0\.9, which is what 9 rows allow"):
        scores.rank(coverage)
    assert scores.rank(0.9) == 9


@pytest.mark.parametrize("coverage", ["0.9", None, True, 90, 0, float("nan")])
def test_unusable_coverages_are_refused(coverage):
    scores = ConformalScores.of_folds(np.arange(20.0), np.arange(20) % 2, 2)
    with pytest.raises(InvalidParameterError, match=r"coverage must be a share greater than 0 and at most 0\.9524"):
        scores.rank(coverage)
