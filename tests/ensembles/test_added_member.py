from __future__ import annotations

import numpy as np
import pytest

from cashmere.data.task import TaskType
from cashmere.ensembles.added_member import losses_with_added
from cashmere.evaluation.metrics import get_metric

CLASSIFICATION = ["log_loss", "brier", "accuracy", "balanced_accuracy", "roc_auc", "f1_macro"]
REGRESSION = ["mse", "rmse", "mae", "r2"]


class Squared:
    """A metric with the name of a kernel and another definition."""

    name = "mse"

    def loss(self, y, predictions, weight=None):
        return float(np.average((predictions - y) ** 4, weights=weight))


def problem(kind, *, n=12, n_rows=60, seed=0):
    """Return predictions, pool, targets, row weights."""
    rng = np.random.default_rng(seed)
    if kind == "regression":
        y = rng.normal(size=n_rows)
        predictions = (y * rng.uniform(0, 1.5, size=(n, 1)) + rng.normal(size=(n, n_rows))).astype(np.float32)
    else:
        y = rng.permutation(np.arange(n_rows) % kind)
        skill = np.eye(kind)[y] * rng.uniform(-0.5, 2, size=(n, 1, 1))
        predictions = np.exp(rng.normal(size=(n, n_rows, kind)) + skill)
        predictions = (predictions / predictions.sum(axis=2, keepdims=True)).astype(np.float32)
    return predictions, predictions[:3].mean(axis=0, dtype=np.float64), y, rng.random(n_rows) + 0.1


def metric_of(name, kind):
    types = {"regression": TaskType.REGRESSION, 2: TaskType.BINARY}
    return get_metric(name, types.get(kind, TaskType.MULTICLASS))


CASES = [(name, kind) for name in CLASSIFICATION for kind in (2, 5)] + [(name, "regression") for name in REGRESSION]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [0, 1, 24])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_losses_with_added_are_those_of_the_metric(name, kind, size, weighted):
    predictions, pool, y, weight = problem(kind)
    weight, metric = weight if weighted else None, metric_of(name, kind)
    found = losses_with_added(predictions, pool, y, metric, size=size, row_weights=weight)
    expected = [metric.loss(y, (size * pool + p) / (size + 1), weight) for p in predictions]
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_a_metric_is_called_if_its_kernel_has_another_definition():
    predictions, pool, y, _ = problem("regression")
    found = losses_with_added(predictions, pool, y, Squared(), size=2)
    np.testing.assert_allclose(found, [Squared().loss(y, (2 * pool + p) / 3) for p in predictions])


def test_sequences_of_any_float_are_read_only():
    predictions, pool, y, _ = problem(3)
    metric = metric_of("log_loss", 3)
    halves = [p.astype(np.float16) for p in predictions]
    for half in halves:
        half.flags.writeable = False
    found = losses_with_added(halves, pool, y, metric, size=3)
    np.testing.assert_allclose(found, losses_with_added(predictions, pool, y, metric, size=3), atol=1e-3)


class Counting:
    """A metric that counts how often it is called."""

    def __init__(self, metric):
        self.metric, self.name, self.clip, self.n_calls = metric, metric.name, metric.clip, 0

    def loss(self, y, predictions, weight=None):
        self.n_calls += 1
        return self.metric.loss(y, predictions, weight)


REPAIRED = [("log_loss", 2), ("log_loss", 5), ("brier", 2), ("brier", 5), ("roc_auc", 2)]


@pytest.mark.parametrize("position", [0, 7])
@pytest.mark.parametrize(("name", "kind"), REPAIRED)
def test_predictions_that_are_not_probabilities_are_left_to_the_metric(name, kind, position):
    predictions, pool, y, _ = problem(kind)
    predictions[position] *= 3
    predictions[4, 0] = [-0.5, 1.5, *[0.0] * (kind - 2)]
    metric = Counting(metric_of(name, kind))
    for size in (0, 3):
        metric.n_calls = 0
        found = losses_with_added(predictions, pool, y, metric, size=size)
        assert metric.n_calls == 3  # those two, and one to see whether the kernel fits
        expected = [metric.loss(y, (size * pool + p) / (size + 1)) for p in predictions]
        np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize(("name", "kind"), REPAIRED)
def test_a_pool_that_is_not_a_probability_is_left_to_the_metric(name, kind):
    predictions, pool, y, _ = problem(kind)
    found = losses_with_added(predictions, 2 * pool, y, metric_of(name, kind), size=3)
    expected = [metric_of(name, kind).loss(y, (6 * pool + p) / 4) for p in predictions]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("size", [0, 3])
@pytest.mark.parametrize("position", [0, 7])
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_predictions_that_are_not_finite_have_an_infinite_loss(name, kind, position, size):
    predictions, pool, y, _ = problem(kind)
    metric = metric_of(name, kind)
    added = losses_with_added(predictions, pool, y, metric, size=size)
    others = np.arange(len(predictions)) != position
    for bad in (np.nan, np.inf):
        predictions[position].flat[1] = bad
        found = losses_with_added(predictions, pool, y, metric, size=size)
        assert found[position] == np.inf
        np.testing.assert_allclose(found[others], added[others], atol=1e-12)
    hopeless = np.full_like(predictions, np.nan)
    assert np.all(losses_with_added(hopeless, pool, y, metric, size=size) == np.inf)


def test_nan_from_a_metric_is_an_infinite_loss():
    class Undefined:
        name = "accuracy"

        def loss(self, y, predictions, weight=None):
            return float("nan")

    predictions, pool, y, _ = problem(2)
    assert np.all(losses_with_added(predictions, pool, y, Undefined(), size=2) == np.inf)


@pytest.mark.parametrize("position", [0, 7])
@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy"])
def test_only_ties_between_classes_are_left_to_the_metric(name, position):
    predictions, _, y, _ = problem(2)
    predictions[position, :5] = 0.5
    metric = Counting(metric_of(name, 2))
    found = losses_with_added(predictions, np.full((60, 2), 0.5), y, metric, size=1)
    assert metric.n_calls == 2
    np.testing.assert_allclose(found, [metric.loss(y, (0.5 + p) / 2) for p in predictions], atol=1e-12)
