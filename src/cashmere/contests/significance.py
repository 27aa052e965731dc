"""Test whether contenders differ: the tests of a contest by statistics.

======================  ================  =========================================================================
symbol                  shape             meaning
======================  ================  =========================================================================
``samples``             ``(n, k)``        losses; rows are blocks (positions in the contenders' histories), columns
                                          are contenders
``R``                   ``(k,)``          average rank of each contender over the blocks; 1 is the lowest loss
======================  ================  =========================================================================

The tests use arrays only: a contest makes hundreds of them, and each call of their counterparts in `scipy.stats` takes
longer than all of the arithmetic. The package's tests compare with the counterparts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtrc, ndtr

from cashmere.base.arrays import Float64, FloatArray, IntArray

_EXACT_WILCOXON = 50
"""Up to this many pairs the exact distribution of the signed-rank statistic is counted; scipy has the same limit."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FriedmanTest:
    """Outcome of a Friedman test.

    Attributes
    ----------
    chi2, p_value : float
        Statistic corrected for ties and its probability under the chi-squared distribution.
    f, f_p_value : float
        Iman and Davenport's statistic and its probability under the F distribution. Less conservative; the paper's
        decisions use the other one.
    average_ranks : (k,) array
        Average rank of each contender.
    """

    chi2: float
    p_value: float
    f: float
    f_p_value: float
    average_ranks: Float64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PostHocTest:
    """Comparisons of the best contender with all others.

    Attributes
    ----------
    best : int
        The contender with the lowest average rank; the first in a tie.
    z, p_values, adjusted : (k,) arrays
        Statistic, two-sided probability, and probability adjusted by Holm; 0, 1 and 1 for the best itself.
    """

    best: int
    z: Float64
    p_values: Float64
    adjusted: Float64


def paired_samples(losses: Sequence[FloatArray], n_initial: int) -> Float64:
    """Return the samples for the test: the best of the early losses as one value, then the latest losses.

    With ``e = min_i len(losses[i]) - n_initial``, a contender's sample is the best of all but its last e losses,
    followed by these e losses in order. Blocks pair them by position.

    Parameters
    ----------
    losses : sequence of k arrays
        Finite losses of each contender in order of evaluation.
    n_initial : int
        Initial evaluations, at least 1; they count as one value.

    Returns
    -------
    (n_blocks, k) array
        ``e + 1`` blocks; none if a contender has not finished its initial evaluations.

    References
    ----------
    Nguyen et al. (2022), IEEE Access 10, footnote 10, as their code reads it:
    docs/papers/dacopt.md#samples-of-the-tests.
    """
    e = min(len(each) for each in losses) - n_initial
    if e < 0:
        return np.empty((0, len(losses)))
    samples = [np.concatenate([[np.min(each[: len(each) - e])], each[len(each) - e :]]) for each in losses]
    return np.stack(samples, axis=1)


def rank_rows(samples: FloatArray) -> Float64:
    """Return the ranks within each row, shape ``(n, k)``; 1 is the lowest, ties share the average rank."""
    lower = np.sum(samples[:, None, :] < samples[:, :, None], axis=2)
    equal = np.sum(samples[:, None, :] == samples[:, :, None], axis=2)
    ranks: Float64 = lower + (equal + 1) / 2
    return ranks


def friedman_test(samples: FloatArray) -> FriedmanTest:
    """Test whether contenders differ, by Friedman's test.

    Parameters
    ----------
    samples : (n, k) array
        At least one block, at least two contenders.

    Returns
    -------
    FriedmanTest
        With p = 1 if all values within each block are equal.

    References
    ----------
    Friedman (1937), The use of ranks to avoid the assumption of normality implicit in the analysis of variance,
    Journal of the American Statistical Association 32. Iman and Davenport (1980), Approximations of the critical
    region of the Friedman statistic, Communications in Statistics 9.
    """
    n, k = samples.shape
    ranks = rank_rows(samples)
    average = ranks.mean(axis=0)
    # Sum over groups of t equal values of t^3 - t: every member of a group adds t^2 - 1.
    equal = np.sum(samples[:, None, :] == samples[:, :, None], axis=2)
    correction = 1 - float(np.sum(equal**2 - 1.0)) / (n * k * (k**2 - 1))
    if correction <= 0:
        return FriedmanTest(chi2=0.0, p_value=1.0, f=0.0, f_p_value=1.0, average_ranks=average)
    chi2 = 12 * n / (k * (k + 1)) * float(np.sum((average - (k + 1) / 2) ** 2)) / correction
    # At most n (k - 1), the value of complete agreement, up to rounding.
    left = n * (k - 1) - chi2
    agree = left <= 1e-12 * n * k
    f = np.inf if agree else (n - 1) * chi2 / left
    f_p_value = 0.0 if agree else float(fdtrc(k - 1, (k - 1) * (n - 1), f)) if n > 1 else 1.0
    return FriedmanTest(
        chi2=chi2, p_value=float(chdtrc(k - 1, chi2)), f=float(f), f_p_value=f_p_value, average_ranks=average
    )


def holm_adjusted(p_values: FloatArray) -> Float64:
    """Return probabilities adjusted for multiple comparisons by Holm's step-down rule, shape ``(m,)``.

    The smallest is multiplied by m, the next by m - 1, ...; none is smaller than one before it or larger than 1.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.

    Examples
    --------
    >>> holm_adjusted(np.array([0.01, 0.04, 0.03])).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    m = len(p_values)
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(np.maximum.accumulate((m - np.arange(m)) * p_values[order]), 1.0)
    return adjusted


def compare_with_best(average_ranks: FloatArray, n_blocks: int, *, authors_z: bool = False) -> PostHocTest:
    """Compare the contender with the best average rank with each of the others.

    ``z_j = |R_j - R_best| / sqrt(k (k + 1) / (6 n))``, two-sided normal probabilities, adjusted by Holm.

    Parameters
    ----------
    average_ranks : (k,) array
        Average ranks over the blocks.
    n_blocks : int
        Number of blocks n.
    authors_z : bool
        Leave out the division by the standard error, as the authors' code does: z then does not grow with n, few
        contenders are ever dropped, and at the level 0.05 none of three: docs/papers/dacopt.md#statistical-test.

    References
    ----------
    Demšar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7, section 3.2.2.
    """
    k = len(average_ranks)
    best = int(np.argmin(average_ranks))
    z = np.abs(average_ranks - average_ranks[best])
    if not authors_z:
        z = z / np.sqrt(k * (k + 1) / (6 * n_blocks))
    p_values = 2 * ndtr(-z)
    others = np.arange(k) != best
    adjusted = np.ones(k)
    adjusted[others] = holm_adjusted(p_values[others])
    return PostHocTest(best=best, z=z, p_values=p_values, adjusted=adjusted)


def wilcoxon_test(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Test whether two paired samples differ by Wilcoxon's signed ranks, two-sided.

    Parameters
    ----------
    x, y : (n,) arrays
        The samples. Pairs without a difference are left out.

    Returns
    -------
    statistic, p_value : float
        The smaller of the two sums of ranks, and its probability; 0 and 1 if no pair differs. The probability is exact
        for up to 50 differing pairs, else normal with correction for ties.

    Notes
    -----
    Differences of equal size share a rank, and all sign patterns of these ranks are counted. scipy does so up to 13
    pairs with ties and is asymptotic beyond.

    References
    ----------
    Wilcoxon (1945), Individual comparisons by ranking methods, Biometrics Bulletin 1.
    """
    differences = x - y
    differences = differences[differences != 0]
    n = len(differences)
    if n == 0:
        return 0.0, 1.0
    _, inverse, counts = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    twice = (2 * np.cumsum(counts) - counts + 1)[inverse]  # ranks times two: ties share a rank that may end in .5
    positive = int(np.sum(twice[differences > 0]))
    smaller = min(positive, n * (n + 1) - positive)
    if n <= _EXACT_WILCOXON:
        return smaller / 2, float(min(1.0, 2 * _ways_to_sum(twice)[: smaller + 1].sum() / 2.0**n))
    ties = float(np.sum(counts.astype(np.float64) ** 3 - counts))
    deviation = np.sqrt(n * (n + 1) * (2 * n + 1) / 24 - ties / 48)
    return smaller / 2, float(min(1.0, 2 * ndtr((smaller / 2 - n * (n + 1) / 4) / deviation)))


def _ways_to_sum(parts: IntArray) -> IntArray:
    """Return how many of the ``2**n`` subsets of n positive whole numbers, n < 63, sum to 0, 1, 2, ..."""
    ways = np.zeros(int(parts.sum()) + 1, dtype=np.int64)
    ways[0] = 1
    for part in parts:
        ways[part:] += ways[:-part].copy()
    return ways
