"""Probabilities of classes from margins between every two of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from cashmere.space.estimators.margins import CoupledMargins, coupled_margins
from cashmere.space.path import PathData
from cashmere.space.paths.sharpness import SharpnessPath


@pytest.mark.parametrize("n_classes", [3, 4, 7])
def test_coupling_is_the_product_over_all_pairs(n_classes):
    pairs = [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
    margins = np.random.default_rng(0).normal(size=(20, len(pairs)))
    expected = np.ones((20, n_classes))
    for p, (i, j) in enumerate(pairs):
        expected[:, i] *= expit(1.7 * margins[:, p])
        expected[:, j] *= expit(-1.7 * margins[:, p])
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(coupled_margins(margins, 1.7), expected, rtol=1e-12)


def test_two_classes_have_the_sigmoid_of_their_margin():
    margins = np.linspace(-5.0, 5.0, 11)
    np.testing.assert_allclose(coupled_margins(margins, 2.5)[:, 1], expit(2.5 * margins), rtol=1e-12)


@pytest.mark.parametrize("margins", [np.array([-1e4, 1e4]), np.array([[-1e4, 1e4, 1e4], [1e4, -1e4, 1e4]])])
def test_large_margins_do_not_overflow(margins):
    probabilities = coupled_margins(margins, 16.0)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_predictions_agree_with_the_machine(n_classes):
    X, y = make_classification(300, 6, n_informative=6, n_redundant=0, n_classes=n_classes, random_state=0)
    machine = SVC(C=10.0, gamma=0.1, decision_function_shape="ovo")
    model = CoupledMargins(machine, sharpness=4.0).fit(X[:200], y[:200])
    assert (model.predict(X[200:]) == machine.fit(X[:200], y[:200]).predict(X[200:])).mean() > 0.95


class Fitted:
    """A learner with given margins."""

    def __init__(self, margins):
        self.margins = margins

    def fit(self, X, y, sample_weight):
        return self

    def decision_function(self, X):
        return self.margins


def test_the_loss_is_lowest_at_the_sharpness_of_the_labels():
    rng = np.random.default_rng(0)
    margins = rng.normal(size=20_000)
    y = (rng.random(len(margins)) < expit(4.0 * margins)).astype(int)
    rows = np.zeros((len(margins), 1))
    data = PathData(
        X=rows, y=y, weight=None, unseen=rows, n_classes=2, categorical=np.zeros(1, dtype=bool), n_threads=1
    )
    path, losses = SharpnessPath(Fitted(margins), data), {}
    for sharpness in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0):
        path.advance(sharpness)
        losses[sharpness] = log_loss(y, path.predict())
    assert min(losses, key=losses.get) == 4.0
