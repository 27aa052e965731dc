from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier

from cashmere.space.estimators.category_catboost import (
    CategoryCatBoostClassifier,
    CategoryCatBoostRegressor,
    pool_of,
)

SETTINGS = {
    "iterations": 30,
    "learning_rate": 0.2,
    "thread_count": 1,
    "random_seed": 0,
    "logging_level": "Silent",
    "allow_writing_files": False,
}
CODES = [1, 2]


@pytest.fixture(scope="module")
def rows():
    """Return rows whose class depends on a column of 150 levels without order."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1800, 3)).astype(np.float32)
    X[:, 1], X[:, 2] = rng.integers(0, 150, len(X)), rng.integers(0, 5, len(X))
    y = rng.permutation(np.arange(150) % 2)[X[:, 1].astype(int)]
    X[::50, 1] = np.nan
    return X, y


@pytest.fixture(scope="module")
def learner(rows):
    X, y = rows
    return CategoryCatBoostClassifier(**SETTINGS, cat_features=CODES).fit(X[:1500], y[:1500])


def test_codes_are_the_categories_of_the_library(rows, learner):
    X, y = rows
    table = pd.DataFrame(X).astype({1: object, 2: object})
    table[[1, 2]] = table[[1, 2]].map(lambda code: "none" if np.isnan(code) else f"level {code:.0f}")
    direct = CatBoostClassifier(**SETTINGS, cat_features=CODES).fit(table[:1500], y[:1500])
    np.testing.assert_allclose(learner.predict_proba(X[1500:]), direct.predict_proba(table[1500:]), atol=1e-12)


def test_levels_without_order_are_learned(rows, learner):
    X, y = rows
    as_numbers = CategoryCatBoostClassifier(**SETTINGS).fit(X[:1500], y[:1500])
    error, error_of_numbers = (np.mean(each.predict(X[1500:]) != y[1500:]) for each in (learner, as_numbers))
    assert error < 0.1 and error < error_of_numbers / 2


def test_unknown_levels_are_a_separate_level(rows, learner):
    unknown = rows[0][1500:1510].copy()
    unknown[:, CODES] = np.nan
    assert np.isfinite(learner.predict_proba(unknown)).all()


def test_rows_are_not_changed(rows, learner):
    X = rows[0].copy()
    learner.predict(X)
    np.testing.assert_array_equal(X, rows[0])


def test_weights_count(rows):
    X, y = rows
    once = CategoryCatBoostRegressor(**SETTINGS | {"iterations": 1}, cat_features=CODES)
    weighted = once.copy().fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    assert weighted.predict(X).mean() > once.fit(X, y).predict(X).mean() + 0.05


def test_copies_and_stored_learners_know_their_categories(rows, learner):
    X = rows[0][1500:]
    for other in (learner.copy(), pickle.loads(pickle.dumps(learner))):
        assert pool_of(other, X).get_cat_feature_indices() == CODES
        np.testing.assert_array_equal(other.predict_proba(X), learner.predict_proba(X))
