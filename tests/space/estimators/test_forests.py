"""Our forests grow the trees of scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor

from cashmere.space.estimators.forests import (
    ExponentExtraTreesClassifier,
    ExponentExtraTreesRegressor,
    ExponentForestClassifier,
    ExponentForestRegressor,
    OrderedForestClassifier,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 9)).astype(np.float32)
VALUES = X[:, 0] * X[:, 1] + RNG.normal(size=200)
WEIGHTS = RNG.random(200)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (OrderedForestClassifier, RandomForestClassifier),
        (ExponentForestClassifier, RandomForestClassifier),
        (ExponentForestRegressor, RandomForestRegressor),
        (ExponentExtraTreesClassifier, ExtraTreesClassifier),
        (ExponentExtraTreesRegressor, ExtraTreesRegressor),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_trees_are_those_of_scikit_learn(ours, theirs, weighted):
    settings = {"min_samples_leaf": 3, "random_state": 7, "warm_start": True, "criterion": "squared_error"}
    targets = VALUES
    if theirs in (RandomForestClassifier, ExtraTreesClassifier):
        settings["criterion"], targets = "entropy", (VALUES > 0).astype(int)
    features = 3 if ours is OrderedForestClassifier else 0.5  # the exponent of 3 of 9 columns
    forests = ours(max_features=features, **settings), theirs(max_features=3, **settings)
    for forest in forests:
        for n_trees in (4, 10):  # in two parts, as along a path
            forest.set_params(n_estimators=n_trees)
            forest.fit(X, targets, sample_weight=WEIGHTS if weighted else None)
    np.testing.assert_array_equal(*(forest.predict(X) for forest in forests))
    if hasattr(ours, "predict_proba"):
        np.testing.assert_array_equal(*(forest.predict_proba(X) for forest in forests))
    trees, expected = (forest.estimators_ for forest in forests)
    assert [tree.get_params() for tree in trees] == [tree.get_params() for tree in expected]


@pytest.mark.parametrize("ours", [OrderedForestClassifier, ExponentForestRegressor, ExponentExtraTreesClassifier])
def test_callers_in_several_threads_leave_the_warning_filters_alone(ours, monkeypatch):
    def changing_the_filters(self, *arguments, **options):
        raise AssertionError("scikit-learn's loop over jobs sets the filters of the process")

    forest = ours(n_estimators=3, max_features=1, random_state=0).fit(X, (VALUES > 0).astype(int))
    monkeypatch.setattr("sklearn.utils.parallel._FuncWrapper.__call__", changing_the_filters)
    assert forest.predict(X[:1]).shape == (1,)
    if hasattr(ours, "predict_proba"):
        assert forest.predict_proba(X[:1]).shape == (1, 2)
