from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cashmere.exceptions import ArrayError, InvalidParameterError, NotFittedError
from cashmere.surrogates.latent import LatentSurrogate
from cashmere.surrogates.latent_space import Encoders, PretrainedEmbedding
from contracts.surrogate_contract import SurrogateContract

M = 5


def embedding(seed=0, n_algorithms=M, loss_std=0.1):
    rng = np.random.default_rng(seed)
    encoders = Encoders.draw(n_algorithms=n_algorithms, width=3, q=2, rng=rng)
    return PretrainedEmbedding(encoders, loss_std, "made up")


def observations(n, seed=0):
    rng = np.random.default_rng(seed)
    tasks, vectors = rng.integers(M, size=n), rng.random((n, 3))
    losses = 0.2 + 0.3 * np.square(vectors[:, 0] - 0.1 * tasks) + 0.05 * vectors[:, 1]
    return tasks, vectors, losses


def surrogate(pretrained, **options):
    return LatentSurrogate(n_algorithms=M, pretrained=embedding() if pretrained else None, **options)


def rng(seed=0):
    return np.random.default_rng(seed)


both = pytest.mark.parametrize("pretrained", [True, False])


class InOneSpace:
    """A latent surrogate of vectors whose last column gives the algorithm: inactive or not."""

    def __init__(self, pretrained):
        self.surrogate = LatentSurrogate(n_algorithms=2, pretrained=pretrained)

    def fit(self, X, y, rng):
        self.surrogate.fit((X[:, 3] < 0).astype(int), X[:, :3], y, rng)
        return self

    def predict(self, X):
        return self.surrogate.predict((X[:, 3] < 0).astype(int), X[:, :3])


class TestWithoutPretraining(SurrogateContract):
    @pytest.fixture
    def surrogate(self):
        return lambda: InOneSpace(None)


class TestWithPretraining(SurrogateContract):
    @pytest.fixture
    def surrogate(self):
        return lambda: InOneSpace(embedding(n_algorithms=2))

    def test_equal_losses_are_survived(self, surrogate, data):
        """The prior mean keeps its shape, so the prediction need not be constant, only close to it."""
        mean, variance = surrogate().fit(data[0], np.ones(60), rng()).predict(data[0])
        np.testing.assert_allclose(mean, 1, atol=0.2)
        assert np.all(variance < 0.1)


@both
def test_gradient_is_that_of_finite_differences(pretrained):
    tasks, vectors, losses = observations(12)
    objective = surrogate(pretrained, n_hidden=8).objective(tasks, vectors, losses / losses.std(), rng())
    x = 0.1 * rng(1).normal(size=objective.n_parameters)
    gradient = objective(x)[1]
    for i in range(0, len(x), max(1, len(x) // 150)):
        up, down = x.copy(), x.copy()
        up[i] += 1e-5
        down[i] -= 1e-5
        assert gradient[i] == pytest.approx((objective(up)[0] - objective(down)[0]) / 2e-5, abs=1e-6, rel=1e-5)


@pytest.mark.long
@both
def test_objective_and_gradient_agree_with_autograd(pretrained):
    torch = pytest.importorskip("torch")
    tasks, vectors, losses = observations(15)
    objective = surrogate(pretrained).objective(tasks, vectors, losses / losses.std(), rng())
    x = torch.tensor(0.1 * rng(1).normal(size=objective.n_parameters), requires_grad=True)

    t, k, step = torch.tensor(tasks), 4 + 2 * M, (2 * objective.penalty) ** -0.5 if pretrained else 1.0
    weights = {name: torch.tensor(getattr(objective.start, name)) for name in ("w1", "b1", "w2", "b2", "w3", "b3")}
    begin = k
    for name in objective.trained:
        size = weights[name].numel()
        weights[name] = weights[name] + step * x[begin : begin + size].reshape(weights[name].shape)
        begin += size
    theta = torch.tensor(objective.centre) + torch.tensor(objective.spread) * x[:k]
    u = torch.tensor(vectors)
    for layer in "123":
        u = torch.einsum("ni,nij->nj", u, weights[f"w{layer}"][t]) + weights[f"b{layer}"][t]
        u = u if layer == "3" else torch.tanh(u)
    a, d = theta[4 : 4 + M], torch.exp(theta[4 + M :])
    base = torch.exp(-0.5 * ((u[:, None] - u[None]) / torch.exp(theta[0])).square().sum(dim=2))
    kernel = base * (torch.outer(a, a) + torch.diag(d))[t][:, t] + torch.exp(theta[1]) * torch.eye(
        15, dtype=torch.float64
    )
    mean = theta[2] + (torch.exp(theta[3]) if pretrained else 0.0) * u.square().sum(dim=1)
    expected = -torch.distributions.MultivariateNormal(mean, kernel).log_prob(torch.tensor(objective.targets))
    expected = expected + 0.5 * x[:k].square().sum() + objective.penalty * (step * x[k:]).square().sum()
    expected.backward()

    value, gradient = objective(x.detach().numpy())
    assert value == pytest.approx(expected.item(), abs=1e-8)
    np.testing.assert_allclose(gradient, x.grad.numpy(), atol=1e-8)


def test_penalty_is_that_of_equation_6_in_units_of_the_source():
    tasks, vectors, losses = observations(12)
    objective = surrogate(True, alpha=3.0).objective(tasks, vectors, losses, rng())
    assert objective.penalty == pytest.approx(3.0 / 0.1)
    x = np.zeros(objective.n_parameters)
    x[4 + 2 * M :] = rng(1).normal(size=len(x) - 4 - 2 * M)
    moved = objective.encoders(x)
    distance = np.square(moved.w3 - objective.start.w3).sum() + np.square(moved.b3 - objective.start.b3).sum()
    free = surrogate(True, alpha=0.0).objective(tasks, vectors, losses, rng())
    y = x.copy()
    y[4 + 2 * M :] *= (2 * objective.penalty) ** -0.5
    assert objective(x)[0] == pytest.approx(free(y)[0] + 30 * distance)


@both
def test_fit_is_better_than_its_start(pretrained):
    tasks, vectors, losses = observations(40)
    fitted = surrogate(pretrained).fit(tasks, vectors, losses, rng())
    new_tasks, new_vectors, new_losses = observations(200, seed=9)
    mean, variance = fitted.predict(new_tasks, new_vectors)
    assert np.corrcoef(mean, new_losses)[0, 1] > 0.6
    assert np.square(mean - new_losses).mean() < new_losses.var()
    assert np.all(variance > 0)


def test_only_output_layers_of_observed_algorithms_are_fine_tuned():
    tasks, vectors, losses = observations(20)
    kept = tasks != 3
    fitted = surrogate(True).fit(tasks[kept], vectors[kept], losses[kept], rng())
    before, after = embedding().encoders, fitted._fitted.encoders
    for name in ("w1", "b1", "w2", "b2"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    moved = np.abs(after.w3 - before.w3).max(axis=(1, 2))
    assert moved[3] == 0
    assert np.all(np.delete(moved, 3) > 1e-6)


def test_all_layers_are_trained_without_pretraining():
    tasks, vectors, losses = observations(20)
    start = surrogate(False).objective(tasks, vectors, losses, rng(4)).start
    trained = surrogate(False).fit(tasks, vectors, losses, rng(4))._fitted.encoders
    for name in ("w1", "b1", "w2", "b2", "w3", "b3"):
        assert np.abs(getattr(trained, name) - getattr(start, name)).max() > 1e-6, name


def test_a_large_penalty_keeps_the_embedding():
    tasks, vectors, losses = observations(30)
    near, far = (surrogate(True, alpha=alpha).fit(tasks, vectors, losses, rng()) for alpha in (1e8, 0.01))
    start = embedding().encoders.embed(tasks, vectors)
    np.testing.assert_allclose(near.embed(tasks, vectors), start, atol=1e-3)
    assert np.abs(far.embed(tasks, vectors) - start).max() > 0.01


def test_pretrained_order_is_followed_before_the_algorithm_was_observed():
    """With one observation of another algorithm, only the prior mean tells good from bad."""
    pretrained = embedding()
    tasks, vectors = np.full(50, 2), rng().random((50, 3))
    fitted = surrogate(True).fit(np.array([0]), vectors[:1], np.array([0.4]), rng())
    radii = np.square(pretrained.encoders.embed(tasks, vectors)).sum(axis=1)
    mean, _ = fitted.predict(tasks, vectors)
    assert np.corrcoef(mean, radii)[0, 1] > 0.9


@both
def test_predictions_follow_the_unit_of_the_losses(pretrained):
    tasks, vectors, losses = observations(30)
    mean, variance = surrogate(pretrained).fit(tasks, vectors, losses, rng()).predict(tasks, vectors)
    other_mean, other_variance = (
        surrogate(pretrained).fit(tasks, vectors, 4 * losses - 1, rng()).predict(tasks, vectors)
    )
    np.testing.assert_allclose(other_mean, 4 * mean - 1, atol=1e-4)
    np.testing.assert_allclose(other_variance, 16 * variance, rtol=1e-2)


@both
@pytest.mark.parametrize("case", ["one", "two equal", "same vector twice", "all equal", "few algorithms", "outlier"])
def test_hostile_observations_are_survived(pretrained, case):
    tasks, vectors, losses = observations(24)
    if case == "one":
        tasks, vectors, losses = tasks[:1], vectors[:1], losses[:1]
    elif case == "two equal":
        tasks, vectors, losses = tasks[[0, 0]], vectors[[0, 0]], losses[[0, 0]]
    elif case == "same vector twice":
        tasks, vectors = np.repeat(tasks[:12], 2), np.repeat(vectors[:12], 2, axis=0)
    elif case == "all equal":
        losses = np.full(24, 0.3)
    elif case == "few algorithms":
        tasks = tasks % 2
    else:
        losses = np.append(losses[1:], 1e6)
    fitted = surrogate(pretrained).fit(tasks, vectors, losses, rng())
    everywhere, anything = np.repeat(np.arange(M), 10), rng(1).random((10 * M, 3))
    mean, variance = fitted.predict(everywhere, anything)
    assert np.isfinite(mean).all()
    assert np.all(variance > 0)
    assert fitted.embed(everywhere, anything).shape == (50, 2)


def test_a_source_of_equal_losses_is_survived():
    pretrained = embedding(loss_std=0.0)
    tasks, vectors, losses = observations(24)
    fitted = LatentSurrogate(n_algorithms=M, pretrained=pretrained).fit(tasks, vectors, losses, rng())
    mean, variance = fitted.predict(tasks, vectors)
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()


@both
def test_generator_matters_only_without_pretraining(pretrained):
    tasks, vectors, losses = observations(20)
    one, other = (
        surrogate(pretrained).fit(tasks, vectors, losses, rng(seed)).predict(tasks, vectors) for seed in (1, 2)
    )
    assert np.array_equal(one, other) == pretrained


DIGEST = """
import hashlib, sys
sys.path.insert(0, {tests!r})
{block}
from surrogates.test_latent import observations, surrogate, rng
for pretrained in (True, False):
    tasks, vectors, losses = observations(40)
    found = surrogate(pretrained).fit(tasks, vectors, losses, rng()).predict(tasks, vectors)
    print(hashlib.sha256(b"".join(values.tobytes() for values in found)).hexdigest())
"""


def test_another_process_without_torch_finds_the_same():
    code = DIGEST.format(tests=str(Path(__file__).parents[1]), block="sys.modules['torch'] = None")
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    for pretrained, digest in zip((True, False), printed, strict=True):
        tasks, vectors, losses = observations(40)
        found = surrogate(pretrained).fit(tasks, vectors, losses, rng()).predict(tasks, vectors)
        assert hashlib.sha256(b"".join(values.tobytes() for values in found)).hexdigest() == digest


@both
@pytest.mark.parametrize(("n", "limit"), [(100, 1.0), (300, 3.0)])
def test_fit_takes_a_second_at_most(pretrained, n, limit):
    tasks, vectors, losses = observations(n)
    seconds = []
    for _ in range(2):  # the first may pay for imports and caches
        start = time.process_time()
        surrogate(pretrained).fit(tasks, vectors, losses, rng())
        seconds.append(time.process_time() - start)
    assert min(seconds) < limit


def test_wrong_arguments_are_named():
    with pytest.raises(InvalidParameterError, match="alpha"):
        surrogate(True, alpha=-1.0)
    with pytest.raises(InvalidParameterError, match="n_algorithms must be 5"):
        LatentSurrogate(n_algorithms=4, pretrained=embedding())
    tasks, vectors, losses = observations(3)
    with pytest.raises(ArrayError, match="losses"):
        surrogate(True).fit(tasks, vectors, np.array([0.1, np.nan, 0.2]), rng())
    with pytest.raises(ArrayError, match="losses"):
        surrogate(True).fit(tasks[:0], vectors[:0], losses[:0], rng())
    with pytest.raises(NotFittedError, match="Call fit before predict"):
        surrogate(True).predict(tasks, vectors)
