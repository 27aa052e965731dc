from __future__ import annotations

import numpy as np
import pytest

from cashmere.surrogates.loss_of_predictions import LossOfPredictions
from contracts.surrogate_contract import SurrogateContract

ROWS = np.random.default_rng(7).normal(size=50)


def predictions_of(X, losses):
    """Return made-up predictions: the truth, missed by more the higher the loss, in a direction that X decides."""
    errors = np.cos(3 * X[:, :1] + np.arange(50))
    return list(ROWS + np.asarray(losses)[:, None] * errors)


class _WithPredictions:
    """The surrogate as the contract calls it."""

    def __init__(self, **options):
        self.surrogate = LossOfPredictions(**options)

    def fit(self, X, y, rng):
        self.surrogate.fit(X, y, rng, predictions=predictions_of(X, y), targets=ROWS)
        return self

    def predict(self, X):
        return self.surrogate.predict(X)


class TestLossOfPredictions(SurrogateContract):
    @pytest.fixture(params=["total", "between"])
    def surrogate(self, request):
        return lambda: _WithPredictions(variance=request.param)


def test_a_pending_trial_counts_in_the_leaves_it_falls_into():
    """One observation makes one leaf: the mean of two losses, and half of their distance squared."""
    X = np.array([[0.5]])
    model = LossOfPredictions()
    settings = {"predictions": predictions_of(X, [0.2]), "targets": ROWS}
    mean, variance = model.fit(X, np.array([0.2]), np.random.default_rng(0), **settings).predict(X)
    assert mean[0] == pytest.approx(0.2) and variance[0] == pytest.approx(0, abs=1e-9)
    pending = {"pending": np.array([[0.9]]), "pending_losses": np.array([0.6])}
    mean, variance = model.fit(X, np.array([0.2]), np.random.default_rng(0), **settings, **pending).predict(X)
    assert mean[0] == pytest.approx(0.4) and variance[0] == pytest.approx(0.04)


def test_pending_trials_make_their_surroundings_less_attractive():
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    losses = (X[:, 0] - 0.3) ** 2
    best = X[[np.argmin(losses)]]
    settings = {"predictions": predictions_of(X, losses), "targets": ROWS}
    alone, _ = LossOfPredictions().fit(X, losses, np.random.default_rng(1), **settings).predict(best)
    beside, _ = (
        LossOfPredictions()
        .fit(X, losses, np.random.default_rng(1), pending=best, pending_losses=np.array([0.5]), **settings)
        .predict(best)
    )
    assert beside[0] > alone[0]
