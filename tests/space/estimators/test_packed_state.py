"""Large estimators pack their trees once, and only when they are written."""

from __future__ import annotations

import copy
import pickle
from collections import Counter

import numpy as np
import pytest

from cashmere.model.archives import dump
from cashmere.space.estimators.boosting import CategoryHistogramClassifier, CategoryLGBMClassifier
from cashmere.space.estimators.forests import ExponentForestClassifier

LEARNERS = {
    "forest": ExponentForestClassifier(n_estimators=3, max_features=0.5, random_state=0),
    "histogram": CategoryHistogramClassifier(max_iter=3, random_state=0),
    "lightgbm": CategoryLGBMClassifier(n_estimators=3, random_state=0, verbose=-1, n_jobs=1),
}


@pytest.fixture(scope="module", params=LEARNERS)
def fitted(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).astype(np.float32)
    return LEARNERS[request.param].fit(X, (X[:, 0] > 0).astype(np.int64)), X


@pytest.fixture
def packed(fitted, monkeypatch):
    """Count how often the state of the learner is packed."""
    learner, _ = fitted
    calls, original = Counter(), type(learner).__getstate__

    def counted(self):
        calls[type(self).__name__] += 1
        return original(self)

    monkeypatch.setattr(type(learner), "__getstate__", counted)
    return calls


def test_written_state_is_packed_once(fitted, packed):
    dump([fitted[0]])
    assert list(packed.values()) == [1]


def test_copy_shares_the_trees(fitted, packed):
    learner, X = fitted
    copied = copy.copy(learner)
    assert not packed
    assert copied.__dict__ == learner.__dict__
    np.testing.assert_array_equal(copied.predict_proba(X), learner.predict_proba(X))


@pytest.mark.parametrize(
    "restore", [copy.deepcopy, *(lambda x, p=p: pickle.loads(pickle.dumps(x, protocol=p)) for p in (0, 2, 5))]
)
def test_other_ways_of_copying_keep_the_state(fitted, restore):
    learner, X = fitted
    np.testing.assert_array_equal(restore(learner).predict_proba(X), learner.predict_proba(X))
