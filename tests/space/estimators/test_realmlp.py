"""RealMLP: numpy predicts what PyTorch has fitted, and equal seeds give equal fits, whatever else the process does."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from cashmere.exceptions import MissingDependencyError
from cashmere.space.estimators.realmlp import RealMLPClassifier, RealMLPRegressor
from cashmere.space.estimators.realmlp_training import RealMLPTraining
from cashmere.space.paths.realmlp import ends_of_cycles

torch = pytest.importorskip("torch")

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


@pytest.mark.parametrize("n_layers", [1, 3])
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_numpy_predicts_what_pytorch_has_fitted(n_classes, n_layers):
    X, y = rows(n_classes)
    fitted = network(n_classes, dropout=0.0, n_layers=n_layers)
    training = RealMLPTraining(fitted, X, y)
    training.learn(12)
    with torch.no_grad():
        expected = training._outputs(torch.from_numpy(fitted.scaled(X))).numpy()
    assert np.ptp(expected) > 0.01
    assert fitted.outputs(X) == pytest.approx(expected, abs=1e-5)


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


def test_fits_side_by_side_do_not_disturb_each_other_or_the_process():
    X, y = rows(3)
    alone = network(3).fit(X, y)
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    first, second = network(3), network(3, random_state=1)
    trainings = [RealMLPTraining(first, X, y), RealMLPTraining(second, X, y)]
    for position in (4, 12):
        for training in trainings:
            training.learn(position)
    assert torch.random.get_rng_state().equal(state)
    assert torch.get_num_threads() == threads
    assert np.array_equal(predict(first, X), predict(alone, X))
    assert not np.array_equal(predict(second, X), predict(alone, X))


def test_a_fit_does_not_depend_on_threads():
    X, y = rows(2)
    before = torch.get_num_threads()
    predicted = []
    try:
        for n_threads in (1, 2):
            torch.set_num_threads(n_threads)
            predicted.append(predict(network(2).fit(X, y), X))
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(*predicted)


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


def test_a_fit_without_pytorch_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"'realmlp' needs .* pip install 'cashmere-automl\[torch\]'"):
        network(2).fit(*rows(2))


def test_predictions_need_no_pytorch():
    code = (
        "import sys; import cashmere.space.named.default, numpy as np;"
        "from cashmere.space.estimators.realmlp import RealMLPRegressor; model = RealMLPRegressor(width=8);"
        "X = np.arange(12.0).reshape(6, 2); model.begin(X, X[:, 0]);"
        "print(model.predict(X).shape, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(6,) False"
