from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cashmere.exceptions import ArrayError
from cashmere.surrogates.latent_space import (
    Encoders,
    LmcParameters,
    latent_posterior,
    likelihood_and_gradients,
    lmc_kernel,
    negative_log_likelihood,
    rows_of_tasks,
    stable_cholesky,
)

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "lmc.json").read_text())


def vector_parameters(noise):
    lengths, a, d = (np.array(VECTORS[name]) for name in ("ell", "a", "d"))
    return LmcParameters(lengths, a, d, noise)


def problem(n=30, n_tasks=5, q=2, seed=0):
    rng = np.random.default_rng(seed)
    parameters = LmcParameters(0.8, rng.normal(size=n_tasks), rng.uniform(0.1, 1, n_tasks), 0.05)
    return rng.normal(size=(n, q)), rng.integers(n_tasks, size=n), rng.normal(size=n), parameters


def test_kernel_agrees_with_vectors():
    u, tasks = np.array(VECTORS["u"]), np.array(VECTORS["task"])
    kernel = lmc_kernel(u, tasks, u, tasks, vector_parameters(0.0))
    np.testing.assert_allclose(kernel, VECTORS["K_noise_free"], rtol=1e-13)


def test_posterior_agrees_with_vectors():
    u, tasks = np.array(VECTORS["u"]), np.array(VECTORS["task"])
    query_tasks, means, variances = zip(*VECTORS["posterior_task_mean_var"], strict=True)
    query = np.tile(VECTORS["query_u"], (3, 1))
    residuals = np.array(VECTORS["y"]) - np.array(VECTORS["prior_mean_values"])
    parameters = vector_parameters(VECTORS["noise"])
    mean, variance = latent_posterior(u, tasks, residuals, query, np.array(query_tasks), parameters)
    prior_means = VECTORS["ymax"] - np.square(query).sum(axis=1)
    np.testing.assert_allclose(prior_means + mean, means, rtol=1e-12)
    np.testing.assert_allclose(variance, variances, rtol=1e-12)


def test_likelihood_agrees_with_vectors():
    u, tasks = np.array(VECTORS["u"]), np.array(VECTORS["task"])
    residuals = np.array(VECTORS["y"]) - np.array(VECTORS["prior_mean_values"])
    arguments = (u, tasks, residuals, vector_parameters(VECTORS["noise"]))
    expected = pytest.approx(VECTORS["negative_log_marginal_likelihood"], rel=1e-12)
    assert negative_log_likelihood(*arguments) == expected
    assert likelihood_and_gradients(*arguments)[0] == expected


def test_posterior_and_likelihood_agree_with_textbook_formulas():
    points, tasks, residuals, parameters = problem()
    queries, query_tasks, _, _ = problem(n=7, seed=1)
    covariances = np.outer(parameters.loadings, parameters.loadings) + np.diag(parameters.variances)

    def kernel(u, m, v, p):
        distances = np.square(u[:, None] - v[None]).sum(axis=2)
        return np.exp(-0.5 * distances / parameters.length_scales**2) * covariances[m][:, p]

    noisy = kernel(points, tasks, points, tasks) + parameters.noise * np.eye(30)
    cross = kernel(points, tasks, queries, query_tasks)
    inverse = np.linalg.inv(noisy)
    mean, variance = latent_posterior(points, tasks, residuals, queries, query_tasks, parameters)
    np.testing.assert_allclose(mean, cross.T @ inverse @ residuals, atol=1e-8)
    prior = np.diag(kernel(queries, query_tasks, queries, query_tasks))
    np.testing.assert_allclose(variance, prior - np.diag(cross.T @ inverse @ cross), atol=1e-8)
    expected = 0.5 * residuals @ inverse @ residuals + 0.5 * np.linalg.slogdet(2 * np.pi * noisy)[1]
    assert negative_log_likelihood(points, tasks, residuals, parameters) == pytest.approx(expected, abs=1e-8)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of GPyTorch and what it imports
def test_posterior_likelihood_and_gradients_agree_with_gpytorch():
    gpytorch, torch = pytest.importorskip("gpytorch"), pytest.importorskip("torch")
    points, tasks, residuals, parameters = problem()
    queries, query_tasks, _, _ = problem(n=7, seed=1)

    class Model(gpytorch.models.ExactGP):
        def __init__(self, inputs, targets, likelihood):
            super().__init__(inputs, targets, likelihood)
            self.mean, self.base = gpytorch.means.ZeroMean(), gpytorch.kernels.RBFKernel()
            self.task = gpytorch.kernels.IndexKernel(num_tasks=5, rank=1)

        def forward(self, u, m):
            return gpytorch.distributions.MultivariateNormal(self.mean(u), self.base(u) * self.task(m))

    inputs = (torch.tensor(points, requires_grad=True), torch.tensor(tasks)[:, None])
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = Model(inputs, torch.tensor(residuals), likelihood).double()
    model.base.lengthscale = torch.tensor(parameters.length_scales, dtype=torch.float64)
    model.task.covar_factor.data = torch.tensor(parameters.loadings)[:, None]
    model.task.var = torch.tensor(parameters.variances)
    likelihood.noise = torch.tensor(parameters.noise, dtype=torch.float64)

    model.train()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    total = -objective(model(*inputs), torch.tensor(residuals)) * len(tasks)
    total.backward()
    value, gradients = likelihood_and_gradients(points, tasks, residuals, parameters)
    assert value == pytest.approx(total.item(), abs=1e-8)
    np.testing.assert_allclose(gradients.points, inputs[0].grad.numpy(), atol=1e-8)
    np.testing.assert_allclose(gradients.loadings, model.task.covar_factor.grad.numpy()[:, 0], atol=1e-8)

    model.eval(), likelihood.eval()
    with torch.no_grad():
        expected = model(torch.tensor(queries), torch.tensor(query_tasks)[:, None])
        mean, variance = latent_posterior(points, tasks, residuals, queries, query_tasks, parameters)
        np.testing.assert_allclose(mean, expected.mean.numpy(), atol=1e-8)
        np.testing.assert_allclose(variance, expected.variance.numpy(), atol=1e-8)


def difference(function, x, step=1e-5):
    """Return central differences of a scalar function, shaped like x."""
    x = np.asarray(x, dtype=np.float64)
    result = np.empty_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        result[i] = (function(up) - function(down)) / (2 * step)
    return result


def test_gradients_are_those_of_finite_differences():
    points, tasks, residuals, parameters = problem(n=12)
    parameters = parameters._replace(length_scales=np.array([0.7, 1.3]))
    _, by = likelihood_and_gradients(points, tasks, residuals, parameters)

    def value(points=points, residuals=residuals, **changed):
        return negative_log_likelihood(points, tasks, residuals, parameters._replace(**changed))

    def stretched(log_factor):
        return value(length_scales=parameters.length_scales * np.exp(log_factor))

    np.testing.assert_allclose(by.points, difference(lambda x: value(points=x), points), atol=1e-6)
    np.testing.assert_allclose(by.residuals, difference(lambda x: value(residuals=x), residuals), atol=1e-6)
    np.testing.assert_allclose(by.loadings, difference(lambda x: value(loadings=x), parameters.loadings), atol=1e-6)
    np.testing.assert_allclose(by.variances, difference(lambda x: value(variances=x), parameters.variances), atol=1e-6)
    assert by.noise == pytest.approx(difference(lambda x: value(noise=float(x)), parameters.noise), rel=1e-6)
    assert by.log_length_scale == pytest.approx(difference(stretched, 0.0), rel=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 4), st.integers(1, 3))
def test_kernel_is_symmetric_and_positive_semi_definite(seed, n, n_tasks, q):
    points, tasks, _, parameters = problem(n, n_tasks, q, seed)
    kernel = lmc_kernel(points, tasks, points, tasks, parameters)
    np.testing.assert_array_equal(kernel, kernel.T)
    assert np.linalg.eigvalsh(kernel).min() > -1e-12


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_observations_lessen_the_variance(seed, n):
    points, tasks, residuals, parameters = problem(n, seed=seed)
    queries, query_tasks, _, _ = problem(5, seed=seed + 1)
    _, variance = latent_posterior(points, tasks, residuals, queries, query_tasks, parameters)
    prior = np.diag(lmc_kernel(queries, query_tasks, queries, query_tasks, parameters))
    assert np.all(variance <= prior + 1e-12)
    assert np.all(variance > 0)


def test_posterior_without_noise_passes_through_the_observations():
    points, tasks, residuals, parameters = problem(n=10)
    parameters = parameters._replace(noise=0.0)
    mean, variance = latent_posterior(points, tasks, residuals, points, tasks, parameters)
    np.testing.assert_allclose(mean, residuals, atol=1e-6)
    np.testing.assert_allclose(variance, 0, atol=1e-6)


def test_observations_of_one_task_inform_others_as_far_as_they_share():
    parameters = LmcParameters(1.0, np.array([1.0, 1.0, 0.0]), np.array([0.1, 0.1, 1.0]), 1e-3)
    point = np.zeros((1, 2))
    arguments = (point, np.array([0]), np.array([2.0]), np.zeros((3, 2)), np.arange(3), parameters)
    mean, _ = latent_posterior(*arguments)
    assert mean[0] > mean[1] > 1.5
    assert mean[2] == 0


def test_factor_of_a_well_conditioned_matrix_has_no_jitter():
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_array_equal(stable_cholesky(matrix), np.linalg.cholesky(matrix))


def test_singular_kernel_is_survived():
    points = np.repeat(np.random.default_rng(0).normal(size=(3, 2)), 20, axis=0)
    parameters = LmcParameters(1.0, np.ones(1), np.ones(1), 0.0)
    tasks = np.zeros(60, dtype=np.int64)
    factor = stable_cholesky(lmc_kernel(points, tasks, points, tasks, parameters))
    np.testing.assert_allclose(factor @ factor.T, lmc_kernel(points, tasks, points, tasks, parameters), atol=1e-3)


@pytest.mark.parametrize("matrix", [np.full((2, 2), np.nan), -np.eye(2), np.array([[np.inf, 0], [0, 1]])])
def test_a_matrix_that_is_not_a_kernel_is_refused(matrix):
    with pytest.raises(ArrayError, match="positive semi-definite"):
        stable_cholesky(matrix)


def test_embedding_of_a_row_depends_on_the_row_alone():
    rng = np.random.default_rng(0)
    encoders = Encoders.draw(n_algorithms=4, width=3, q=2, rng=rng)
    tasks, vectors = rng.integers(4, size=20), rng.random((20, 3))
    together = encoders.embed(tasks, vectors)
    alone = [encoders.embed(tasks[i : i + 1], vectors[i : i + 1])[0] for i in range(20)]
    np.testing.assert_allclose(together, alone, atol=1e-14)
    m, x = tasks[0], vectors[0]
    hidden = np.tanh(np.tanh(x @ encoders.w1[m] + encoders.b1[m]) @ encoders.w2[m] + encoders.b2[m])
    np.testing.assert_allclose(together[0], hidden @ encoders.w3[m] + encoders.b3[m], atol=1e-14)


def test_rows_of_tasks_are_a_partition():
    tasks = np.array([3, 0, 3, 3, 1, 0])
    assert {m: rows.tolist() for m, rows in rows_of_tasks(tasks)} == {0: [1, 5], 1: [4], 3: [0, 2, 3]}
