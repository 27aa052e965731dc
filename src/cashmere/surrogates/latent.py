"""One surrogate for all algorithms: a Gaussian process on a latent space into which each of them is embedded.

The gradients are written out in numpy: problems are small (tens to hundreds of observations, some hundred weights) and
fits many, so a framework would spend most of its time on bookkeeping. A step takes a quarter to a third of the time of
PyTorch's autograd, and even less of GPyTorch's (`benchmarks/timings/latent_time.py`); the tests use both as oracles.

References
----------
Ishikawa, Ozaki, Kanzaki, Takeuchi and Karasuyama (2025), Bayesian optimization for simultaneous selection of machine
learning algorithms and hyperparameters on shared latent space, arXiv:2502.09329, section 3.1,
equations 4-6; docs/papers/latent.md#process-on-the-latent-space.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.base.threads import one_blas_thread
from cashmere.exceptions import ArrayError, InvalidParameterError, NotFittedError
from cashmere.surrogates.latent_space import (
    Encoders,
    LmcParameters,
    PretrainedEmbedding,
    latent_posterior,
    likelihood_and_gradients,
    rows_of_tasks,
)

MIN_VARIANCE = 1e-10
"""Variances of standardised losses are clipped from below, so that dividing by a standard deviation is safe."""

MIN_LOSS_STD = 1e-3
"""Smallest spread of a source: nearly equal losses say nothing about the scale of others."""

ALL_LAYERS = ("w1", "b1", "w2", "b2", "w3", "b3")
OUTPUT_LAYER = ("w3", "b3")

_PRIOR = (
    (0.0, 0.3),  # log ell
    (float(np.log(0.1)), 0.5),  # log noise
    (0.0, 1.0),  # c0
    (0.0, 1.0),  # log c1
    (0.7, 0.5),  # loadings: what all algorithms share has half the variance of standardised losses
    (0.0, 0.5),  # log variances of single tasks
)
"""Mean and standard deviation of each parameter's normal prior; `LatentSurrogate.objective` shifts the first four."""

_MAX_DEVIATION = 5.0
"""Bound of the process's parameters, in standard deviations of their prior."""

_MAX_STEPS_FINE_TUNING = 60
_MAX_STEPS_ALL_LAYERS = 15
"""Steps of L-BFGS; the second is an early stop, because nothing else restrains the weights."""


class LatentProcess(NamedTuple):
    """A Gaussian process of standardised losses: mean c0 + c1 ||u||^2, kernel and noise."""

    c0: float
    c1: float
    kernel: LmcParameters

    def prior_mean(self, points: Float64) -> Float64:
        """Return the prior means ``(n,)`` at embeddings ``(n, q)``."""
        means: Float64 = self.c0 + self.c1 * np.einsum("ij,ij->i", points, points)
        return means


@dataclass(frozen=True, eq=False)
class LatentObjective:
    """Negative log posterior of all parameters, given standardised losses, with its gradient (eq. 5).

        -log p(y | W, theta) + 0.5 ||(theta - theta_0) / s||^2 + penalty * ||W - W_0||^2

    The function is called with offsets ``x`` from the start: theta_0 + s x for the process, W_0 + t x for the weights,
    so that coordinates have equal weight and L-BFGS needs few steps. Coordinates are log ell, log noise, c0, log c1,
    a (M), log d (M), then the trained weights in the order of `ALL_LAYERS`.

    Attributes
    ----------
    tasks, vectors, targets : (n,) int, (n, width), (n,) array
        Observations, with standardised losses.
    start : Encoders
        W_0; layers that are not trained keep these weights.
    centre, spread : (4 + 2 M,) array
        theta_0 and s.
    penalty : float
        Weight of the squared distance of all weights to the start (eq. 6), non-negative.
    is_pretrained : bool
        Whether only the output layers are trained and the prior mean has the term c1 ||u||^2; else all layers are
        trained and the prior mean is c0.
    """

    tasks: IntArray
    vectors: Float64
    targets: Float64
    start: Encoders
    centre: Float64
    spread: Float64
    penalty: float
    is_pretrained: bool
    _rows: list[tuple[int, IntArray]] = field(init=False, repr=False)
    _hidden: Float64 = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", list(rows_of_tasks(self.tasks)))
        object.__setattr__(self, "_hidden", self.start.hidden(self.tasks, self.vectors))

    @property
    def trained(self) -> tuple[str, ...]:
        """Names of the trained arrays of `Encoders`."""
        return OUTPUT_LAYER if self.is_pretrained else ALL_LAYERS

    @property
    def n_parameters(self) -> int:
        """Length of the vector of offsets."""
        return len(self.centre) + sum(int(getattr(self.start, name).size) for name in self.trained)

    @property
    def limits(self) -> Float64:
        """Largest absolute offsets ``(n_parameters,)``; weights have no limit."""
        limits = np.full(self.n_parameters, np.inf)
        limits[: len(self.centre)] = _MAX_DEVIATION
        return limits

    def encoders(self, offsets: Float64) -> Encoders:
        """Return the encoders that a vector of offsets stands for."""
        arrays, begin = {name: getattr(self.start, name) for name in ALL_LAYERS}, len(self.centre)
        for name in self.trained:
            end = begin + arrays[name].size
            arrays[name] = arrays[name] + self._step * offsets[begin:end].reshape(arrays[name].shape)
            begin = end
        return Encoders(**arrays)

    def process(self, offsets: Float64) -> LatentProcess:
        """Return the Gaussian process that a vector of offsets stands for."""
        theta = self.centre + self.spread * offsets[: len(self.centre)]
        log_ell, log_noise, c0, log_c1 = theta[:4].tolist()
        loadings, log_variances = theta[4:].reshape(2, -1)
        kernel = LmcParameters(float(np.exp(log_ell)), loadings, np.exp(log_variances), float(np.exp(log_noise)))
        return LatentProcess(c0, float(np.exp(log_c1)) if self.is_pretrained else 0.0, kernel)

    def __call__(self, offsets: Float64) -> tuple[float, Float64]:
        """Return value and gradient at a vector of offsets ``(n_parameters,)``."""
        encoders, process = self.encoders(offsets), self.process(offsets)
        first, hidden, points = self._forward(encoders)
        value, by = likelihood_and_gradients(
            points, self.tasks, self.targets - process.prior_mean(points), process.kernel
        )
        by_radii = -process.c1 * by.residuals  # squared radii
        by_weights = self._backward(encoders, first, hidden, by.points + 2 * by_radii[:, None] * points)
        slope = float(by_radii @ np.einsum("ij,ij->i", points, points))
        four = [by.log_length_scale, by.noise * process.kernel.noise, -float(by.residuals.sum()), slope]
        by_process = np.concatenate([four, by.loadings, by.variances * process.kernel.variances])

        k = len(self.centre)
        x, moved = offsets[:k], self._step * offsets[k:]
        gradient = np.concatenate([by_process * self.spread, *(by_weights[name].ravel() for name in self.trained)])
        gradient[:k] += x
        gradient[k:] += 2 * self.penalty * moved
        gradient[k:] *= self._step
        return value + 0.5 * float(x @ x) + self.penalty * float(moved @ moved), gradient

    @property
    def _step(self) -> float:
        """Unit of the weights' offsets, at which the penalty is 1/2 as for the other coordinates."""
        return float(1 / np.sqrt(2 * self.penalty)) if self.penalty > 0 else 1.0

    def _forward(self, encoders: Encoders) -> tuple[Float64, Float64, Float64]:
        """Return the outputs of the three layers; untrained layers are not computed again."""
        first, hidden = np.empty_like(self._hidden), self._hidden
        points = np.empty((len(self.tasks), encoders.b3.shape[1]))
        if not self.is_pretrained:
            hidden = np.empty_like(hidden)
            for m, rows in self._rows:
                first[rows] = np.tanh(self.vectors[rows] @ encoders.w1[m] + encoders.b1[m])
                hidden[rows] = np.tanh(first[rows] @ encoders.w2[m] + encoders.b2[m])
        for m, rows in self._rows:
            points[rows] = hidden[rows] @ encoders.w3[m] + encoders.b3[m]
        return first, hidden, points

    def _backward(self, encoders: Encoders, first: Float64, hidden: Float64, by_points: Float64) -> Mapping[str, Any]:
        """Return the derivatives by the trained arrays, given those by the embeddings ``(n, q)``."""
        by = {name: np.zeros(getattr(encoders, name).shape) for name in self.trained}
        for m, rows in self._rows:
            upper, outputs = by_points[rows], hidden[rows]
            by["w3"][m], by["b3"][m] = outputs.T @ upper, upper.sum(axis=0)
            if self.is_pretrained:
                continue
            middle = upper @ encoders.w3[m].T * (1 - np.square(outputs))
            outputs = first[rows]
            by["w2"][m], by["b2"][m] = outputs.T @ middle, middle.sum(axis=0)
            lower = middle @ encoders.w2[m].T * (1 - np.square(outputs))
            by["w1"][m], by["b1"][m] = self.vectors[rows].T @ lower, lower.sum(axis=0)
        return by


class _Fitted(NamedTuple):
    """The result of a fit."""

    tasks: IntArray
    points: Float64
    residuals: Float64
    centre: float
    scale: float
    encoders: Encoders
    process: LatentProcess


@dataclass(kw_only=True)
class LatentSurrogate:
    """Predict mean and variance of the loss of any algorithm's configuration from the observations of all algorithms.

    Parameters
    ----------
    n_algorithms : int
        M, number of algorithms.
    pretrained : PretrainedEmbedding, optional
        Encoders to start from: only their output layers are fine-tuned, and the prior mean is quadratic.
        Without them all layers are trained from weights drawn by the generator, and the prior mean is constant.
    alpha : float
        Penalty on the squared distance to the pre-trained weights (eq. 6), non-negative.
    q, n_hidden : int
        Dimension of the latent space and number of hidden units; ignored with pre-trained encoders.

    Notes
    -----
    Losses are standardised; the prior mean c0 + c1 ||u||^2 starts at c0 = the smallest loss and c1 = 1 / the source's
    standard deviation, because on the source ``||u||^2`` over that deviation is the standardised regret. Both are then
    fitted with the other parameters, c1 through its logarithm.

    Decisions where the paper is silent (docs/papers/latent.md#fits-during-the-search):

    - L-BFGS instead of Adam with warm starts: a fit is a function of its arguments.
    - The penalty is divided by the source's standard deviation, that is, measured on embeddings in units of
      standardised regret, so that one `alpha` serves sources of any spread. Replays of recorded losses chose 10.
    - Weak normal priors (`_PRIOR`) restrain the process's parameters: the likelihood of two dozen observations of a
      dozen algorithms is highest where some hundred weights explain them without noise, which is overconfident
      elsewhere.
    - Without pre-training the penalty vanishes as in the paper; stopping after a few steps replaces it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tasks, vectors = np.array([0, 0, 1, 1]), rng.random((4, 3))
    >>> losses = np.array([0.2, 0.3, 0.25, 0.22])
    >>> mean, variance = LatentSurrogate(n_algorithms=2).fit(tasks, vectors, losses, rng).predict(tasks, vectors)
    >>> mean.shape, bool((variance > 0).all())
    ((4,), True)
    """

    n_algorithms: int
    pretrained: PretrainedEmbedding | None = None
    alpha: float = 10.0
    q: int = 2
    n_hidden: int = 32
    _fitted: _Fitted | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.alpha < 0:
            raise InvalidParameterError("alpha", self.alpha, "at least 0")
        if self.pretrained is not None and len(self.pretrained.encoders.b3) != self.n_algorithms:
            expected = f"{len(self.pretrained.encoders.b3)}, the number of pre-trained encoders"
            raise InvalidParameterError("n_algorithms", self.n_algorithms, expected)

    def fit(self, tasks: IntArray, vectors: FloatArray, losses: FloatArray, rng: np.random.Generator) -> Self:
        """Fit weights, kernel, noise and prior mean to the observations.

        Parameters
        ----------
        tasks : (n,) int array
            Algorithm of each observation, 0 .. M - 1; some may be missing.
        vectors : (n, width) array
            Hyper-parameters in [0, 1].
        losses : (n,) array
            Finite; at least one.
        rng : numpy.random.Generator
            Draws the first weights; not used after pre-training.

        Raises
        ------
        ArrayError
            If there is no observation or a loss is not finite.
        """
        from scipy.optimize import Bounds, minimize

        losses = np.asarray(losses, dtype=np.float64)
        if len(losses) == 0 or not np.isfinite(losses).all():
            raise ArrayError("losses", f"losses must hold one or more finite numbers; got {losses}.")
        centre, scale = float(losses.mean()), float(losses.std())
        if scale <= 1e-9 * np.abs(losses).max():  # equal but for rounding: the source, if any, sets the scale
            scale = 1.0 if self.pretrained is None else max(self.pretrained.loss_std, MIN_LOSS_STD)
        with one_blas_thread():
            objective = self.objective(tasks, vectors, (losses - centre) / scale, rng)
            max_steps = _MAX_STEPS_FINE_TUNING if self.pretrained is not None else _MAX_STEPS_ALL_LAYERS
            found = minimize(
                objective,
                np.zeros(objective.n_parameters),
                jac=True,
                method="L-BFGS-B",
                bounds=Bounds(-objective.limits, objective.limits),
                options={"maxiter": max_steps},
            ).x
            encoders, process = objective.encoders(found), objective.process(found)
            points = encoders.embed(objective.tasks, objective.vectors)
            residuals = objective.targets - process.prior_mean(points)
        self._fitted = _Fitted(objective.tasks, points, residuals, centre, scale, encoders, process)
        return self

    def predict(self, tasks: IntArray, vectors: FloatArray) -> tuple[Float64, Float64]:
        """Return mean and variance of the loss without noise, each ``(n,)``, of algorithms and their vectors."""
        fitted = self._fit_or_fail()
        points = fitted.encoders.embed(tasks, vectors)
        mean, variance = latent_posterior(
            fitted.points, fitted.tasks, fitted.residuals, points, tasks, fitted.process.kernel
        )
        mean += fitted.process.prior_mean(points)
        return fitted.centre + fitted.scale * mean, fitted.scale**2 * np.maximum(variance, MIN_VARIANCE)

    def embed(self, tasks: IntArray, vectors: FloatArray) -> Float64:
        """Return the fitted embeddings ``(n, q)``."""
        return self._fit_or_fail().encoders.embed(tasks, vectors)

    def objective(
        self, tasks: IntArray, vectors: FloatArray, targets: FloatArray, rng: np.random.Generator
    ) -> LatentObjective:
        """Return the function that `fit` minimises, for standardised losses."""
        m, vectors = self.n_algorithms, np.asarray(vectors, dtype=np.float64)
        if self.pretrained is None:
            start = Encoders.draw(n_algorithms=m, width=vectors.shape[1], q=self.q, n_hidden=self.n_hidden, rng=rng)
            unit, c0, penalty = 1.0, 0.0, 0.0
        else:
            start, unit = self.pretrained.encoders, max(self.pretrained.loss_std, MIN_LOSS_STD)
            c0, penalty = float(targets.min()), self.alpha / unit
        # A length scale of sqrt(unit) is an embedding's distance over which the standardised regret grows by 1.
        centre, spread = np.repeat(np.array(_PRIOR).T, [1, 1, 1, 1, m, m], axis=1)
        centre[:4] += np.log(unit) / 2, 0.0, c0, -np.log(unit)
        return LatentObjective(
            tasks=np.asarray(tasks, dtype=np.int64),
            vectors=vectors,
            targets=np.asarray(targets, dtype=np.float64),
            start=start,
            centre=centre,
            spread=spread,
            penalty=penalty,
            is_pretrained=self.pretrained is not None,
        )

    def _fit_or_fail(self) -> _Fitted:
        if self._fitted is None:
            raise NotFittedError(self, "predict")
        return self._fitted
