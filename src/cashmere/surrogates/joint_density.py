"""Joint density of several parameters, so that Parzen estimators see how parameters depend on each other.

======================  ==========================  =============================================================
symbol                  shape                       meaning
======================  ==========================  =============================================================
n, m                                                observations, and components: one per observation, and the
                                                    prior, which comes last: m = n + 1
p, q                                                numbers, on the unit scale, and choices
w                       ``(m,)``                    weights of the components
mu, sigma               ``(m, p)``                  centres and standard deviations of normal densities, each cut at
                                                    0 and 1
======================  ==========================  =============================================================

Inside a component the parameters are independent of each other; the mixture is a joint density because each component
stands for a whole observation. `cashmere.surrogates.tpe` has densities of single parameters.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, ndtr, ndtri

from cashmere.base.arrays import Float64, IntArray

_MAX_RATIO = 100.0
"""Largest ratio of the unit range to the standard deviation of a component."""

_TINY = np.finfo(np.float64).tiny

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, kw_only=True, eq=False)
class JointDensity:
    """A mixture of products: normal densities cut at 0 and 1 for numbers, probabilities for choices.

    Attributes
    ----------
    weights : (m,) array
        Weights of the components, which sum to one.
    means, deviations : (m, p) array
        Moments of the normal densities of each component.
    probabilities : tuple of (m, k) arrays
        For each of the q choices, the probabilities of its k values in each component.
    """

    weights: Float64
    means: Float64
    deviations: Float64
    probabilities: tuple[Float64, ...]

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Float64, IntArray]:
        """Draw n points: numbers ``(n, p)`` in [0, 1] and codes of choices ``(n, q)``."""
        edges = np.cumsum(self.weights)
        which = np.searchsorted(edges / edges[-1], rng.random(n), side="right")
        mu, sigma, (below, above) = self.means[which], self.deviations[which], self._ends[:, which]
        # Inverting the distribution function of the cut component avoids rejections.
        numbers = mu + sigma * ndtri(below + rng.random(mu.shape) * (above - below))
        codes = np.empty((n, len(self.probabilities)), dtype=np.int64)
        for j, probabilities in enumerate(self.probabilities):
            reached = np.cumsum(probabilities[which], axis=1)
            codes[:, j] = np.sum(rng.random((n, 1)) * reached[:, -1:] >= reached, axis=1)
        return np.clip(numbers, 0.0, 1.0), codes

    def log_density(self, lower: ArrayLike, upper: ArrayLike, codes: IntArray) -> Float64:
        """Return the logarithm of the density at points.

        Parameters
        ----------
        lower, upper : (n, p) array
            For a column of integers the ends of their bins, for their probability; for a column of other numbers the
            same values twice, for their density.
        codes : (n, q) int array
            Choices.

        Returns
        -------
        (n,) array
            Finite even where a choice has no probability or a bin is narrower than the arithmetic resolves.
        """
        lower, upper = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
        is_bin = np.any(upper > lower, axis=0)
        below, above = self._ends
        log_parts = np.log(self.weights) - np.log(above - below).sum(axis=1)
        mu, sigma = self.means[:, ~is_bin], self.deviations[:, ~is_bin]
        log_parts = log_parts - np.sum(np.log(sigma) + _LOG_SQRT_2PI, axis=1)
        log_parts = log_parts - 0.5 * np.sum(np.square((lower[:, None, ~is_bin] - mu) / sigma), axis=2)
        mu, sigma = self.means[:, is_bin], self.deviations[:, is_bin]
        masses = ndtr((upper[:, None, is_bin] - mu) / sigma) - ndtr((lower[:, None, is_bin] - mu) / sigma)
        log_parts += np.log(np.maximum(masses, _TINY)).sum(axis=2)
        for probabilities, column in zip(self.probabilities, codes.T, strict=True):
            log_parts += np.log(np.maximum(probabilities, _TINY)).T[column]
        log_density: Float64 = logsumexp(log_parts, axis=1)
        return log_density

    @functools.cached_property
    def _ends(self) -> Float64:
        """Distribution functions of the uncut normal densities at 0 and at 1, shape ``(2, m, p)``."""
        return np.stack([ndtr((end - self.means) / self.deviations) for end in (0.0, 1.0)])


def fit_joint(
    numbers: ArrayLike,
    codes: IntArray,
    weights: ArrayLike,
    priors: Sequence[ArrayLike],
    *,
    prior_weight: float = 1.0,
) -> JointDensity:
    """Estimate the joint density of parameters from their observed values.

    Parameters
    ----------
    numbers : (n, p) array
        Observed numbers, on the unit scale; may be empty.
    codes : (n, q) int array
        Observed choices, in 0 .. k - 1.
    weights : (n,) array
        Weights of the observations, see `cashmere.surrogates.tpe.forgetting_weights`.
    priors : sequence of (k,) arrays
        Prior probabilities of the q choices, each summing to one.
    prior_weight : float
        Weight of the prior's component, positive.

    Returns
    -------
    JointDensity
        n + 1 components. That of the prior is normal around 0.5 with standard deviation 1 in each number.

    References
    ----------
    Watanabe (2023), Tree-structured Parzen estimator: understanding its algorithm components and their roles for better
    empirical performance, arXiv:2304.11127, section 3; the numbers are those of Optuna's sampler.
    """
    numbers = np.asarray(numbers, dtype=np.float64)
    unscaled = np.append(np.asarray(weights, dtype=np.float64), prior_weight)
    prior_row = np.ones((1, numbers.shape[1]))
    return JointDensity(
        weights=unscaled / unscaled.sum(),
        means=np.vstack([numbers, 0.5 * prior_row]),
        deviations=np.vstack([neighbour_deviations(numbers), prior_row]),
        probabilities=tuple(
            np.vstack([smooth_choices(column, prior, prior_weight=prior_weight), prior])
            for column, prior in zip(codes.T, priors, strict=True)
        ),
    )


def neighbour_deviations(x: Float64) -> Float64:
    """Return a standard deviation for each observed number, according to the distances to its neighbours.

    It is the larger of the distances to the next smaller and the next larger observation; for the outermost ones the
    distance to their only neighbour, for a single observation that to the farther bound. It is at least
    1 / min(100, n + 2) and at most 1.

    Parameters
    ----------
    x : (n, p) array
        Observations on the unit scale, a column per parameter.

    Returns
    -------
    (n, p) array

    Examples
    --------
    >>> neighbour_deviations(np.array([[0.1], [1.0], [0.4]])).ravel()
    array([0.3, 0.6, 0.6])
    """
    n, p = x.shape
    if n == 1:
        sigma = np.maximum(x, 1 - x)
    else:
        order = np.argsort(x, axis=0, kind="stable")
        gaps, none = np.diff(np.take_along_axis(x, order, axis=0), axis=0), np.zeros((min(n, 1), p))
        sigma = np.empty_like(x)
        np.put_along_axis(sigma, order, np.maximum(np.vstack([gaps, none]), np.vstack([none, gaps])), axis=0)
    clipped: Float64 = np.clip(sigma, 1 / min(_MAX_RATIO, n + 2), 1.0)
    return clipped


def smooth_choices(codes: IntArray, prior: ArrayLike, *, prior_weight: float = 1.0) -> Float64:
    """Return the probabilities of k choices in the component of each observation.

    Each component is the observed choice mixed with the prior in the proportion 1 to k prior_weight / (n + 1).

    Parameters
    ----------
    codes : (n,) int array
        Observed choices, in 0 .. k - 1.
    prior : (k,) array
        Prior probabilities, which sum to one.
    prior_weight : float
        Positive.

    Returns
    -------
    (n, k) array
        Rows sum to one.

    Examples
    --------
    >>> smooth_choices(np.array([1, 0]), [0.5, 0.5]).round(3)
    array([[0.2, 0.8],
           [0.8, 0.2]])
    """
    prior = np.asarray(prior, dtype=np.float64)
    share = len(prior) * prior_weight / (len(codes) + 1)
    probabilities: Float64 = (np.eye(len(prior))[codes] + share * prior) / (1 + share)
    return probabilities
