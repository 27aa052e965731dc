"""Gaussian process over several algorithms on a latent space that they share: encoders, kernel, posterior, likelihood.

======================  ======================  ====================================================================
symbol                  shape                   meaning
======================  ======================  ====================================================================
M, q, h                 int                     algorithms ("tasks"), dimension of the latent space, hidden units
vectors                 ``(n, width)``          an algorithm's own hyper-parameters in [0, 1], padded with zeros
tasks                   ``(n,)``                number of the algorithm, 0 .. M - 1
u                       ``(n, q)``              embeddings phi_m(vector)
ell                     ``()`` or ``(q,)``      length scales of the Gaussian base kernel
a, d                    ``(M,)``                loadings and task variances: covariance of the tasks a a^T + diag(d)
mu                      ``(n,)``                prior means
======================  ======================  ====================================================================

Losses are minimised, whereas the paper maximises scores: the regret ``||u||^2`` is added to the best loss.

References
----------
Ishikawa, Ozaki, Kanzaki, Takeuchi and Karasuyama (2025), Bayesian optimization for simultaneous selection of machine
learning algorithms and hyperparameters on shared latent space, arXiv:2502.09329, section 3.1,
equations 2-4; docs/papers/latent.md#process-on-the-latent-space.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self, cast

import numpy as np
from scipy.linalg import lapack, solve_triangular

from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.exceptions import ArrayError

_JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
"""Jitter added to the diagonal, step by step and in units of its mean, until the Cholesky factor exists."""


@dataclass(frozen=True, eq=False)
class Encoders:
    """Small networks, one per algorithm, that map its hyper-parameters into the latent space (eq. 3).

    Each has two hidden tanh layers and a linear output.

    Attributes
    ----------
    w1, b1 : (M, width, h), (M, h) array
        Weights and biases of the first hidden layer.
    w2, b2 : (M, h, h), (M, h) array
        Second hidden layer.
    w3, b3 : (M, h, q), (M, q) array
        Output layer, the only one fine-tuned after pre-training.

    Examples
    --------
    >>> encoders = Encoders.draw(n_algorithms=3, width=4, q=2, rng=np.random.default_rng(0))
    >>> encoders.embed(np.array([0, 2]), np.zeros((2, 4))).shape
    (2, 2)
    """

    w1: Float64
    b1: Float64
    w2: Float64
    b2: Float64
    w3: Float64
    b3: Float64

    @classmethod
    def draw(cls, *, n_algorithms: int, width: int, q: int, rng: np.random.Generator, n_hidden: int = 32) -> Self:
        """Draw weights before any training.

        Variances are 1 / fan-in; the biases of the first layer spread the bends of tanh over [0, 1].
        """
        m, h = n_algorithms, n_hidden
        w1 = rng.normal(size=(m, width, h)) * np.sqrt(3.0)
        b1 = -np.einsum("mwh,mwh->mh", w1, rng.random((m, width, h)))
        w2 = rng.normal(size=(m, h, h)) / np.sqrt(h)
        w3 = rng.normal(size=(m, h, q)) / np.sqrt(h)
        return cls(w1, b1, w2, np.zeros((m, h)), w3, np.zeros((m, q)))

    def hidden(self, tasks: IntArray, vectors: FloatArray) -> Float64:
        """Return the output of the second hidden layer ``(n, h)`` for ``(n, width)`` vectors."""
        features = np.empty((len(tasks), self.b2.shape[1]))
        for m, rows in rows_of_tasks(tasks):
            first = np.tanh(vectors[rows] @ self.w1[m] + self.b1[m])
            features[rows] = np.tanh(first @ self.w2[m] + self.b2[m])
        return features

    def embed(self, tasks: IntArray, vectors: FloatArray) -> Float64:
        """Return the embeddings ``(n, q)`` of ``(n, width)`` vectors."""
        return self.project(tasks, self.hidden(tasks, vectors))

    def project(self, tasks: IntArray, hidden: Float64) -> Float64:
        """Apply the output layer to ``(n, h)`` hidden features."""
        points = np.empty((len(tasks), self.b3.shape[1]))
        for m, rows in rows_of_tasks(tasks):
            points[rows] = hidden[rows] @ self.w3[m] + self.b3[m]
        return points


@dataclass(frozen=True, eq=False)
class PretrainedEmbedding:
    """The result of pre-training on one source table: encoders with ``||u||^2`` near the regret on that table.

    Attributes
    ----------
    encoders : Encoders
        Networks of all algorithms.
    loss_std : float
        Standard deviation of the source's losses, the unit in which ``||u||^2`` is compared with other tables.
    source : str
        Name of the table.
    """

    encoders: Encoders
    loss_std: float
    source: str


class LmcParameters(NamedTuple):
    """Parameters of the linear model of coregionalisation with one latent process, rank 1 plus diagonal.

    Attributes
    ----------
    length_scales : float or (q,) array
        Positive.
    loadings : (M,) array
        The part that tasks share: their covariance is a_m a_m'.
    variances : (M,) array
        Positive; the part specific to each task.
    noise : float
        Variance of the noise, non-negative.
    """

    length_scales: float | FloatArray
    loadings: FloatArray
    variances: FloatArray
    noise: float


def lmc_kernel(
    points: FloatArray, tasks: IntArray, other_points: FloatArray, other_tasks: IntArray, parameters: LmcParameters
) -> Float64:
    """Return the covariances of function values, without noise.

    k((u, m), (u', m')) = exp(-0.5 sum_d ((u_d - u'_d) / ell_d)^2) (a_m a_m' + [m = m'] d_m)

    Parameters
    ----------
    points, other_points : (n, q), (n', q) array
        Embeddings.
    tasks, other_tasks : (n,), (n',) int array
        Their algorithms.
    parameters : LmcParameters
        Parameters of the kernel.

    Returns
    -------
    (n, n') array
        Covariances; the base kernel's variance is 1, because it could not be distinguished from the scale of a and d.
    """
    base = _gaussian(points / parameters.length_scales, other_points / parameters.length_scales)
    return base * _task_covariances(tasks, other_tasks, parameters)


def latent_posterior(
    points: FloatArray,
    tasks: IntArray,
    residuals: FloatArray,
    query_points: FloatArray,
    query_tasks: IntArray,
    parameters: LmcParameters,
) -> tuple[Float64, Float64]:
    """Return mean and variance of the function at query points, given noisy observations.

    Parameters
    ----------
    points, tasks : (n, q), (n,) array
        Embeddings and algorithms of the observations.
    residuals : (n,) array
        Observed losses minus their prior means.
    query_points, query_tasks : (n', q), (n',) array
        Where to predict.
    parameters : LmcParameters
        Kernel and noise.

    Returns
    -------
    mean : (n',) array
        To be added to the prior means of the queries.
    variance : (n',) array
        Variance of the function, without noise; not clipped.
    """
    factor = _noisy_factor(points, tasks, parameters)
    cross = lmc_kernel(points, tasks, query_points, query_tasks, parameters)
    solved = solve_triangular(factor, cross, lower=True, check_finite=False)
    mean = solved.T @ solve_triangular(factor, residuals, lower=True, check_finite=False)
    prior = np.square(parameters.loadings[query_tasks]) + parameters.variances[query_tasks]
    return mean, prior - np.einsum("ij,ij->j", solved, solved)


def negative_log_likelihood(
    points: FloatArray, tasks: IntArray, residuals: FloatArray, parameters: LmcParameters
) -> float:
    """Return -log p of the observations: 0.5 r^T K^-1 r + 0.5 log det K + 0.5 n log 2 pi, with K including the noise.

    Arguments are those of `latent_posterior`.
    """
    factor = _noisy_factor(points, tasks, parameters)
    whitened = solve_triangular(factor, residuals, lower=True, check_finite=False)
    return float(0.5 * whitened @ whitened + np.log(np.diag(factor)).sum() + 0.5 * len(tasks) * np.log(2 * np.pi))


class LikelihoodGradients(NamedTuple):
    """Derivatives of the negative log likelihood, each shaped like its variable."""

    points: Float64
    residuals: Float64
    log_length_scale: float
    """With respect to the logarithm of a factor common to all length scales."""
    loadings: Float64
    variances: Float64
    noise: float


def likelihood_and_gradients(
    points: FloatArray, tasks: IntArray, residuals: FloatArray, parameters: LmcParameters
) -> tuple[float, LikelihoodGradients]:
    """Return `negative_log_likelihood` and its derivatives.

    With w = K^-1 r and G = (K^-1 - w w^T) / 2 the derivative with respect to K is G; the others follow by the chain
    rule: -G K / 2 (entry by entry) for squared distances, G exp(-0.5 distances) for the covariances of tasks.
    """
    scaled = points / parameters.length_scales
    base = _gaussian(scaled, scaled)
    kernel = base * _task_covariances(tasks, tasks, parameters)
    noisy = kernel.copy()
    noisy.flat[:: len(tasks) + 1] += parameters.noise
    factor = stable_cholesky(noisy)
    half, _ = lapack.dpotri(factor, lower=1)
    inverse = half + half.T  # one triangle is zero
    inverse.flat[:: len(tasks) + 1] *= 0.5
    weights = inverse @ residuals
    value = 0.5 * residuals @ weights + np.log(np.diag(factor)).sum() + 0.5 * len(tasks) * np.log(2 * np.pi)

    by_kernel = 0.5 * (inverse - np.outer(weights, weights))
    by_tasks = by_kernel * base
    kernel *= by_kernel
    by_scaled = 2 * (kernel @ scaled - kernel.sum(axis=1)[:, None] * scaled)
    n_tasks = len(parameters.loadings)
    own = np.where(tasks[:, None] == tasks, by_tasks, 0.0).sum(axis=1)
    return float(value), LikelihoodGradients(
        points=by_scaled / parameters.length_scales,
        residuals=weights,
        log_length_scale=-float(np.vdot(by_scaled, scaled)),
        loadings=2 * _summed_by_task(by_tasks @ parameters.loadings[tasks], tasks, n_tasks),
        variances=_summed_by_task(own, tasks, n_tasks),
        noise=float(np.trace(by_kernel)),
    )


def stable_cholesky(matrix: Float64) -> Float64:
    """Return the lower Cholesky factor of a symmetric positive semi-definite matrix.

    Rounding can make a kernel of nearly equal points indefinite by about 1e-16; only then the smallest sufficient step
    of a ladder of jitters is added to the diagonal, so that the factor of a well-conditioned matrix is exact.

    Raises
    ------
    ArrayError
        If the matrix is not finite or far from positive semi-definite, which no kernel is.
    """
    if np.isfinite(matrix).all():
        step = matrix.trace() / len(matrix) * np.eye(len(matrix))
        for jitter in _JITTERS:
            factor, info = lapack.dpotrf(matrix if jitter == 0 else matrix + jitter * step, lower=1, clean=1)
            if info == 0:
                return cast(Float64, factor)
    smallest = np.linalg.eigvalsh(matrix)[0] if np.isfinite(matrix).all() else np.nan
    raise ArrayError(
        "matrix", f"matrix must be finite and positive semi-definite; its smallest eigenvalue is {smallest:.3g}."
    )


def rows_of_tasks(tasks: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Yield each occurring algorithm with the numbers of its rows."""
    order = np.argsort(tasks, kind="stable")
    present, starts = np.unique(tasks[order], return_index=True)
    yield from zip(present.tolist(), np.split(order, starts[1:]), strict=True)


def _noisy_factor(points: FloatArray, tasks: IntArray, parameters: LmcParameters) -> Float64:
    kernel = lmc_kernel(points, tasks, points, tasks, parameters)
    kernel.flat[:: len(tasks) + 1] += parameters.noise
    return stable_cholesky(kernel)


def _summed_by_task(values: Float64, tasks: IntArray, n_tasks: int) -> Float64:
    return np.bincount(tasks, values, minlength=n_tasks).astype(np.float64, copy=False)


def _gaussian(points: FloatArray, other_points: FloatArray) -> Float64:
    """Return exp(-distance^2 / 2), from differences: expanded squares would lose the distances of near points."""
    squares = np.zeros((len(points), len(other_points)))
    for one, other in zip(points.T, other_points.T, strict=True):
        squares += np.square(one[:, None] - other)
    squares *= -0.5
    return np.exp(squares, out=squares)


def _task_covariances(tasks: IntArray, other_tasks: IntArray, parameters: LmcParameters) -> Float64:
    shared = np.outer(parameters.loadings[tasks], parameters.loadings[other_tasks])
    own: Float64 = np.where(tasks[:, None] == other_tasks, parameters.variances[other_tasks], 0.0)
    return shared + own
