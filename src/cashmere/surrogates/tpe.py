"""Split observations into good ones and others, and estimate their densities parameter by parameter, as hyperopt does.

======================  ==========================  =============================================================
symbol                  shape                       meaning
======================  ==========================  =============================================================
l, g                                                densities of one parameter among good observations, and among
                                                    the rest
mu, sigma, w            ``(m,)``                    means, standard deviations and weights of a mixture's normal
                                                    components: one per observation and one of the prior
x                       ``(n,)``                    values of a parameter, on the (log) scale of its bounds
======================  ==========================  =============================================================

The rules are those of hyperopt, see docs/papers/surrogates.md#parzen-estimators. The ratio l/g grows with the expected
improvement, which is proportional to 1/(gamma + (1 - gamma) g/l).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from cashmere.base.arrays import Float64, IntArray
from cashmere.exceptions import InvalidParameterError

SplitRule = Literal["sqrt", "linear", "quantile"]
"""How many observations are good: a share of the root of their number, or of their number with or without a limit."""

_SHARES: dict[SplitRule, float] = {"sqrt": 0.25, "linear": 0.1, "quantile": 0.25}
"""Usual shares: those of hyperopt, of Optuna, and of the paper as it is usually read."""

_MAX_BELOW = 25
"""Largest number of good observations by the rules of hyperopt and Optuna."""

_MAX_RATIO = 100.0
"""Largest ratio of the range of a parameter to the standard deviation of a component."""

_SQRT_2PI = math.sqrt(2 * math.pi)


def n_below(n: int, rule: SplitRule = "sqrt", *, gamma: float | None = None) -> int:
    """Return how many of n observations count as good.

    Parameters
    ----------
    n : int
        Number of observations.
    rule : {"sqrt", "linear", "quantile"}
        min(ceil(gamma sqrt(n)), 25) as in hyperopt, min(ceil(gamma n), 25) as in Optuna, or ceil(gamma n) as in the
        paper.
    gamma : float or None
        Share, in (0, 1]; None for the usual share of the rule: 0.25, 0.1, 0.25.

    Raises
    ------
    InvalidParameterError
        If there is no such rule.

    References
    ----------
    Bergstra, Bardenet, Bengio and Kegl (2011), Algorithms for hyper-parameter optimization, NeurIPS, section 4.

    Examples
    --------
    >>> n_below(100), n_below(100, "linear"), n_below(100, "quantile")
    (3, 10, 25)
    """
    if rule not in _SHARES:
        raise InvalidParameterError("split", rule, "'sqrt', 'linear' or 'quantile'")
    share = _SHARES[rule] if gamma is None else gamma
    if rule == "sqrt":
        return min(math.ceil(share * math.sqrt(n)), _MAX_BELOW)
    whole = math.ceil(share * n)
    return min(whole, _MAX_BELOW) if rule == "linear" else whole


def forgetting_weights(n: int, *, n_full: int = 25) -> Float64:
    """Return the weights of observations in chronological order: old ones count less.

    Parameters
    ----------
    n : int
        Number of observations.
    n_full : int
        The newest `n_full` have weight 1; the weights of the others rise linearly from 1/n to 1.

    Returns
    -------
    (n,) array
        In (0, 1].

    Examples
    --------
    >>> forgetting_weights(5, n_full=2)
    array([0.2, 0.6, 1. , 1. , 1. ])
    """
    if n <= n_full:
        return np.ones(n)
    return np.concatenate([np.linspace(1 / n, 1, n - n_full), np.ones(n_full)])


@dataclass(frozen=True, kw_only=True, eq=False)
class TruncatedMixture:
    """A mixture of normal densities, cut at the bounds of its parameter.

    Attributes
    ----------
    means, deviations, weights : (m,) array
        Parameters of the components, sorted by mean; means lie within the bounds, weights sum to one.
    low, high : float
        Bounds, on the scale of the means.
    """

    means: Float64
    deviations: Float64
    weights: Float64
    low: float
    high: float

    def log_density(self, x: ArrayLike) -> Float64:
        """Return the logarithm of the density at values within the bounds, shape ``(n,)``."""
        z = (np.asarray(x, dtype=np.float64)[:, None] - self.means) / self.deviations
        heights = self.weights / (self.deviations * _SQRT_2PI * self._inside().sum())
        log_density: Float64 = np.log(np.exp(-0.5 * np.square(z)) @ heights)
        return log_density

    def log_mass(self, lower: ArrayLike, upper: ArrayLike) -> Float64:
        """Return the logarithm of the probability of intervals within the bounds.

        Parameters
        ----------
        lower, upper : (n,) array
            Their ends.

        Returns
        -------
        (n,) array
            Finite even where an interval is narrower than the arithmetic resolves.
        """
        ends = np.stack([np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)])
        below = ndtr((ends[:, :, None] - self.means) / self.deviations)
        mass = (below[1] - below[0]) @ self.weights / self._inside().sum()
        log_mass: Float64 = np.log(np.maximum(mass, np.finfo(np.float64).tiny))
        return log_mass

    def sample(self, n: int, rng: np.random.Generator) -> Float64:
        """Draw n values within the bounds, shape ``(n,)``."""
        edges = np.cumsum(self._inside())
        which = np.searchsorted(edges / edges[-1], rng.random(n), side="right")
        mu, sigma = self.means[which], self.deviations[which]
        # Inverting the distribution function of the cut component avoids rejections.
        below, above = ndtr((self.low - mu) / sigma), ndtr((self.high - mu) / sigma)
        x = mu + sigma * ndtri(below + rng.random(n) * (above - below))
        return np.clip(x, self.low, self.high)

    def _inside(self) -> Float64:
        """Return the mass of each component within the bounds, times its weight."""
        cut = ndtr((self.high - self.means) / self.deviations) - ndtr((self.low - self.means) / self.deviations)
        inside: Float64 = self.weights * cut
        return inside


def fit_parzen(
    x: ArrayLike, weights: ArrayLike, *, low: float = 0.0, high: float = 1.0, prior_weight: float = 1.0
) -> TruncatedMixture:
    """Estimate the density of a number from its observed values by the adaptive Parzen rule.

    The prior is a component in the middle of the range, as wide as the range. The standard deviation of any other
    component is the larger distance to its two neighbours, the prior among them; for the outermost ones the distance
    to their only neighbour; half the range if there is one observation. It is at least the range divided by
    min(100, 1 + number of components), and at most the range.

    Parameters
    ----------
    x : (n,) array
        Observed values, logarithms if the scale is logarithmic; may be empty.
    weights : (n,) array
        Their weights, see `forgetting_weights`.
    low, high : float
        Bounds of the value.
    prior_weight : float
        Weight of the prior's component, positive.

    Returns
    -------
    TruncatedMixture
        n + 1 components.

    References
    ----------
    Bergstra, Bardenet, Bengio and Kegl (2011), Algorithms for hyper-parameter optimization, NeurIPS, section 4.2; the
    numbers are those of hyperopt.
    """
    x = np.asarray(x, dtype=np.float64)
    width = high - low
    # The prior comes first, so that the stable sort puts it before observations of the same value, as in hyperopt.
    mu = np.concatenate([[0.5 * (low + high)], x])
    w = np.concatenate([[prior_weight], np.asarray(weights, dtype=np.float64)])
    order = np.argsort(mu, kind="stable")
    mu, w = mu[order], w[order]
    sigma = np.full(len(mu), width)
    if len(x) == 1:
        sigma = np.full(2, 0.5 * width)
    elif len(x) > 1:
        gaps = np.diff(mu)
        sigma = np.maximum(np.append(gaps, 0.0), np.append(0.0, gaps))
    sigma = np.clip(sigma, width / min(_MAX_RATIO, 1 + len(mu)), width)
    sigma[np.flatnonzero(order == 0)] = width
    return TruncatedMixture(means=mu, deviations=sigma, weights=w / w.sum(), low=low, high=high)


def fit_categorical(codes: IntArray, weights: ArrayLike, prior: ArrayLike, *, prior_weight: float = 1.0) -> Float64:
    """Estimate the probabilities of k choices: weighted counts plus k times the prior, divided by their sum.

    Parameters
    ----------
    codes : (n,) int array
        Observed choices, in 0 .. k - 1; may be empty.
    weights : (n,) array
        Their weights, see `forgetting_weights`.
    prior : (k,) array
        Prior probabilities, which sum to one.
    prior_weight : float
        Multiplies the prior, positive.

    Returns
    -------
    (k,) array
        Probabilities; zero only where the prior is zero and nothing was observed.

    References
    ----------
    Bergstra, Bardenet, Bengio and Kegl (2011), Algorithms for hyper-parameter optimization, NeurIPS, section 4.2; the
    factor k is hyperopt's.

    Examples
    --------
    >>> fit_categorical(np.array([0, 0, 2, 1, 0]), np.ones(5), np.ones(3) / 3)
    array([0.5 , 0.25, 0.25])
    """
    prior = np.asarray(prior, dtype=np.float64)
    counts = np.bincount(codes, np.asarray(weights, dtype=np.float64), minlength=len(prior))
    unscaled = counts + len(prior) * prior_weight * prior
    posterior: Float64 = unscaled / unscaled.sum()
    return posterior
