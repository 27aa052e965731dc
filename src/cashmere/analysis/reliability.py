"""Reliability: predicted probabilities against observed shares.

Notation (shapes)
-----------------
p ``(n,)``: predicted probabilities of an event; z ``(n,)``: whether it happened; w ``(n,)``: row weights.
For a bin of rows: P = mean of p, O = mean of z, both weighted; m = (sum w)^2 / sum w^2 rows count for its interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from cashmere.base.arrays import BoolArray, Float64, FloatArray, IntArray

_LEAST_IN_BIN = 20
"""Fewer rows say too little about a share."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReliabilityCurve:
    """Predicted and observed shares of an event, in bins with about the same number of rows.

    Attributes
    ----------
    predicted, observed : (n_bins,) arrays
        Mean probability, and share of the rows in which the event happened; in ascending order of `predicted`.
    lower, upper : (n_bins,) arrays
        Ends of the interval around `observed`.
    rows : (n_bins,) int array
        Number of rows in each bin.
    error : float
        Expected calibration error: the mean of abs(predicted - observed) over all rows.
    """

    predicted: Float64
    observed: Float64
    lower: Float64
    upper: Float64
    rows: IntArray
    error: float


def reliability_curve(
    happened: BoolArray,
    probability: FloatArray,
    *,
    weight: FloatArray | None = None,
    n_bins: int = 10,
    coverage: float = 0.9,
) -> ReliabilityCurve:
    """Compare predicted probabilities with observed shares.

    Parameters
    ----------
    happened : (n_rows,) array of bool
        Whether the event happened.
    probability : (n_rows,) array
        Its predicted probability.
    weight : (n_rows,) array, optional
        Row weights with a positive sum.
    n_bins : int
        Largest number of bins; there are fewer if rows are few or probabilities are equal.
    coverage : float
        Coverage of the intervals.

    Notes
    -----
    Bins end at quantiles of the probabilities, so each contains about the same number of rows; equal probabilities
    share a bin. The intervals are Wilson's, for m rows.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical inference, JASA 22.

    Examples
    --------
    >>> curve = reliability_curve(np.arange(40) % 4 == 0, np.repeat([0.2, 0.3], 20))
    >>> curve.predicted, curve.observed
    (array([0.2, 0.3]), array([0.25, 0.25]))
    """
    p, z = np.asarray(probability, dtype=np.float64), np.asarray(happened, dtype=np.float64)
    w = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=np.float64)
    n_bins = max(1, min(n_bins, len(p) // _LEAST_IN_BIN))
    inner = np.quantile(p, np.linspace(0, 1, n_bins + 1))[1:-1]
    number = np.searchsorted(np.unique(inner), p)
    mass = np.bincount(number, weights=w)
    used = np.flatnonzero(mass > 0)
    mass = mass[used]
    predicted, observed = (np.bincount(number, weights=w * each)[used] / mass for each in (p, z))
    lower, upper = wilson_interval(observed, mass**2 / np.bincount(number, weights=w**2)[used], coverage)
    return ReliabilityCurve(
        predicted=predicted,
        observed=observed,
        lower=lower,
        upper=upper,
        rows=np.bincount(number)[used].astype(np.int64),
        error=float(mass @ np.abs(predicted - observed) / mass.sum()),
    )


def wilson_interval(share: Float64, n: Float64, coverage: float) -> tuple[Float64, Float64]:
    """Return the ends of Wilson's interval for observed shares of n rows each.

    Examples
    --------
    >>> [end.round(3) for end in wilson_interval(np.array([0.0, 0.5]), np.array([10.0, 10.0]), 0.9)]
    [array([0.   , 0.269]), array([0.213, 0.731])]
    """
    z = float(norm.ppf((1 + coverage) / 2))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)
