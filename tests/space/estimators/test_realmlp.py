"""RealMLP: equal seeds give equal fits, whatever else the process does, and it learns what a network should."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from cashmere.space.estimators.realmlp import RealMLPClassifier, RealMLPRegressor
from cashmere.space.estimators.realmlp_training import RealMLPTraining
from cashmere.space.paths.realmlp import ends_of_cycles

N_ROWS = 300


def rows(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, 4)).astype(np.float32)
    X[:, 2] = X[:, 2] > 0
    X[:, 3] = 7.0
    signal = np.abs(X[:, 0]) + X[:, 1] * X[:, 2]
    edges = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    return X, signal if n_classes == 1 else np.digitize(signal, edges)


def network(n_classes, **settings):
    settings = {"width": 32, "n_epochs": 12} | settings
    return RealMLPRegressor(**settings) if n_classes == 1 else RealMLPClassifier(**settings)


def predict(fitted, X):
    return fitted.predict_proba(X) if hasattr(fitted, "classes_") else fitted.predict(X)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_it_learns_what_no_linear_model_can(n_classes):
    X, y = rows(n_classes)
    unseen, truth = rows(n_classes, seed=1)
    fitted = network(n_classes, width=64, n_epochs=60).fit(X, y)
    if n_classes == 1:
        assert np.mean((fitted.predict(unseen) - truth) ** 2) < 0.3 * np.var(truth)
    else:
        assert fitted.score(unseen, truth) > 0.8
        assert fitted.predict_proba(unseen).sum(axis=1) == pytest.approx(1.0)


def test_fits_side_by_side_do_not_disturb_each_other():
    X, y = rows(3)
    alone = network(3).fit(X, y)
    first, second = network(3), network(3, random_state=1)
    trainings = [RealMLPTraining(first, X, y), RealMLPTraining(second, X, y)]
    for position in (4, 12):
        for training in trainings:
            training.learn(position)
    assert np.array_equal(predict(first, X), predict(alone, X))
    assert not np.array_equal(predict(second, X), predict(alone, X))


def test_a_fit_does_not_depend_on_threads():
    X, y = rows(2)
    fits = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            fits.append(network(2, width=256).fit(X, y))
    assert all(np.array_equal(*layers) for layers in zip(*(fitted.coefs_ for fitted in fits), strict=True))


def test_weights_of_a_position_stay_when_the_fit_goes_on():
    X, y = rows(2)
    fitted = network(2)
    training = RealMLPTraining(fitted, X, y)
    training.learn(4)
    weights = fitted.weights()
    before = predict(fitted, X)
    training.learn(12)
    assert not np.array_equal(predict(fitted, X), before)
    for name, value in weights.items():
        setattr(fitted, name, value)
    assert np.array_equal(predict(fitted, X), before)


def test_rows_without_weight_are_not_learned_from():
    X, y = rows(2)
    weight = np.ones(N_ROWS)
    weight[::3] = 0.0
    other = y.copy()
    other[::3] = 1 - other[::3]
    assert np.array_equal(predict(network(2).fit(X, y, weight), X), predict(network(2).fit(X, other, weight), X))
    assert not np.array_equal(predict(network(2).fit(X, y, weight), X), predict(network(2).fit(X, y), X))


def test_columns_without_numbers_are_not_embedded_and_extreme_values_are_clipped():
    X, y = rows(1)
    fitted = network(1).fit(X, y)
    assert fitted.embedded_.tolist() == [0, 1]
    extreme = np.array([[1e30, -1e30, 1, 1e30], [-3e38, 3e38, 0, 7]], dtype=np.float32)
    assert np.abs(fitted.scaled(extreme)).max() <= 3
    assert np.isfinite(fitted.predict(extreme)).all()
    assert fitted.predict(extreme).min() >= y.min()
    assert fitted.predict(extreme).max() <= y.max()


def test_tables_of_codes_only_and_many_columns_have_no_embeddings():
    X, y = rows(2)
    assert len(network(2).fit(X[:, 2:], y).embedded_) == 0
    wide = np.random.default_rng(0).normal(size=(N_ROWS, 200))
    fitted = network(2, n_epochs=4).fit(wide, y)
    assert len(fitted.embedded_) == 0
    assert fitted.predict_proba(wide[:1]).shape == (1, 2)


def test_labels_of_any_kind_are_returned():
    X, y = rows(3)
    fitted = network(3).fit(X, np.array(["a", "b", "c"])[y])
    assert set(fitted.predict(X)) <= {"a", "b", "c"}
    assert clone(fitted).get_params() == fitted.get_params()


def test_divergence_is_an_error():
    X, y = rows(1)
    with pytest.raises(FloatingPointError, match="diverged"):
        network(1, learning_rate=1e30, dropout=0.0).fit(X, y)


def test_positions_are_ends_of_cycles():
    assert ends_of_cycles(252) == (4, 12, 28, 60, 124, 252)
    assert ends_of_cycles(1) == (4,)


@pytest.mark.long
def test_a_fit_needs_no_pytorch():
    code = (
        "import sys; import cashmere.space.named.default, numpy as np;"
        "from cashmere.space.estimators.realmlp import RealMLPRegressor;"
        "X = np.arange(12.0).reshape(6, 2); model = RealMLPRegressor(width=8, n_epochs=1).fit(X, X[:, 0]);"
        "print(model.predict(X).shape, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(6,) False"
