from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau
from threadpoolctl import threadpool_limits

from cashmere.acquisition.diversity import cross_measure
from cashmere.data.task import TaskType
from cashmere.ensembles.added_member import losses_with_added
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import ArrayError
from cashmere.surrogates.prediction import PredictionSurrogate

KINDS = [2, 4, "regression"]


def problem(kind, *, n=60, n_rows=200, d=4, seed=0):
    """Return configurations, predictions that are smooth functions of them, targets."""
    rng = np.random.default_rng(seed)
    X, rows = rng.random((n, d)), rng.normal(size=(n_rows, 2))
    signal = rows[:, 0]
    # The first two columns of X turn and sharpen what is predicted; the others do nothing.
    angle, size = 3 * X[:, :1], 0.5 + 2 * X[:, 1:2]
    scores = size * (np.cos(angle) * rows[:, 0] + np.sin(angle) * rows[:, 1])
    if kind == "regression":
        return X, scores.astype(np.float32), signal + 0.3 * rng.normal(size=n_rows)
    y = np.clip(np.digitize(signal, np.linspace(-1, 1, kind - 1)), 0, kind - 1)
    logits = scores[:, :, None] * np.linspace(-2, 2, kind)
    predictions = np.exp(logits - logits.max(axis=2, keepdims=True))
    return X, (predictions / predictions.sum(axis=2, keepdims=True)).astype(np.float32), y


def metric_of(name, kind):
    types = {"regression": TaskType.REGRESSION, 2: TaskType.BINARY}
    return get_metric(name, types.get(kind, TaskType.MULTICLASS))


def fitted(kind, *, seed=0, n=60, **parameters):
    X, predictions, y = problem(kind, n=n)
    return PredictionSurrogate(**parameters).fit(X, list(predictions), y, np.random.default_rng(seed))


def ensemble_losses(surrogate, X, predictions, y, weights, metric, *, row_weights=None):
    """Return the loss, predicted as in `EnsembleGain`, of an ensemble of observations with each row of X added."""
    size = int(np.sum(weights))
    pool = np.tensordot(weights, predictions.astype(np.float64), 1) / max(size, 1)
    added = losses_with_added(list(predictions), pool, y, metric, size=size, row_weights=row_weights)
    return surrogate.sample(added, X)


@pytest.mark.parametrize(
    ("measure", "kind"),
    [*[(m, k) for m in ("div", "bs", "ce") for k in (2, 4)], ("div", "regression"), ("mse", "regression")],
)
def test_pairs_of_unseen_configurations_are_ranked(measure, kind):
    X, predictions, y = problem(kind, n=260)
    seen, members = slice(0, 160), np.arange(0, 160, 20)
    surrogate = PredictionSurrogate(measure=measure)
    surrogate.fit(X[seen], list(predictions[seen]), y, np.random.default_rng(0))
    samples = surrogate.sample_pairs(X[160:], members)
    truth = cross_measure(measure, predictions[160:], predictions[members], y)
    assert samples.shape == (surrogate.n_trees, 100, 8)
    taus = [kendalltau(samples[:, :, j].mean(axis=0), truth[:, j]).statistic for j in range(8)]
    assert np.mean(taus) > 0.6
    assert min(taus) > 0.4


@pytest.mark.parametrize(
    ("measure", "kind"), [*[(m, k) for m in ("div", "bs", "ce") for k in (2, 4)], ("mse", "regression")]
)
def test_pairs_of_two_unseen_configurations_are_ranked(measure, kind):
    X, predictions, y = problem(kind, n=260)
    surrogate = PredictionSurrogate(measure=measure).fit(X[:160], list(predictions[:160]), y, np.random.default_rng(0))
    mean, variance = surrogate.predict_pairs(X[160:], X[160:])
    truth = cross_measure(measure, predictions[160:], predictions[160:], y)
    upper = np.triu_indices(100, k=1)
    assert kendalltau(mean[upper], truth[upper]).statistic > 0.6
    assert variance.min() >= 0 < variance.mean()


@pytest.mark.parametrize("min_samples_leaf", [1, 3])
@pytest.mark.parametrize(("measure", "kind"), [("div", 2), ("ce", 4), ("mse", "regression")])
def test_two_leaves_predict_the_average_over_pairs_of_different_observations(measure, kind, min_samples_leaf):
    X, predictions, y = problem(kind, n=40)
    surrogate = PredictionSurrogate(measure=measure, min_samples_leaf=min_samples_leaf, n_trees=4)
    surrogate.fit(X[:30], list(predictions[:30]), y, np.random.default_rng(0))
    truth = cross_measure(measure, predictions[:30], predictions[:30], y)
    leaves = [tree.apply(X.astype(np.float32)) for tree in surrogate._trees]
    expected = np.zeros((4, 10, 7))
    for tree, i, j in np.ndindex(expected.shape):
        here, there = (np.flatnonzero(leaves[tree][:30] == leaves[tree][k]) for k in (30 + i, 33 + j))
        pairs = [truth[a, b] for a in here for b in there if a != b] or [truth[here[0], here[0]]]
        expected[tree, i, j] = np.mean(pairs)
    mean, variance = surrogate.predict_pairs(X[30:], X[33:])
    np.testing.assert_allclose(mean, expected.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(variance, expected.var(axis=0), atol=1e-9)


def test_leaves_do_not_pair_an_observation_with_itself():
    X, predictions, y = problem(2, n=20)
    surrogate = PredictionSurrogate(min_samples_leaf=20).fit(X, list(predictions), y, np.random.default_rng(0))
    mean, variance = surrogate.predict_pairs(X[:2], X[:3])
    between = cross_measure("div", predictions, predictions, y)[np.triu_indices(20, k=1)].mean()
    np.testing.assert_allclose(mean, np.full((2, 3), between))
    np.testing.assert_allclose(variance, 0, atol=1e-12)


def test_fully_grown_trees_know_pairs_of_observations():
    X, predictions, y = problem(4)
    mean, variance = fitted(4, min_samples_leaf=1).predict_pairs(X, X)
    np.testing.assert_allclose(mean, cross_measure("div", predictions, predictions, y), atol=1e-9)
    np.testing.assert_allclose(variance, 0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_a_pair_does_not_matter(kind):
    X, _, _ = problem(kind)
    surrogate = fitted(kind)
    there, back = surrogate.predict_pairs(X[:9] + 0.1, X), surrogate.predict_pairs(X, X[:9] + 0.1)
    for one, other in zip(there, back, strict=True):
        np.testing.assert_allclose(one, other.T, atol=1e-12)


@pytest.mark.parametrize(("name", "kind"), [("log_loss", 2), ("brier", 4), ("accuracy", 4), ("mse", "regression")])
def test_ensemble_losses_of_unseen_configurations_are_ranked(name, kind):
    X, predictions, y = problem(kind, n=260)
    metric, weights = metric_of(name, kind), np.bincount([3, 3, 7, 9], minlength=160)
    surrogate = PredictionSurrogate().fit(X[:160], list(predictions[:160]), y, np.random.default_rng(0))
    samples = ensemble_losses(surrogate, X[160:], predictions[:160], y, weights, metric)
    pool = np.average(predictions[:160], axis=0, weights=weights)
    truth = losses_with_added(predictions[160:], pool, y, metric, size=4)
    assert samples.shape == (surrogate.n_trees, 100)
    assert kendalltau(samples.mean(axis=0), truth).statistic > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_fully_grown_trees_know_the_observations(kind):
    X, predictions, y = problem(kind)
    surrogate = fitted(kind, min_samples_leaf=1)
    members = np.array([5, 0, 59])
    pairs = np.broadcast_to(cross_measure("div", predictions, predictions[members], y), (surrogate.n_trees, 60, 3))
    np.testing.assert_allclose(surrogate.sample_pairs(X, members), pairs, atol=1e-12)
    numbers = np.arange(60.0)
    np.testing.assert_array_equal(surrogate.sample(numbers, X), np.tile(numbers, (surrogate.n_trees, 1)))


@pytest.mark.parametrize("size", [0, 3])
@pytest.mark.parametrize(("name", "kind"), [("log_loss", 2), ("brier", 4), ("f1_macro", 4), ("mae", "regression")])
def test_ensemble_losses_of_observations_are_those_of_the_metric(name, kind, size):
    X, predictions, y = problem(kind)
    metric, weights = metric_of(name, kind), np.bincount(np.array([1, 1, 8])[:size], minlength=60)
    samples = ensemble_losses(fitted(kind, min_samples_leaf=1), X, predictions, y, weights, metric)
    total = np.tensordot(weights, predictions, 1)
    expected = [metric.loss(y, (total + p) / (size + 1)) for p in predictions]
    np.testing.assert_allclose(samples, np.broadcast_to(expected, samples.shape), atol=1e-6)


def test_a_leaf_predicts_the_average_of_its_observations():
    X, _, _ = problem(2)
    surrogate, values = fitted(2, min_samples_leaf=3), np.random.default_rng(0).random((60, 2))
    samples = surrogate.sample(values, X)
    for tree, sample in zip(surrogate._trees, samples, strict=True):
        leaves = tree.apply(X.astype(np.float32))
        for leaf in np.unique(leaves):
            inside = leaves == leaf
            assert inside.sum() >= 3
            np.testing.assert_allclose(sample[inside], np.tile(values[inside].mean(axis=0), (inside.sum(), 1)))


@pytest.mark.parametrize(("kind", "n_coordinates"), [(2, 20), (120, 20), ("regression", 3)])
def test_shapes(kind, n_coordinates):
    X, predictions, y = problem(kind, n=30)
    surrogate = PredictionSurrogate(n_coordinates=n_coordinates, n_trees=7)
    surrogate.fit(X[:20], list(predictions[:20]), y, np.random.default_rng(0))
    assert all(1 <= tree.n_outputs - 1 <= n_coordinates for tree in surrogate._trees)  # one more: the distance
    assert surrogate.sample(np.eye(20), X).shape == (7, 30, 20)
    assert surrogate.sample_pairs(X, np.array([0, 4])).shape == (7, 30, 2)
    assert surrogate.sample(np.arange(20), X).shape == (7, 30)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_observations_are_enough(kind, n):
    X, predictions, y = problem(kind)
    metric = metric_of("mse" if kind == "regression" else "log_loss", kind)
    surrogate = PredictionSurrogate().fit(X[:n], list(predictions[:n]), y, np.random.default_rng(0))
    for samples in (
        surrogate.sample_pairs(X, np.arange(n)),
        surrogate.sample(predictions[:n].reshape(n, -1), X),
        *surrogate.predict_pairs(X, X),
        ensemble_losses(surrogate, X, predictions[:n], y, np.ones(n), metric),
    ):
        assert np.isfinite(samples).all()


def test_equal_predictions_and_equal_configurations_are_survived():
    X, predictions, y = problem(2)
    same = PredictionSurrogate().fit(X, [predictions[0]] * 60, y, np.random.default_rng(0))
    assert np.ptp(same.sample(np.arange(60.0), X)) < 1e-12
    np.testing.assert_array_equal(same.sample_pairs(X, np.array([0, 1])), 0)
    twins = PredictionSurrogate().fit(np.zeros((60, 4)), list(predictions), y, np.random.default_rng(0))
    samples = twins.sample(np.arange(60.0), X)
    np.testing.assert_allclose(samples, 29.5)


@given(seed=st.integers(0, 1000))
def test_order_of_the_validation_rows_does_not_matter(seed):
    X, predictions, y = problem(2, n=15, n_rows=30)
    order = np.random.default_rng(seed).permutation(30)
    one, two = (
        PredictionSurrogate(n_trees=3).fit(X, list(p), t, np.random.default_rng(0)).sample_pairs(X, np.arange(4))
        for p, t in ((predictions, y), (predictions[:, order], y[order]))
    )
    np.testing.assert_allclose(one, two, atol=1e-12)


def test_row_weights_count():
    X, predictions, y = problem(2)
    weights = np.where(np.arange(200) < 100, 1.0, 0.0)
    weighted, halved = (
        PredictionSurrogate(min_samples_leaf=1).fit(X, list(p), t, np.random.default_rng(0), row_weights=w)
        for p, t, w in ((predictions, y, weights), (predictions[:, :100], y[:100], None))
    )
    members, metric = np.array([3, 4]), metric_of("brier", 2)
    np.testing.assert_allclose(weighted.sample_pairs(X, members), halved.sample_pairs(X, members))
    whole = ensemble_losses(weighted, X, predictions, y, np.eye(60)[3], metric, row_weights=weights)
    half = ensemble_losses(halved, X, predictions[:, :100], y[:100], np.eye(60)[3], metric)
    np.testing.assert_allclose(whole, half, atol=1e-6)


def test_distances_to_the_targets_are_a_further_coordinate():
    rng = np.random.default_rng(0)
    X, y = rng.random((120, 4)), np.tile([0, 1], 100)
    # The first column decides what most differs between predictions, the third how far they are from the targets.
    pattern, sharpness = np.repeat([-0.3, 0.3], 100), 0.1 * X[:, 2:3]
    second = 0.5 + np.sign(X[:, :1] - 0.5) * pattern + sharpness * (2 * y - 1) + 0.02 * rng.normal(size=(120, 200))
    distances = np.square(y - second).mean(axis=1)
    observed = list(np.stack([1 - second, second], axis=2)[:60])

    def correlation(loss_weight):
        surrogate = PredictionSurrogate(n_coordinates=1, feature_fraction=1.0, loss_weight=loss_weight)
        surrogate.fit(X[:60], observed, y, np.random.default_rng(0))
        return np.corrcoef(surrogate.sample(distances[:60], X[60:]).mean(axis=0), distances[60:])[0, 1]

    assert correlation(1.0) > 0.95 > 0.9 > correlation(0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_same_generator_gives_the_same_samples(kind):
    X, _, _ = problem(kind)
    one, two, other = (fitted(kind, seed=seed).sample_pairs(X + 0.1, np.arange(5)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_number_of_threads_does_not_matter(kind):
    samples = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            samples.append(fitted(kind).sample(np.arange(60.0), problem(kind)[0] + 0.1))
    np.testing.assert_array_equal(*samples)


def test_refit_forgets_what_was_learned_before():
    X, predictions, y = problem(2)
    surrogate = fitted(4, n=30).fit(X, list(predictions), y, np.random.default_rng(0))
    np.testing.assert_array_equal(surrogate.sample(np.eye(60), X), fitted(2).sample(np.eye(60), X))


def test_predictions_are_only_read(tmp_path):
    X, predictions, y = problem(2, n=20)
    np.save(tmp_path / "p.npy", predictions.astype(np.float16))
    mapped = np.load(tmp_path / "p.npy", mmap_mode="r")
    surrogate = PredictionSurrogate().fit(X[:20], list(mapped), y, np.random.default_rng(0))
    pairs = surrogate.sample_pairs(X, np.array([1]))
    exact = PredictionSurrogate().fit(X[:20], list(predictions), y, np.random.default_rng(0))
    np.testing.assert_allclose(pairs.mean(axis=0), exact.sample_pairs(X, np.array([1])).mean(axis=0), atol=0.1)


@pytest.mark.parametrize("shape", [(100_000, 2), (2_000, 150), (100_000,)])
def test_memory_is_bounded(shape):
    n, rng = 40, np.random.default_rng(0)
    one = rng.random(shape, dtype=np.float32)
    if len(shape) == 2:
        one /= one.sum(axis=1, keepdims=True)
    y = rng.integers(shape[1], size=shape[0]) if len(shape) == 2 else rng.random(shape[0])
    predictions = [np.roll(one, i, axis=0) for i in range(4)] * (n // 4)
    surrogate = PredictionSurrogate(n_trees=3)
    X = rng.random((n, 5))
    tracemalloc.start()
    surrogate.fit(X, predictions, y, rng).sample_pairs(X, np.arange(10))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * n * surrogate.max_values + 60e6


def test_no_observations_are_refused():
    with pytest.raises(ArrayError, match="predictions"):
        PredictionSurrogate().fit(np.zeros((0, 3)), [], np.zeros(5), np.random.default_rng(0))
    with pytest.raises(ArrayError, match="predictions"):
        PredictionSurrogate().fit(np.zeros((2, 3)), [np.zeros(5)], np.zeros(5), np.random.default_rng(0))


@pytest.mark.parametrize("measure", ["div", "mse"])
def test_a_diverged_model_attracts_no_further_than_cut_values(measure):
    X, predictions, y = problem("regression")
    predictions[3] = 1e8
    reach = 10 * y.std()
    cut = np.clip(predictions, y.mean() - reach, y.mean() + reach)
    surrogate = PredictionSurrogate(measure=measure, min_samples_leaf=1)
    surrogate.fit(X, list(predictions), y, np.random.default_rng(0))
    members = np.array([0, 3, 7])
    np.testing.assert_allclose(
        surrogate.sample_pairs(X, members).mean(axis=0), cross_measure(measure, cut, cut[members], y), rtol=1e-5
    )
    assert predictions[3, 0] == 1e8


def test_configurations_without_predictions_count_in_their_leaves():
    """One observation makes one leaf, in which everything lies."""
    forest = fitted(2, n=1)
    values, unseen = np.array([1.0, 3.0, 5.0]), np.random.default_rng(0).random((2, 4))
    np.testing.assert_allclose(forest.sample(values[:1], unseen), np.full((20, 2), 1.0))
    np.testing.assert_allclose(forest.sample(values, unseen, further=unseen), np.full((20, 2), 3.0))
    both = np.column_stack([values, -values])
    np.testing.assert_allclose(forest.sample(both, unseen, further=unseen)[..., 1], np.full((20, 2), -3.0))
