"""The geometric mean of recalls against imbalanced-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cashmere.evaluation.metrics import METRICS

geometric_mean_score = pytest.importorskip("imblearn.metrics").geometric_mean_score


def g_mean(y, labels, n_classes, weight=None):
    metric = METRICS["g_mean"]
    return metric.score(metric.loss(y, np.eye(n_classes)[labels], weight))


def theirs(y, labels, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about classes without rows
        return geometric_mean_score(y, labels, average="multiclass", **options)


@settings(deadline=None)
@given(n_classes=st.integers(2, 5), share=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
def test_mean_is_that_of_imbalanced_learn_if_every_predicted_class_occurs(n_classes, share, seed):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 20)]
    labels = np.where(rng.random(len(y)) < share, y, rng.integers(0, n_classes, len(y)))
    weight = rng.random(len(y)) + 0.1
    assert g_mean(y, labels, n_classes) == pytest.approx(theirs(y, labels), abs=1e-12)
    assert g_mean(y, labels, n_classes, weight) == pytest.approx(theirs(y, labels, sample_weight=weight), abs=1e-12)
    if n_classes == 2:
        assert g_mean(y, labels, 2) == pytest.approx(geometric_mean_score(y, labels), abs=1e-12)


def test_a_class_without_rows_in_the_fold_has_no_recall():
    y = np.array([0, 0, 1, 1])
    expected = np.sqrt(0.5)
    never_predicted, predicted = np.array([0, 0, 1, 0]), np.array([0, 0, 1, 2])
    assert g_mean(y, never_predicted, 3) == pytest.approx(expected)
    assert theirs(y, never_predicted) == pytest.approx(expected)
    # Here we differ: imbalanced-learn counts a recall of 0 for a class without rows, so that the mean is 0.
    assert g_mean(y, predicted, 3) == pytest.approx(expected)
    assert theirs(y, predicted) == 0


def test_one_missed_class_makes_it_zero():
    assert g_mean(np.array([0, 0, 0, 1]), np.zeros(4, dtype=int), 2) == 0
