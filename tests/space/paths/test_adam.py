"""The steps of a network's fit are those of the library."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor

from cashmere.space.path import PathData
from cashmere.space.paths.adam import AdamEpochs

N_ROWS = 40
NO_STEP = 1e-300


def rows(n_classes, *, weighted=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 3))
    return PathData(
        X=X,
        y=rng.integers(n_classes, size=N_ROWS) if n_classes > 1 else X[:, 0] * 2,
        weight=rng.uniform(0.5, 2, size=N_ROWS) if weighted else None,
        unseen=X,
        n_classes=n_classes,
        categorical=np.zeros(3, dtype=bool),
        n_threads=1,
    )


def after_one_epoch(data, rate):
    learner = (MLPClassifier if data.n_classes > 1 else MLPRegressor)(
        hidden_layer_sizes=(5, 4), batch_size=N_ROWS, alpha=0.3, learning_rate_init=rate, random_state=0
    )
    classes = {"classes": np.arange(data.n_classes)} if data.n_classes > 1 else {}
    return learner.partial_fit(data.X, data.y, sample_weight=data.weight, **classes)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_step_is_the_first_of_the_library(n_classes, weighted):
    data = rows(n_classes, weighted=weighted)
    expected, learner = after_one_epoch(data, 0.1), after_one_epoch(data, NO_STEP)
    before = [each.copy() for each in learner.coefs_]
    AdamEpochs(learner.set_params(learning_rate_init=0.1), data).learn()
    assert not np.allclose(learner.coefs_[0], before[0], atol=1e-2)
    for ours, theirs in zip(
        [*learner.coefs_, *learner.intercepts_], [*expected.coefs_, *expected.intercepts_], strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-7)


def test_divergence_is_an_error():
    learner = after_one_epoch(rows(1), NO_STEP).set_params(learning_rate_init=1e200)
    adam = AdamEpochs(learner, rows(1))
    with pytest.raises(FloatingPointError, match="diverged"):
        for _ in range(3):
            adam.learn()
