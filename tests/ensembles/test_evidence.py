from __future__ import annotations

import numpy as np
import pytest

from cashmere.data.task import TaskType
from cashmere.ensembles.evidence import GainEvidence, judge_gain
from cashmere.evaluation.metrics import get_metric

LOG_LOSS = get_metric("log_loss", TaskType.BINARY)
MSE = get_metric("mse", TaskType.REGRESSION)


def judged(predictions, y, metric, **options):
    losses = np.array([metric.loss(y, p, None) for p in predictions])
    return judge_gain(predictions, y, metric, losses=losses, rng=np.random.default_rng(0), **options)


def independent_errors(n=20, n_rows=400):
    """Return regressions whose errors cancel: the more are averaged, the better."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=n_rows)
    return list(y + 0.5 * rng.normal(size=(n, n_rows))), y


def coins(n=40, n_rows=60):
    """Return classifiers that know nothing, the one exactly, the others with noise: nothing can be gained."""
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=n_rows)
    second = np.clip(0.5 + 0.2 * rng.normal(size=(n, n_rows)), 0.05, 0.95)
    second[0] = 0.5
    return [np.stack([1 - p, p], axis=1) for p in second], y


def test_a_real_gain_wants_many_members():
    evidence = judged(*independent_errors(), MSE)
    assert evidence.best_size > 10
    assert evidence.losses.shape == (3, len(evidence.sizes))
    assert list(evidence.sizes) == [1, 2, 3, 5, 8, 12, 18, 25]


def test_gains_that_hold_elsewhere_are_believed():
    predictions, y = independent_errors(n=80, n_rows=4000)
    assert judged(predictions, y, MSE).credibility == 1.0  # only 20 could be chosen, the others help everywhere


def test_gains_of_noise_are_not_believed():
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(10):
        y = rng.integers(2, size=100)
        second = np.clip(0.5 + 0.2 * rng.normal(size=(60, 100)), 0.05, 0.95)
        shares.append(judged([np.stack([1 - p, p], axis=1) for p in second], y, LOG_LOSS).helped.mean())
    assert np.mean(shares) == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize(
    ("helped", "credibility"), [([0.4, 0.5], 0.0), ([0.5, 0.6, 0.7], 0.6), ([2 / 3, 2 / 3], 1.0), ([1.0, 0.9], 1.0)]
)
def test_credibility_begins_above_a_coin(helped, credibility):
    evidence = GainEvidence(sizes=np.array([1, 2]), losses=np.ones((2, 2)), helped=np.array(helped))
    assert evidence.credibility == pytest.approx(credibility)
    assert evidence.best_size == 1  # the smaller of equals


def test_halves_hold_every_row_once_and_share_the_classes():
    seen = []

    class Spy:
        name = "spy"

        def loss(self, y, predictions, weight=None):
            seen.append(np.bincount(y))
            return float(np.mean(predictions[np.arange(len(y)), y] < 0.5))

    predictions, y = coins(n=3, n_rows=80)
    judge_gain(predictions, y, Spy(), losses=np.zeros(3), rng=np.random.default_rng(0), size=2, n_splits=3)
    for counts in seen:
        np.testing.assert_allclose(counts, np.bincount(y) / 2, atol=0.5)


def test_same_generator_same_evidence_and_weights_count():
    predictions, y = independent_errors()
    np.testing.assert_array_equal(judged(predictions, y, MSE).losses, judged(predictions, y, MSE).losses)
    weighted = judged(predictions, y, MSE, row_weights=np.linspace(0, 1, len(y)))
    assert not np.array_equal(weighted.losses, judged(predictions, y, MSE).losses)


@pytest.mark.parametrize("rows", [10, 39])
def test_few_rows_say_nothing(rows):
    predictions, y = independent_errors(n_rows=rows)
    assert judged(predictions, y, MSE) is None


def test_a_class_of_one_row_says_nothing():
    predictions, y = coins(n_rows=80)
    rare = np.zeros_like(y)
    rare[0] = 1
    assert judged(predictions, rare, LOG_LOSS) is None
