"""Forests are stored in narrow types, and predict the same bit for bit once loaded."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from cashmere.space.estimators.forests import (
    ExponentExtraTreesClassifier,
    ExponentExtraTreesRegressor,
    ExponentForestRegressor,
    OrderedForestClassifier,
)
from cashmere.space.estimators.narrow_trees import from_whole_sums, narrow_nodes, whole_sums

FORESTS = {
    "classes": OrderedForestClassifier(n_estimators=4, random_state=0),
    "balanced": ExponentExtraTreesClassifier(n_estimators=4, max_features=0.5, class_weight="balanced", random_state=0),
    "values": ExponentForestRegressor(n_estimators=4, max_features=0.5, random_state=0),
    "whole values": ExponentExtraTreesRegressor(n_estimators=4, max_features=0.5, random_state=0),
}


@pytest.fixture(scope="module", params=FORESTS)
def forest(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    X[::7, 2] = np.nan
    y = X[:, 0] + rng.normal(size=300)
    return FORESTS[request.param].fit(X, y if request.param == "values" else np.round(y))


def beside_thresholds(forest):
    """Return rows whose columns are the float32 numbers at, just below and just above each threshold."""
    thresholds = np.unique(np.concatenate([tree.tree_.threshold for tree in forest.estimators_])).astype(np.float32)
    thresholds = thresholds[np.isfinite(thresholds)]  # gaps alone may be split off
    ends = np.array([-np.inf, np.inf], dtype=np.float32)
    near = np.concatenate([thresholds, *(np.nextafter(thresholds, end) for end in ends)])
    return np.repeat(np.append(near, np.float32(np.nan))[:, None], 3, axis=1)


def test_a_forest_predicts_the_same_bit_for_bit(forest):
    X = beside_thresholds(forest)
    read = pickle.loads(pickle.dumps(forest))
    predict = "predict_proba" if hasattr(forest, "predict_proba") else "predict"
    assert getattr(read, predict)(X).tobytes() == getattr(forest, predict)(X).tobytes()
    assert read.feature_importances_.tobytes() == forest.feature_importances_.tobytes()


def test_nodes_take_less_than_half(forest):
    state = forest.__getstate__()
    nodes = np.concatenate([tree.tree_.__getstate__()["nodes"] for tree in forest.estimators_])
    assert 2 * state["_packed_nodes"].nbytes < nodes.nbytes


def test_files_of_earlier_versions_are_read(forest):
    state = forest.__getstate__()
    state.pop("_packed_sums", None)
    states = [tree.tree_.__getstate__() for tree in forest.estimators_]
    state |= {f"_packed_{name}": np.concatenate([s[name] for s in states]) for name in ("nodes", "values")}
    read = type(forest).__new__(type(forest))
    read.__setstate__(state)
    X = beside_thresholds(forest)
    assert read.predict(X).tobytes() == forest.predict(X).tobytes()


def test_a_loaded_forest_is_stored_identically(forest):
    before, after = forest.__getstate__(), pickle.loads(pickle.dumps(forest)).__getstate__()
    packed = [name for name in before if name.startswith("_packed")]
    assert packed == [name for name in after if name.startswith("_packed")]
    assert [before[name].tobytes() for name in packed] == [after[name].tobytes() for name in packed]


def test_shares_of_whole_rows_become_whole_numbers():
    nodes = np.array([(3.0,), (7.0,)], dtype=[("weighted_n_node_samples", "f8")])
    shares = np.array([[[1 / 3, 2 / 3]], [[0.0, 1.0]]])
    sums = whole_sums(shares, nodes)
    assert sums.dtype == np.int8
    np.testing.assert_array_equal(from_whole_sums(sums, nodes), shares)


@pytest.mark.parametrize("value", [0.1, -0.0, np.nan, np.inf, 1e300])
def test_values_that_are_not_shares_of_whole_rows_are_unchanged(value):
    nodes = np.array([(3.0,)], dtype=[("weighted_n_node_samples", "f8")])
    assert whole_sums(np.array([[[value]]]), nodes) is None


@pytest.mark.parametrize("threshold", [0.1, -0.1, 1e-50, -1e-50, 1e39, -2.0, np.inf, 16777217.0])
def test_a_threshold_never_rises_and_keeps_its_side_of_every_float32(threshold):
    nodes = np.array([(threshold,)], dtype=[("threshold", "f8")])
    narrow = narrow_nodes(nodes)["threshold"][0]
    with np.errstate(over="ignore"):
        above = np.nextafter(narrow, np.float32(np.inf))
    assert float(narrow) <= threshold
    assert threshold < float(above) or np.isinf(threshold)
