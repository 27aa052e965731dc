"""Predict the logarithm of a trial's seconds by a Bayesian linear model, censored trials included.

======================  ==================  =======================================================================
symbol                  shape               meaning
======================  ==================  =======================================================================
Z                       ``(n, p)``          features, each multiplied by the prior standard deviation of its weight
y                       ``(n,)``            log seconds, minus those expected before any trial
c                       ``(n,)``            whether only a lower bound of y is known (the trial met a limit)
K                       ``(n, n)``          Z Z^T, the prior covariance of the noise-free values
sigma                   scalar              prior standard deviation of the noise
s2                      scalar              factor by which all variances exceed their prior
======================  ==================  =======================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import log_ndtr

from cashmere.base.arrays import BoolArray, Float64, FloatArray

NOISE = 0.5
"""Prior standard deviation of log seconds around the linear model: seconds scatter by a factor of 1.6."""

_PRIOR_TRIALS = 5.0
"""Weight of the prior variance, as a number of trials."""

_N_IMPUTATIONS = 5
"""Rounds that replace censored values by their expectation beyond the bound; further ones would change little."""

_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearModel:
    """A linear model with a normal prior on its weights, fitted to values of which some are lower bounds.

    Attributes
    ----------
    Z : (n, p) array
        Scaled features of the trials.
    factor : (n, n) array
        Lower Cholesky factor of K + sigma^2 I.
    weights : (p,) array
        Z^T (K + sigma^2 I)^-1 y, the mean of the weights.
    spread : float
        s2: the posterior mean of the variance's factor under an inverse-gamma prior with mean one.
    """

    Z: Float64
    factor: Float64
    weights: Float64
    spread: float

    @classmethod
    def fit(cls, Z: FloatArray, y: FloatArray, censored: BoolArray) -> Self:
        """Fit the model.

        Parameters
        ----------
        Z : (n, p) array
            Scaled features.
        y : (n,) array
            Values; for censored trials the bounds that they exceed.
        censored : (n,) bool array
            Which values are bounds.

        Notes
        -----
        A censored value is replaced by its mean beyond the bound under the current model, a few times (the EM
        algorithm without the correction of the variance), as in Schmee and Hahn (1979), A simple method for regression
        analysis with censored data, Technometrics 21.
        """
        Z, bounds = np.asarray(Z, dtype=np.float64), np.asarray(y, dtype=np.float64)
        K = Z @ Z.T
        factor = cholesky(K + NOISE**2 * np.eye(len(Z)), lower=True)
        values = bounds
        coefficients = cho_solve((factor, True), values)
        for _ in range(_N_IMPUTATIONS if censored.any() else 0):
            mean = K @ coefficients
            values = np.where(censored, mean + NOISE * _mean_above((bounds - mean) / NOISE), bounds)
            coefficients = cho_solve((factor, True), values)
        spread = (_PRIOR_TRIALS + float(values @ coefficients)) / (_PRIOR_TRIALS + len(Z))
        return cls(Z=Z, factor=factor, weights=Z.T @ coefficients, spread=spread)

    def mean(self, Z: FloatArray) -> Float64:
        """Return the expected values of other trials, shape ``(m,)``."""
        mean: Float64 = Z @ self.weights
        return mean

    def std(self, Z: FloatArray) -> Float64:
        """Return the standard deviations of the values of other trials, noise included, shape ``(m,)``."""
        explained = np.square(solve_triangular(self.factor, self.Z @ Z.T, lower=True)).sum(axis=0)
        variance = np.maximum(np.square(Z).sum(axis=1) - explained, 0.0) + NOISE**2
        std: Float64 = np.sqrt(self.spread * variance)
        return std


def _mean_above(z: Float64) -> Float64:
    """Return the mean of a standard normal variable given that it exceeds z: phi(z) / (1 - Phi(z)); at least z."""
    hazard: Float64 = np.exp(-0.5 * np.square(z) - _LOG_SQRT_2PI - log_ndtr(-z))
    return np.maximum(hazard, z)
