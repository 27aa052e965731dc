"""Expected improvement and its relatives, for losses that are minimised.

======================  ==========================  =============================================================
symbol                  shape                       meaning
======================  ==========================  =============================================================
mu, sigma               ``(n,)``                    mean and standard deviation of the predicted loss
y*                      scalar                      best (lowest) loss seen
z                       ``(n,)``                    (y* - mu)/sigma
Phi, phi                                            distribution function and density of the standard normal
======================  ==========================  =============================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr, ndtr

from cashmere.base.arrays import Float64

_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)
_FAR = -1e6
"""Below this z, h(z) = phi(z)/z^2 is exact to double precision."""


def expected_improvement(mean: ArrayLike, std: ArrayLike, best: float) -> Float64:
    """Return the expected improvement: how far a normal prediction falls below the best loss, on average.

    EI = (y* - mu) Phi(z) + sigma phi(z) with z = (y* - mu)/sigma; max(y* - mu, 0) where sigma = 0, see
    docs/papers/surrogates.md#expected-improvement.

    Parameters
    ----------
    mean, std : (n,) array
        Moments of the predicted loss; ``std >= 0``.
    best : float
        Best loss seen.

    Returns
    -------
    (n,) array
        Non-negative; larger is better. For ranking use `log_expected_improvement`, which does not underflow.

    References
    ----------
    Jones, Schonlau and Welch (1998), Efficient global optimization of expensive black-box functions, J. Global
    Optimization 13, eq. 15.
    """
    gain, std = best - np.asarray(mean, dtype=np.float64), np.asarray(std, dtype=np.float64)
    spread = std > 0
    z = gain / np.where(spread, std, 1.0)
    density = np.exp(-0.5 * np.square(z) - _LOG_SQRT_2PI)
    improvement: Float64 = np.where(spread, gain * ndtr(z) + std * density, np.maximum(gain, 0.0))
    return np.maximum(improvement, 0.0)  # cancellation in the tail may leave -1e-300


def log_expected_improvement(mean: ArrayLike, std: ArrayLike, best: float) -> Float64:
    """Return the logarithm of the expected improvement, correct also where the improvement itself underflows.

    log EI = log sigma + log h(z), h(z) = phi(z) + z Phi(z). For z < -1 the two terms of h cancel; then
    h(z) = phi(z) (1 - |z| sqrt(pi/2) erfcx(|z|/sqrt 2)), and far out h(z) = phi(z)/z^2.

    Parameters
    ----------
    mean, std : (n,) array
        Moments of the predicted loss; ``std >= 0``.
    best : float
        Best loss seen.

    Returns
    -------
    (n,) array
        Larger is better; -inf where ``std = 0`` and the mean is no improvement.

    References
    ----------
    Ament, Daulton, Eriksson, Balandat and Bakshy (2023), Unexpected improvements to expected improvement for Bayesian
    optimization, NeurIPS, eq. 9.
    """
    gain, std = best - np.asarray(mean, dtype=np.float64), np.asarray(std, dtype=np.float64)
    spread = std > 0
    z = gain / np.where(spread, std, 1.0)
    log_density = -0.5 * np.square(z) - _LOG_SQRT_2PI

    near = np.maximum(z, -1.0)
    log_h_near = np.log(np.exp(-0.5 * np.square(near) - _LOG_SQRT_2PI) + near * ndtr(near))
    middle = np.clip(-z, 1.0, -_FAR)
    # The bracket is about 1/z^2. Beyond 1e3 it would lose more digits to cancellation than its series to truncation.
    bracket = np.where(
        middle < 1e3,
        1.0 - middle * np.sqrt(np.pi / 2) * erfcx(middle / np.sqrt(2)),
        (1.0 - 3.0 / np.square(middle)) / np.square(middle),
    )
    log_h_middle = log_density + np.log(bracket)
    log_h_far = log_density - 2.0 * np.log(np.maximum(-z, 1.0))
    log_h = np.where(z > -1.0, log_h_near, np.where(z > _FAR, log_h_middle, log_h_far))
    with np.errstate(divide="ignore"):
        certain = np.log(np.maximum(gain, 0.0))
    result: Float64 = np.where(spread, np.log(np.where(spread, std, 1.0)) + log_h, certain)
    return result


def log_target_expected_improvement(mean: ArrayLike, std: ArrayLike, best: float) -> Float64:
    """Return the expected improvement of the loss when the surrogate predicts its logarithm.

    EI = y* Phi(u) - exp(sigma^2/2 + mu) Phi(u - sigma), u = (log y* - mu)/sigma, the form of SMAC:
    docs/papers/surrogates.md#expected-improvement.

    Parameters
    ----------
    mean, std : (n,) array
        Moments of the predicted log loss; ``std >= 0``.
    best : float
        Best loss seen (not its logarithm), positive.

    Returns
    -------
    (n,) array
        Non-negative; larger is better.

    References
    ----------
    Hutter, Hoos, Leyton-Brown and Murphy (2009), An experimental investigation of model-based parameter optimisation,
    GECCO, eq. 5.
    """
    mean, std = np.asarray(mean, dtype=np.float64), np.asarray(std, dtype=np.float64)
    spread = std > 0
    safe = np.where(spread, std, 1.0)
    u = (np.log(best) - mean) / safe
    # One exponential of the sum: exp(sigma^2/2 + mu) alone may overflow where Phi(u - sigma) vanishes.
    second = np.exp(0.5 * np.square(safe) + mean + log_ndtr(u - safe))
    improvement: Float64 = np.where(spread, best * ndtr(u) - second, best - np.exp(mean))
    return np.maximum(improvement, 0.0)


def lower_confidence_bound(mean: ArrayLike, std: ArrayLike, kappa: float = 1.96) -> Float64:
    """Return the lower confidence bound mu - kappa sigma; *smaller* is better, since it is a loss.

    Parameters
    ----------
    mean, std : (n,) array
        Moments of the predicted loss.
    kappa : float
        Weight of the uncertainty, non-negative.

    Returns
    -------
    (n,) array
        An optimistic loss.

    References
    ----------
    Srinivas, Krause, Kakade and Seeger (2010), Gaussian process optimization in the bandit setting, ICML.
    """
    return np.asarray(mean, dtype=np.float64) - kappa * np.asarray(std, dtype=np.float64)
