from __future__ import annotations

import numpy as np
import pytest

from cashmere.data.task import TaskType
from cashmere.ensembles.evidence import GainEvidence, judge_gain
from cashmere.evaluation.metrics import get_metric

LOG_LOSS = get_metric("log_loss", TaskType.BINARY)
MSE = get_metric("mse", TaskType.REGRESSION)


def judged(predictions, y, metric, **options):
    return judge_gain(predictions, y, metric, rng=np.random.default_rng(0), **options)


def independent_errors(n=20, n_rows=400):
    """Return regressions whose errors cancel: the more are averaged, the better."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=n_rows)
    return list(y + 0.5 * rng.normal(size=(n, n_rows))), y


def coins(n=40, n_rows=60):
    """Return classifiers that know nothing, the first exactly, the others with noise: nothing can be gained."""
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=n_rows)
    second = np.clip(0.5 + 0.2 * rng.normal(size=(n, n_rows)), 0.05, 0.95)
    second[0] = 0.5
    return [np.stack([1 - p, p], axis=1) for p in second], y


def test_a_real_gain_favours_many_members():
    evidence = judged(*independent_errors(), MSE)
    assert evidence.best_size > 10
    assert evidence.losses.shape == (8, len(evidence.sizes))
    assert list(evidence.sizes) == [1, 2, 3, 5, 8, 12, 18, 25]


def test_gains_that_hold_on_other_rows_are_believed():
    predictions, y = independent_errors(n=80, n_rows=4000)
    assert judged(predictions, y, MSE).credibility == 1.0  # only 20 could be chosen, the others help everywhere


def test_gains_that_are_noise_are_not_believed():
    """All candidates predict the truth up to tiny independent noise: gains on one half are chance."""
    credibilities = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=200)
        common = 0.5 * rng.normal(size=200)  # an error that no candidate can reduce
        predictions = list(y + common + 1e-3 * rng.normal(size=(60, 200)))
        credibilities.append(judged(predictions, y, MSE).credibility)
    assert np.mean(credibilities) < 0.35


@pytest.mark.parametrize(
    ("gains", "credibility"),
    [([0.1, -0.3], 0.0), ([0.1, 0.3], 1.0), ([-0.1, 0.3], 0.5), ([0.0, 0.0], 0.0), ([0.2, 0.2], 1.0)],
)
def test_credibility_is_the_mean_gain_in_standard_deviations(gains, credibility):
    evidence = GainEvidence(sizes=np.array([1, 2]), losses=np.ones((2, 2)), gains=np.array(gains))
    assert evidence.credibility == pytest.approx(credibility)
    assert evidence.best_size == 1  # the smaller in a tie


def test_halves_hold_every_row_once_and_share_the_classes():
    seen = []

    class Spy:
        name = "spy"

        def loss(self, y, predictions, weight=None):
            seen.append(np.bincount(y))
            return float(np.mean(predictions[np.arange(len(y)), y] < 0.5))

    predictions, y = coins(n=3, n_rows=80)
    judged(predictions, y, Spy(), size=2)
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


def test_classes_of_one_row_are_left_out():
    predictions, y = coins(n_rows=80)
    three = [np.column_stack([p, np.full((80, 2), 1e-3)]) / (1 + 2e-3) for p in predictions]
    rare = y.copy()
    rare[0], rare[1] = 2, 3
    metric = get_metric(all_classes_needed, TaskType.MULTICLASS)
    assert judged(three, rare, metric) is not None
    seen.clear()


seen = []


def all_classes_needed(y_true, y_pred):
    seen.append(set(np.unique(y_true)))
    assert seen[0] == seen[-1]
    return float(np.mean(y_true == y_pred))


def test_a_metric_that_cannot_be_computed_says_nothing():
    class Fussy:
        name = "fussy"

        def loss(self, y, predictions, weight=None):
            raise ValueError("only defined for whole tables")

    assert judged(*coins(n_rows=80), Fussy()) is None


def test_a_half_without_weight_says_nothing():
    predictions, y = independent_errors()
    weights = np.zeros(len(y))
    weights[7] = 1.0
    assert judged(predictions, y, MSE, row_weights=weights) is None
