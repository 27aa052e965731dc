"""The gradient of RealMLP and the steps of AdamW are those of PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.timings.realmlp_time import as_tensors, loss_in_pytorch
from cashmere.space.estimators.adamw import AdamW, WeightGroup
from cashmere.space.estimators.realmlp import WEIGHTS, RealMLPClassifier, RealMLPRegressor
from cashmere.space.estimators.realmlp_gradients import mish, selu
from cashmere.space.estimators.realmlp_training import RealMLPTraining

torch = pytest.importorskip("torch")

N_ROWS = 200


def listed(value):
    return value if isinstance(value, list) else [value]


def trained(n_classes, **settings):
    """Return a fit under way, whose last layer and slopes are no longer those of the start."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    X[:, 2] = X[:, 2] > 0
    signal = np.abs(X[:, 0]) + X[:, 1] * X[:, 2]
    y = signal if n_classes == 1 else np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    learner = (RealMLPRegressor if n_classes == 1 else RealMLPClassifier)(width=16, **settings)
    training = RealMLPTraining(learner, X, y, rng.uniform(0.5, 2.0, N_ROWS))
    training.learn(6)
    return training


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("n_layers", [1, 3])
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_gradient_is_that_of_pytorch(n_classes, n_layers, dropout):
    training = trained(n_classes, n_layers=n_layers, dropout=dropout)
    rows = np.random.default_rng(1).permutation(N_ROWS)[:64]
    kept = training._kept(len(rows))
    assert len(kept) == (n_layers if dropout else 0)
    training._kept = lambda n_rows: kept
    training._write_gradient(rows)
    tensors = as_tensors(training._weights)
    x, y, weight = (torch.from_numpy(each[rows]) for each in (training._X, training._y, training._weight))
    masks = [torch.from_numpy(each) for each in kept]
    embedded = x[:, training._network.embedded_]
    loss_in_pytorch(tensors, x, embedded, y=y, weight=weight, kept=masks, n_classes=n_classes).backward()
    assert set(tensors) == set(WEIGHTS)
    for name, expected in tensors.items():
        for derivative, tensor in zip(listed(training._derivatives[name]), listed(expected), strict=True):
            largest = float(tensor.grad.abs().max())
            assert largest > 0
            assert derivative == pytest.approx(tensor.grad.numpy(), abs=1e-5 * largest), name


def test_gradient_without_embeddings():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3)).astype(np.float32)
    training = RealMLPTraining(RealMLPRegressor(width=8, n_layers=1, dropout=0.0), x > 0, x[:, 0])
    assert not len(training._network.embedded_)
    training._write_gradient(np.arange(50))
    assert np.abs(training._derivatives["intercepts_"][-1]).max() > 0  # only the last layer is zero at the start
    training.learn(4)
    training._write_gradient(np.arange(50))
    assert np.abs(training._derivatives["front_"]).max() > 0


@pytest.mark.parametrize(("ours", "name"), [(selu, "selu"), (mish, "mish")])
def test_activations_and_their_derivatives_are_those_of_pytorch(ours, name):
    a = np.concatenate([np.linspace(-100, 100, 401), [-1e30, 1e30, 0.0]]).astype(np.float32)
    tensor = torch.from_numpy(a.copy()).requires_grad_()
    expected = getattr(torch.nn.functional, name)(tensor)
    expected.sum().backward()
    values, derivatives = ours(a)
    assert values.dtype == derivatives.dtype == np.float32
    assert values == pytest.approx(expected.detach().numpy(), rel=1e-5, abs=1e-6)
    assert derivatives == pytest.approx(tensor.grad.numpy(), rel=1e-5, abs=1e-6)


@pytest.mark.long
def test_steps_are_those_of_pytorch():
    rng = np.random.default_rng(0)
    ours = rng.normal(size=10).astype(np.float32)
    groups = [WeightGroup(size=4, rate=0.1, decay=0.0), WeightGroup(size=6, rate=0.03, decay=0.5)]
    parts = [torch.from_numpy(ours[:4].copy()).requires_grad_(), torch.from_numpy(ours[4:].copy()).requires_grad_()]
    settings = [{"params": [part], "weight_decay": group.decay} for part, group in zip(parts, groups, strict=True)]
    theirs = torch.optim.AdamW(settings, lr=0.0, betas=(0.9, 0.95))
    optimiser = AdamW(ours, groups, (0.9, 0.95))
    for height in (0.2, 1.0, 0.7, 0.0):
        gradient = rng.normal(size=10).astype(np.float32)
        for group, of_theirs, part, begin in zip(groups, theirs.param_groups, parts, (0, 4), strict=True):
            of_theirs["lr"] = group.rate * height
            part.grad = torch.from_numpy(gradient[begin : begin + group.size].copy())
        theirs.step()
        optimiser.step(gradient, height)
        assert ours == pytest.approx(torch.cat(parts).detach().numpy(), rel=1e-5)


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_it_learns_from_the_outputs_that_it_predicts(n_classes):
    training = trained(n_classes, dropout=0.0)
    seen = []
    training._output_derivatives = lambda outputs, rows: seen.append(outputs) or outputs
    training._write_gradient(np.arange(50))
    assert np.ptp(seen[0]) > 0.01
    assert training._network._outputs(training._X[:50]) == pytest.approx(seen[0], abs=1e-5)


def test_the_gradient_may_be_written_more_than_once():
    training = trained(2, dropout=0.0)
    training._write_gradient(np.arange(32))
    first = training._gradient.copy()
    training._write_gradient(np.arange(32))
    assert np.array_equal(training._gradient, first)
