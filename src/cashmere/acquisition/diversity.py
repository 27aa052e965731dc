"""Diversity of predictions: pairwise measures, acquisition over the pool, and its union with performance by ranks.

======================  ============================  ===========================================================
symbol                  shape                         meaning
======================  ============================  ===========================================================
f, g                    ``(n, n_rows, n_classes)``    out-of-fold class probabilities of n (m) configurations,
                        or ``(n, n_rows)``            or predicted values
y                       ``(n_rows,)``                 class codes or values
v                       ``(n_rows,)``                 row weights that sum to one; E is the mean under them
e, h                    as f, g                       errors y - f, y - g; y is one-hot for classes
p, q                    ``(n, n_rows)``               probabilities of the true class, clipped
P                       ``n_pool`` members            ensemble pool, a multiset
s                       ``(N, n_candidates, n_pool)`` N draws (or outputs of N surrogate members) of the measure
t, w                    scalars                       number of finished evaluations; weight of the diversity rank
======================  ============================  ===========================================================

Two notions of diversity meet here. DivBO's ``"div"`` is a distance: *larger* is more diverse, and a candidate is
judged by its nearest pool member. All other measures are terms of the ensemble's loss: *smaller* is better, and a
candidate is judged by their sum over the pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from cashmere.acquisition.improvement import lower_confidence_bound
from cashmere.base.arrays import AnyArray, Float64, FloatArray
from cashmere.exceptions import InvalidParameterError

Measure = Literal["div", "mse", "mae", "ce", "bs", "black_box", "gap_mae", "gap_ce", "gap_mse"]
"""Name of a pairwise measure; see `cross_measure` for the formulas."""

_OF_VALUES: tuple[Measure, ...] = ("div", "mse", "mae", "gap_mse", "gap_mae")
_OF_PROBABILITIES: tuple[Measure, ...] = ("div", "ce", "bs", "black_box", "gap_ce")

_MEMORY_BLOCK = 2**18
"""Numbers of a prediction array per block: 2 MiB of float64. Smaller matrix products would mostly wait for threads."""

_CACHE_BLOCK = 2**16
"""Numbers per block of several passes: half a MiB of float64 stays in the processor's cache."""


def cross_measure(
    measure: Measure,
    A: AnyArray,
    B: AnyArray,
    y: AnyArray,
    *,
    prob_clip: float = 1e-3,
    row_weights: ArrayLike | None = None,
) -> Float64:
    """Return a pairwise measure between all predictions of A and all of B.

    ==============  ===================================  =============================================
    measure         class probabilities                  values
    ==============  ===================================  =============================================
    ``div``         sqrt(1/2) E ||f - g||                E (f - g)^2
    ``mse``                                              2 E[e h]
    ``mae``                                              sqrt(2) E sqrt|e h|
    ``ce``          E log(p q / (p + q)^2)
    ``bs``          2 E[e . h]
    ``black_box``   0.2 ``ce`` + 0.1 ``bs``
    ``gap_mse``                                          -E (f - g)^2 / 2
    ``gap_mae``                                          -2 E[min(|e|, |h|) 1(e h < 0)]
    ``gap_ce``      E log(4 p q / (p + q)^2)
    ==============  ===================================  =============================================

    Parameters
    ----------
    measure : Measure
        ``div`` is DivBO's distance, larger for more diverse predictions; the others are minimised. A gap is twice
        the loss of the two predictions' average minus twice their mean loss: at most 0.
    A : (n, n_rows, n_classes) or (n, n_rows) array
        Class probabilities or values, in any real type.
    B : (m, n_rows, n_classes) or (m, n_rows) array
        Likewise.
    y : (n_rows,) array
        Class codes or values; ``div`` and ``gap_mse`` do not depend on it.
    prob_clip : float
        Smallest probability of the true class in logarithmic measures, in (0, 1]. It bounds the gain from a
        confidently wrong member at about -log(1/prob_clip) per row. Probabilities are not rescaled.
    row_weights : (n_rows,) array, optional
        Non-negative, with any positive sum.

    Returns
    -------
    (n, m) array
        Ranges: ``div`` [0, 1] and ``bs`` [0, 4] for probabilities; ``mae`` and ``div`` of values non-negative.

    Raises
    ------
    InvalidParameterError
        If the measure does not exist or does not apply to such predictions.

    Notes
    -----
    All measures are symmetric and computed in float64, in blocks of rows. For two classes ``div`` is the mean absolute
    difference of one probability, assuming that rows sum to one. Optimal diversities omit the factor 1/N, which the
    paper prints only in eq. 9 (docs/papers/optdivbo.md#factors).

    References
    ----------
    ``div``: Shen et al. (2022), DivBO: Diversity-aware CASH for ensemble learning, NeurIPS, eq. 3; of values:
    docs/papers/divbo.md#diversity-of-values. ``mse``, ``mae``, ``ce``, ``bs``, ``black_box``: Poduval et al. (2024),
    CASH via optimal diversity for ensemble learning, KDD, eqs. 5, 6, 9, section 4.0.4, eq. 12. Gaps are an addition of
    this package: docs/papers/optdivbo.md#bounds-and-gaps.

    Examples
    --------
    >>> values = np.array([[1.0, 2.0], [2.0, 1.0]])
    >>> cross_measure("mse", values, values, np.array([1.0, 1.0]))
    array([[1., 0.],
           [0., 1.]])
    """
    check_measure(measure, is_classification=A.ndim == 3)
    if len(A) > len(B):  # the loop over pairs runs over the shorter side
        return cross_measure(measure, B, A, y, prob_clip=prob_clip, row_weights=row_weights).T
    v = np.ones(len(y)) if row_weights is None else np.asarray(row_weights, dtype=np.float64)
    v = v / v.sum()
    result = np.zeros((len(A), len(B)))
    for rows in _row_blocks(B.shape, _MEMORY_BLOCK):
        f, g = A[:, rows].astype(np.float64), B[:, rows].astype(np.float64)
        if A.ndim == 2:
            result += _between_values(measure, f, g, y[rows], v[rows])
        else:
            result += _between_probabilities(measure, f, g, y[rows], v[rows], prob_clip)
    return result


def check_measure(measure: str, *, is_classification: bool) -> None:
    """Raise an error if a measure does not exist for such predictions.

    Parameters
    ----------
    measure : str
        Name of a measure.
    is_classification : bool
        Whether predictions are class probabilities.

    Raises
    ------
    InvalidParameterError
        If it does not exist; the message names those that do.
    """
    kind, allowed = ("class probabilities", _OF_PROBABILITIES) if is_classification else ("values", _OF_VALUES)
    if measure not in allowed:
        raise InvalidParameterError("measure", measure, f"one of {', '.join(map(repr, allowed))} for {kind}")


def _row_blocks(shape: tuple[int, ...], size: int) -> Iterator[slice]:
    """Yield consecutive slices of rows that hold about `size` numbers of an array of this shape."""
    n, n_rows, *rest = shape
    step = max(1, size // max(1, n * int(np.prod(rest))))
    for start in range(0, n_rows, step):
        yield slice(start, start + step)


def _between_values(measure: Measure, f: Float64, g: Float64, y: AnyArray, v: Float64) -> Float64:
    """Return the contribution of some rows to a measure of values, ``(n, m)``."""
    e, h = y - f, y - g
    share: Float64
    match measure:
        case "div" | "gap_mse":
            # Differences are squared, not expanded: f.f - 2 f.g + g.g cancels where members are alike.
            squared = cdist(f * np.sqrt(v), g * np.sqrt(v), "sqeuclidean")
            share = squared if measure == "div" else -squared / 2
        case "mse":
            share = 2 * (e * v) @ h.T
        case "mae":
            share = np.sqrt(2) * (np.sqrt(np.abs(e)) * v) @ np.sqrt(np.abs(h)).T
        case _:  # gap_mae: -2 min(|e|, |h|) 1(e h < 0) = |e + h| - |e| - |h|
            share = cdist(e * v, -h * v, "cityblock") - (np.abs(e) @ v)[:, None] - np.abs(h) @ v
    return share


def _between_probabilities(
    measure: Measure, f: Float64, g: Float64, y: AnyArray, v: Float64, prob_clip: float
) -> Float64:
    """Return the contribution of some rows to a measure of class probabilities, ``(n, m)``."""
    match measure:
        case "div":
            return _mean_distance(f, g, v)
        case "bs":
            return _brier_term(f, g, y, v)
        case "gap_ce":
            return _cross_entropy_gap(f, g, y, v, prob_clip)
    ce: Float64 = _cross_entropy_gap(f, g, y, v, prob_clip) - np.log(4) * v.sum()
    return ce if measure == "ce" else 0.2 * ce + 0.1 * _brier_term(f, g, y, v)


def _mean_distance(f: Float64, g: Float64, v: Float64) -> Float64:
    distance: Float64
    if f.shape[2] == 2:
        distance = cdist(f[:, :, 1] * v, g[:, :, 1] * v, "cityblock")
    else:
        distance = np.zeros((len(f), len(g)))
        for row, weight in enumerate(v):
            distance += weight * cdist(f[:, row], g[:, row])
        distance *= np.sqrt(0.5)
    return distance


def _brier_term(f: Float64, g: Float64, y: AnyArray, v: Float64) -> Float64:
    truth = np.eye(f.shape[2])[y]
    e, h = truth - f, truth - g
    term: Float64 = 2 * (e * v[:, None]).reshape(len(e), -1) @ h.reshape(len(h), -1).T
    return term


def _cross_entropy_gap(f: Float64, g: Float64, y: AnyArray, v: Float64, prob_clip: float) -> Float64:
    rows = np.arange(len(y))
    p, q = np.clip(f[:, rows, y], prob_clip, 1.0), np.clip(g[:, rows, y], prob_clip, 1.0)
    log_mean = np.zeros((len(p), len(q)))
    for block in _row_blocks(q.shape, _CACHE_BLOCK):
        q_half = q[:, block] / 2
        for i, p_half in enumerate(p[:, block] / 2):
            # Clipped probabilities can be added directly; in log space each pair would cost one more exponential.
            log_mean[i] += np.einsum("jr,r->j", np.log(p_half + q_half), v[block])
    gap: Float64 = (np.log(p) @ v)[:, None] + np.log(q) @ v - 2 * log_mean
    return gap


def optimal_measure(metric_name: str, *, is_classification: bool) -> Measure:
    """Return the optimal diversity that belongs to a metric.

    ==============================  =============  ===========================================================
    metric                          measure        why
    ==============================  =============  ===========================================================
    log_loss                        ``ce``         eq. 9
    brier                           ``bs``         exact (section 4.0.4)
    other classification metrics    ``black_box``  eq. 12
    mae                             ``mae``        eq. 6
    mape                            ``mae``        treated like mae: its row weights 1/|y| are left out
    pinball, at any level           ``mae``        treated like mae, which is twice the loss at the level 0.5
    mse, rmse, r2                   ``mse``        exact (eq. 5); the others are monotone in the squared error
    other regression metrics        ``mse``        the paper is silent
    ==============================  =============  ===========================================================

    Parameters
    ----------
    metric_name : str
        Name of a metric, see `cashmere.evaluation.metrics.METRICS`, or any other name for a custom metric.
    is_classification : bool
        Whether predictions are class probabilities.

    Returns
    -------
    Measure
        One that `cross_measure` accepts for such predictions.

    References
    ----------
    Poduval et al. (2024), CASH via optimal diversity for ensemble learning, KDD, section 4;
    docs/papers/optdivbo.md#measure-for-a-metric.
    """
    if is_classification:
        return _OPTIMAL_OF_PROBABILITIES.get(metric_name, "black_box")
    return _OPTIMAL_OF_VALUES.get(metric_name.partition("@")[0], "mse")


_OPTIMAL_OF_PROBABILITIES: dict[str, Measure] = {"log_loss": "ce", "brier": "bs"}
_OPTIMAL_OF_VALUES: dict[str, Measure] = {"mae": "mae", "mape": "mae", "pinball": "mae"}


def divbo_weight(t: ArrayLike, *, beta: float = 0.05, tau: float = 0.2) -> Float64:
    """Return the weight of DivBO's diversity rank, beta (sigmoid(tau t) - 1/2) = (beta/2) tanh(tau t/2).

    Parameters
    ----------
    t : number or array
        Number of finished evaluations, non-negative.
    beta : float
        Twice the largest weight. The paper says the range is [0, beta); it is [0, beta/2).
    tau : float
        Speed, positive; at ``tau t = 4`` the weight has 96 % of its final size.

    Returns
    -------
    float or array like t
        It starts at zero so that the pool can form before diversity counts.

    References
    ----------
    Shen et al. (2022), DivBO, eq. 5; docs/papers/divbo.md#weight-of-the-diversity.
    """
    return 0.5 * beta * optdivbo_weight(t, tau=tau)


def optdivbo_weight(t: ArrayLike, *, tau: float = 0.2) -> Float64:
    """Return the weight of OptDivBO's diversity rank, 2 (sigmoid(tau t) - 1/2) = tanh(tau t/2).

    Parameters
    ----------
    t : number or array
        Number of finished evaluations, non-negative.
    tau : float
        Speed, positive.

    Returns
    -------
    float or array like t
        In [0, 1]: in the end both ranks count equally.

    References
    ----------
    Poduval et al. (2024), OptDivBO, eq. 11.
    """
    return np.tanh(0.5 * tau * np.asarray(t, dtype=np.float64))


def minimum_over_pool(samples: FloatArray) -> Float64:
    """Return the distance to the nearest pool member, averaged over samples.

    alpha_div = (1/N) sum_s min over P of s.

    Parameters
    ----------
    samples : (n_samples, n_candidates, n_pool) array
        Draws of the predicted distance; the multiplicity of members does not matter.

    Returns
    -------
    (n_candidates,) array
        Larger is better.

    References
    ----------
    Shen et al. (2022), DivBO, eq. 4.
    """
    nearest: Float64 = samples.min(axis=2).mean(axis=0, dtype=np.float64)
    return nearest


def sum_over_pool(samples: FloatArray, multiplicity: ArrayLike | None, *, kappa: float = 1.0) -> Float64:
    """Return the lower confidence bound of the sum of a measure over the pool.

    alpha_div = mean - kappa std over the samples of sum over P of s.

    Parameters
    ----------
    samples : (n_samples, n_candidates, n_pool) array
        Predicted measure by each surrogate member, for the distinct members of the pool.
    multiplicity : (n_pool,) array or None
        How often the pool holds each of them; None counts each of them once.
    kappa : float
        Weight of the spread, non-negative. The paper does not give it.

    Returns
    -------
    (n_candidates,) array
        *Smaller* is better. The spread is that of the sum, so errors common to all pairs are included.

    References
    ----------
    Poduval et al. (2024), OptDivBO, eqs. 10 and 11; docs/papers/optdivbo.md#confidence-bound.
    """
    counts = np.ones(samples.shape[2]) if multiplicity is None else np.asarray(multiplicity, dtype=np.float64)
    sums = samples @ counts
    return lower_confidence_bound(sums.mean(axis=0), sums.std(axis=0), kappa)


def gaussian_draws(
    mean: Float64, variance: Float64, n: int, rng: np.random.Generator, clip: tuple[float, float] = (0.0, 1.0)
) -> Float64:
    """Draw the measure of each pair from its own normal distribution, independently of the other pairs.

    Outputs of the surrogate's members are the default samples; this is the other reading of DivBO's "samples", which
    loses the correlation between pairs.

    Parameters
    ----------
    mean, variance : (n_candidates, n_pool) array
        Moments of the predicted measure; ``variance >= 0``.
    n : int
        Number of draws; 10 is usual.
    rng : numpy.random.Generator
        Source of randomness.
    clip : (float, float)
        Range of the measure; ``(-inf, inf)`` if it has none.

    Returns
    -------
    (n, n_candidates, n_pool) array
        Samples for `minimum_over_pool` and `sum_over_pool`.

    References
    ----------
    One reading of Shen et al. (2022), DivBO, eq. 4: docs/papers/divbo.md#samples-of-the-surrogate.
    """
    return rng.normal(mean, np.sqrt(variance), size=(n, *mean.shape)).clip(*clip)


def combine_ranks(performance: ArrayLike, diversity: ArrayLike, weight: float | Float64) -> Float64:
    """Merge two acquisition values by their ranks over the candidates: alpha = R_perf + w R_div.

    Parameters
    ----------
    performance : (n_candidates,) array
        Expected improvement or its logarithm; larger is better.
    diversity : (n_candidates,) array
        Larger is better: `minimum_over_pool` unchanged, `sum_over_pool` with its sign flipped.
    weight : float
        Share of the diversity rank, non-negative: `divbo_weight` or `optdivbo_weight`.

    Returns
    -------
    (n_candidates,) array
        Combined rank; *smaller* is better. Rank 1 is the best; equal values share their average rank.

    Raises
    ------
    ValueError
        If the lengths differ or a value is NaN.

    References
    ----------
    Shen et al. (2022), DivBO, eq. 5, read as in docs/papers/divbo.md#direction-of-the-ranks; Poduval et al. (2024),
    OptDivBO, eq. 11.

    Examples
    --------
    >>> combine_ranks([0.3, 0.0, 0.1], [0.1, 0.9, 0.1], weight=0.5)
    array([2.25, 3.5 , 3.25])
    """
    performance, diversity = np.asarray(performance, dtype=np.float64), np.asarray(diversity, dtype=np.float64)
    ranks: Float64 = rankdata(-performance, nan_policy="raise") + weight * rankdata(-diversity, nan_policy="raise")
    return ranks


def order_by_ranks(combined: ArrayLike, performance: ArrayLike, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the candidates, best first: by combined rank, then by performance, then at random.

    Parameters
    ----------
    combined : (n_candidates,) array
        Combined rank; smaller is better.
    performance : (n_candidates,) array
        As given to `combine_ranks`; larger is better.
    rng : numpy.random.Generator
        Breaks the remaining ties.

    Returns
    -------
    (n_candidates,) array
        Positions of candidates.

    References
    ----------
    The paper is silent: docs/papers/divbo.md#direction-of-the-ranks.
    """
    performance = np.asarray(performance, dtype=np.float64)
    # Ranks are multiples of 1/2; differences below 1e-9 after weighting are due to rounding.
    return np.lexsort((rng.random(len(performance)), -performance, np.round(np.asarray(combined), 9)))
