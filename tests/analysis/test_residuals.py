from __future__ import annotations

import numpy as np
import pytest

from cashmere.analysis.confusion import confusion_matrix, join_small_classes
from cashmere.analysis.residuals import residual_bands, weighted_quantiles


def test_bands_follow_bias_and_spread():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = p + 0.5 * p**2 + 0.1 * (1 + p) * rng.normal(size=20_000)
    found = residual_bands(y, p)
    assert len(found.predicted) == 12
    np.testing.assert_allclose(found.median, 0.5 * found.predicted**2, atol=0.02)
    np.testing.assert_allclose(found.upper - found.lower, 2 * 1.645 * 0.1 * (1 + found.predicted), rtol=0.1)


def test_equal_predictions_are_one_bin():
    found = residual_bands(np.arange(100.0), np.full(100, 3.0))
    assert found.predicted.tolist() == [3.0]
    assert found.median.tolist() == [49.0 - 3]


def test_weighted_quantiles_equal_those_of_repeated_values():
    rng = np.random.default_rng(1)
    values, weight = rng.normal(size=50), rng.integers(0, 4, 50)
    expected = np.quantile(np.repeat(values, weight), (0.05, 0.5, 0.9), method="inverted_cdf")
    np.testing.assert_array_equal(weighted_quantiles(values, (0.05, 0.5, 0.9), weight), expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_confusion_matrix_equals_that_of_scikit_learn(weighted):
    from sklearn import metrics

    rng = np.random.default_rng(2)
    y, decided, weight = rng.integers(0, 4, 300), rng.integers(0, 4, 300), rng.random(300) if weighted else None
    np.testing.assert_allclose(
        confusion_matrix(y, decided, 5, weight),
        metrics.confusion_matrix(y, decided, labels=range(5), sample_weight=weight),
    )


def test_joined_classes_keep_all_rows():
    rng = np.random.default_rng(3)
    matrix = rng.integers(0, 9, (12, 12)).astype(float)
    joined, kept = join_small_classes(matrix, 5)
    assert joined.shape == (5, 5)
    assert joined.sum() == matrix.sum()
    np.testing.assert_array_equal(joined[:4, :4], matrix[np.ix_(kept, kept)])
    assert matrix.sum(axis=1)[kept].min() >= np.delete(matrix.sum(axis=1), kept).max()
