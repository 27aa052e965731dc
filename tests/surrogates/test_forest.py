from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cashmere.exceptions import InvalidParameterError
from cashmere.surrogates.forest import MIN_VARIANCE, ProbabilisticForest, forest_moments
from contracts.surrogate_contract import SurrogateContract

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "forest_moments.json").read_text())


@pytest.mark.parametrize("variance", ["between", "total"])
def test_moments_agree_with_vectors(variance):
    means, variances = np.array(VECTORS["tree_leaf_means"]), np.array(VECTORS["tree_leaf_vars"])
    mean, var = forest_moments(means, variances, variance=variance)
    assert mean == pytest.approx(VECTORS["mean"], rel=1e-12)
    assert var == pytest.approx(VECTORS[f"var_{variance}"], rel=1e-12)


def test_variance_is_clipped_from_below():
    _, var = forest_moments(np.full((10, 3), 1e6), np.zeros((10, 3)))
    assert np.all(var == MIN_VARIANCE)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.random((200, 6))
    return X, np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.normal(size=200)


def test_forest_learns_and_is_unsure_between_points(problem):
    X, y = problem
    forest = ProbabilisticForest().fit(X[:150], y[:150], np.random.default_rng(1))
    mean, variance = forest.predict(X[150:])
    assert mean.shape == variance.shape == (50,)
    assert np.corrcoef(mean, y[150:])[0, 1] > 0.9
    assert np.all(variance >= MIN_VARIANCE)


def test_same_generator_same_forest(problem):
    X, y = problem
    one, two, other = (ProbabilisticForest().fit(X, y, np.random.default_rng(seed)).predict(X) for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_leaf_moments_are_those_of_the_bootstrap_sample(problem):
    X, y = problem
    forest = ProbabilisticForest(n_trees=1).fit(X, y, np.random.default_rng(3))
    counts = np.bincount(np.random.default_rng(3).integers(200, size=200), minlength=200)
    tree = forest._trees[0]
    leaves = tree.apply(X.astype(np.float32))
    mean, variance = forest.predict(X)
    for leaf in np.unique(leaves):
        sample = np.repeat(y[leaves == leaf], counts[leaves == leaf])
        assert np.count_nonzero(counts[leaves == leaf]) >= 3
        assert mean[leaves == leaf] == pytest.approx(sample.mean())
        assert variance[leaves == leaf] == pytest.approx(max(sample.var(), MIN_VARIANCE), abs=1e-9)


def test_total_variance_exceeds_between(problem):
    X, y = problem
    total = ProbabilisticForest(variance="total").fit(X, y, np.random.default_rng(0)).predict(X)[1]
    between = ProbabilisticForest(variance="between").fit(X, y, np.random.default_rng(0)).predict(X)[1]
    assert np.all(total >= between)


def test_log_target_leaf_is_the_logarithm_of_the_mean(problem):
    X, y = problem
    forest = ProbabilisticForest(n_trees=1, log_y=True).fit(X, y, np.random.default_rng(3))
    counts = np.bincount(np.random.default_rng(3).integers(200, size=200), minlength=200)
    leaves = forest._trees[0].apply(X.astype(np.float32))
    inside = leaves == leaves[0]
    expected = np.log(np.average(np.exp(y[inside]), weights=counts[inside]))
    assert forest.predict(X)[0][0] == pytest.approx(expected)


def test_few_points_and_constant_losses_are_survived():
    forest = ProbabilisticForest().fit(np.zeros((1, 2)), np.array([0.5]), np.random.default_rng(0))
    mean, variance = forest.predict(np.ones((4, 2)))
    assert np.all(mean == 0.5)
    assert np.all(variance == MIN_VARIANCE)


def test_unknown_variance_is_refused():
    with pytest.raises(InvalidParameterError, match="variance"):
        ProbabilisticForest(variance="none")


class TestForestContract(SurrogateContract):
    @pytest.fixture(params=["total", "between"])
    def surrogate(self, request):
        return lambda: ProbabilisticForest(variance=request.param)


def test_counted_configuration_changes_its_leaves_as_one_more_of_the_sample_would(problem):
    X, y = problem
    forest = ProbabilisticForest(n_trees=2).fit(X, y, np.random.default_rng(0))
    leaves, (before, _) = forest.leaves(X), forest.predict(X)
    counts = np.bincount(np.random.default_rng(0).integers(len(y), size=len(y)), minlength=len(y))
    forest.count(leaves[:, 7], 3.0)
    same = leaves[0] == leaves[0, 7]
    sample = np.append(np.repeat(y[same], counts[same]), 3.0)
    assert forest._leaf_means[0][leaves[0, 7]] == pytest.approx(sample.mean())
    assert forest._leaf_vars[0][leaves[0, 7]] == pytest.approx(sample.var())
    after, _ = forest.predict(X)
    apart = (leaves != leaves[:, [7]]).all(axis=0)
    np.testing.assert_array_equal(after[apart], before[apart])
    assert after[7] > before[7]
