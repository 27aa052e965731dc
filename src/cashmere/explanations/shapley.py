"""Contributions of columns to one prediction: Shapley values, sampled along paths.

Notation
--------
f: the ensemble; x: the row; b: a row of the background. v(S) is the mean of f over the background, with the columns of
S taken from x and the others from b. The Shapley value of a column is the mean, over all orders in which columns can be
taken over, of the change of v when it is taken over; so the values of all columns sum to f(x) - v(no column).

A path starts at one row b and takes over one column after the other in a random order: each column gets the change of f
at its step. The mean over paths is unbiased. Every second path goes through the order of the one before in reverse, so
that a pair already shares between two columns what they contribute together: fewer paths suffice.

Where paths start matters most: with a few starts, v(no column) would be far off. It is therefore the mean over the
whole background, whose predictions are known. Starts are drawn from strata of the background sorted by prediction, so
that theirs has nearly the same mean; the regression of a column's contributions on the prediction at the start takes
them over the rest of the way. Those of a pair sum to f(x) - f(b), so the slopes of all columns sum to -1 and the values
to exactly f(x) - v(no column).

References
----------
Shapley (1953), A value for n-person games. Strumbelj, Kononenko (2014), Explaining prediction models and individual
predictions with feature contributions, Knowledge and Information Systems 41, algorithm 2. Mitchell, Cooper, Frank,
Holmes (2022), Sampling permutations for Shapley value estimation, JMLR 23, section 3.1 (antithetic sampling). Cochran
(1977), Sampling techniques, chapters 5 (strata) and 7 (regression estimates).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cashmere.base.arrays import BoolArray, Float64, FloatArray, IntArray

_MOST_CELLS = 4_000_000
"""Largest number of cells of the masks to predict at a time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributions:
    """How much each column moves a prediction away from the mean prediction of the background.

    Attributes
    ----------
    base : float
        Mean prediction of the background.
    values : (n_columns,) array
        Shapley values; their sum is the prediction minus `base`.
    standard_errors : (n_columns,) array
        Standard errors of the values, due to the number of paths.
    """

    base: float
    values: Float64
    standard_errors: Float64


def shapley_values(
    predict: Callable[[BoolArray, IntArray], FloatArray],
    n_columns: int,
    background: FloatArray,
    *,
    n_paths: int,
    rng: np.random.Generator,
) -> Contributions:
    """Estimate the contribution of each column to a prediction.

    Parameters
    ----------
    predict : callable
        Called with a mask ``(m, n_columns)`` and numbers of background rows ``(m,)``; returns the predictions ``(m,)``
        of these rows with the masked columns taken from the explained row.
    n_columns : int
        Number of columns, which may be 0.
    background : (n_background,) array
        Predictions of the background rows, at least one.
    n_paths : int
        Number of paths, at least 2; rounded up to pairs. Each costs ``n_columns + 1`` predictions.
    rng : numpy.random.Generator
        Draws orders and background rows.

    Returns
    -------
    Contributions

    Examples
    --------
    Of a sum, each column contributes its own difference:

    >>> background, row = np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([3.0, 5.0])
    >>> def total(mask, rows):
    ...     return np.where(mask, row, background[rows]).sum(axis=1)
    >>> found = shapley_values(total, 2, background.sum(axis=1), n_paths=4, rng=np.random.default_rng(0))
    >>> found.base, found.values
    (1.0, array([2., 5.]))
    """
    n_pairs = max(1, -(-n_paths // 2))
    before = np.asarray(background, dtype=np.float64)
    starts = _draw_starts(before, n_pairs, rng)
    orders = rng.permuted(np.tile(np.arange(n_columns), (n_pairs, 1)), axis=1)
    per_pair = np.empty((n_pairs, n_columns))
    step = max(1, _MOST_CELLS // (2 * (n_columns + 1) * max(1, n_columns)))
    for first in range(0, n_pairs, step):
        pairs = slice(first, min(first + step, n_pairs))
        begins = np.repeat(starts[pairs], 2)
        n_now = len(begins)  # without columns, numpy cannot derive it
        both = np.stack([orders[pairs], orders[pairs, ::-1]], axis=1).reshape(n_now, n_columns)
        # Row k of a path has the first k columns of its order; the rank of a column is its place in the order.
        ranks = np.argsort(both, axis=1)
        masks = ranks[:, None, :] < np.arange(n_columns + 1)[None, :, None]
        outputs = predict(masks.reshape(n_now * (n_columns + 1), n_columns), np.repeat(begins, n_columns + 1))
        along = np.asarray(outputs, dtype=np.float64).reshape(n_now, n_columns + 1)
        changes = np.take_along_axis(np.diff(along, axis=1), ranks, axis=1)
        per_pair[pairs] = changes.reshape(n_now // 2, 2, n_columns).mean(axis=1)
    base = float(before.mean())
    values, errors = _estimate(per_pair, before[starts], base, float(before.var()))
    return Contributions(base=base, values=values, standard_errors=errors)


def _draw_starts(background: Float64, n_draws: int, rng: np.random.Generator) -> IntArray:
    """Draw background rows, each equally often in the mean, whose mean prediction is close to that of all.

    All rows as often as they fit, then one from each of equally long parts of the rows sorted by prediction.
    """
    n = len(background)
    rounds, n_parts = divmod(n_draws, n)
    places = (np.arange(n_parts) + rng.random(n_parts)) * (n / max(1, n_parts))
    chosen = np.argsort(background, kind="stable")[np.minimum(places.astype(np.int64), n - 1)]
    return np.concatenate([np.tile(np.arange(n), rounds), chosen]).astype(np.int64)


def _estimate(per_pair: Float64, starts: Float64, base: float, variance: float) -> tuple[Float64, Float64]:
    """Return the contributions expected at the base, and their standard errors.

    Parameters
    ----------
    per_pair : (n_pairs, n_columns) array
        Contributions in each pair of paths.
    starts : (n_pairs,) array
        Predictions where they start.
    base, variance : float
        Mean and variance of the predictions of the background.
    """
    n_pairs, n_columns = per_pair.shape
    means = per_pair.mean(axis=0)
    centred, away = per_pair - means, starts - starts.mean()
    # Few starts say little about slopes, and nothing if all have the same prediction. One more pair is assumed, a
    # standard deviation away, that shares the way among the columns as they move the prediction; sums stay as they are.
    sizes = np.abs(per_pair).mean(axis=0)
    shares = sizes / sizes.sum() if sizes.sum() > 0 else np.full(n_columns, 1 / max(1, n_columns))
    spread = float(away @ away)
    if spread + variance > 0:
        slopes = (away @ centred - variance * shares) / (spread + variance)
        fitted = spread / (spread + variance)  # the degrees of freedom of a slope
    else:
        slopes, fitted = -shares, 0.0
    values = means + slopes * (base - starts.mean())
    if n_pairs == 1:
        return values, np.full(n_columns, np.nan)
    # Each part of the background has one start, so that the variance within parts shows only between neighbours.
    rests = (centred - away[:, None] * slopes)[np.argsort(starts, kind="stable")]
    squares = (np.diff(rests, axis=0) ** 2).sum(axis=0) / 2
    return values, np.sqrt(squares / (n_pairs - 1 - fitted) / n_pairs)
