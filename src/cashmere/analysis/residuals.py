"""Residuals of a regression: their spread along the predictions, and their size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cashmere.base.arrays import Float64, FloatArray

_LEAST_IN_BIN = 20
"""Enough rows for quantiles of 5 %."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResidualBands:
    """Quantiles of the residuals, truth minus prediction, in bins with about the same number of rows.

    Attributes
    ----------
    predicted : (n_bins,) array
        Mean prediction, ascending.
    lower, median, upper : (n_bins,) arrays
        Weighted 5 %, 50 % and 95 % quantiles of the residuals.
    """

    predicted: Float64
    lower: Float64
    median: Float64
    upper: Float64


def residual_bands(
    y: FloatArray, predicted: FloatArray, *, weight: FloatArray | None = None, n_bins: int = 12
) -> ResidualBands:
    """Compute quantiles of the residuals along the predictions: where they are biased, and where uncertain.

    Parameters
    ----------
    y, predicted : (n_rows,) arrays
        True and predicted values.
    weight : (n_rows,) array, optional
        Row weights.
    n_bins : int
        Largest number of bins; there are fewer if rows are few or predictions are equal.

    Examples
    --------
    >>> bands = residual_bands(np.r_[np.zeros(50), np.ones(50)], np.r_[np.zeros(50), np.full(50, 0.5)], n_bins=2)
    >>> bands.predicted, bands.median
    (array([0. , 0.5]), array([0. , 0.5]))
    """
    p, residuals = np.asarray(predicted, dtype=np.float64), np.asarray(y, dtype=np.float64) - predicted
    w = np.ones(len(p)) if weight is None else np.asarray(weight, dtype=np.float64)
    n_bins = max(1, min(n_bins, len(p) // _LEAST_IN_BIN))
    inner = np.quantile(p, np.linspace(0, 1, n_bins + 1))[1:-1]
    number = np.searchsorted(np.unique(inner), p)
    bins = [rows for k in range(int(number.max()) + 1) if w[rows := np.flatnonzero(number == k)].sum() > 0]
    quantiles = np.array([weighted_quantiles(residuals[rows], (0.05, 0.5, 0.95), w[rows]) for rows in bins])
    return ResidualBands(
        predicted=np.array([np.average(p[rows], weights=w[rows]) for rows in bins]),
        lower=quantiles[:, 0],
        median=quantiles[:, 1],
        upper=quantiles[:, 2],
    )


def weighted_quantiles(values: FloatArray, shares: tuple[float, ...], weight: FloatArray | None = None) -> Float64:
    """Return the smallest values at or below which these shares of the weight lie, ``(n_shares,)``.

    Examples
    --------
    >>> weighted_quantiles(np.array([3.0, 1.0, 2.0, 4.0]), (0.5, 0.9))
    array([2., 4.])
    """
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(np.ones(len(values)) if weight is None else np.asarray(weight, dtype=np.float64)[order])
    places = np.searchsorted(mass / mass[-1], np.asarray(shares) - 1e-12)
    return np.asarray(values, dtype=np.float64)[order][np.minimum(places, len(values) - 1)]
