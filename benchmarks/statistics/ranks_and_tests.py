"""Whether methods differ over tables, and by how much: tests, ranks and intervals.

=====================  ================  ==========================================================================
symbol                 shape             meaning
=====================  ================  ==========================================================================
``losses``             ``(n, k)``        losses, smaller is better; rows are tables, columns are methods
``R``                  ``(k,)``          average rank of each method over the tables, 1 is best
``CD``                 number            critical difference: average ranks that are so far apart differ
=====================  ================  ==========================================================================

Losses that agree to `DIGITS` decimals are equal, and a missing loss (NaN) is worse than any other and equal to another
missing one: a method does not profit from tables on which it found nothing. Where methods are compared by name,
`losses` is a frame with a column per method.

Friedman's test, Holm's rule and Wilcoxon's test themselves are in `cashmere.contests.significance`, since searches use
them too; what is here says how they are applied to methods and tables.

References
----------
Demšar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7: which test when, sections 3.1.3
and 3.2.2.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import ndtr, ndtri

from cashmere.base.arrays import Float64, FloatArray
from cashmere.contests import significance
from cashmere.exceptions import ArrayError, InvalidParameterError, ShapeError, UnknownNameError

DIGITS = 12
"""Losses that agree to this many decimals are ties: the same ensemble, summed in another order."""

LEVEL = 0.05
"""Probability, at most, at which methods are said to differ."""

holm = significance.holm_adjusted
"""Holm's rule: probabilities, shape ``(m,)``, corrected for m comparisons."""


def rank_methods(losses: ArrayLike) -> Float64:
    """Return the rank of every method on every table, shape ``(n, k)``; 1 is best, ties share their mean rank.

    Parameters
    ----------
    losses : (n, k) array
        At least one table.

    Examples
    --------
    >>> rank_methods([[0.1, 0.3, 0.2], [0.1, 0.1, np.nan]]).tolist()
    [[1.0, 3.0, 2.0], [1.5, 1.5, 3.0]]
    """
    losses = np.asarray(losses, dtype=np.float64)
    if losses.ndim != 2 or 0 in losses.shape:
        raise ShapeError("losses", losses.shape, "(n_tables, n_methods), both at least 1")
    return significance.rank_rows(np.where(np.isnan(losses), np.inf, losses.round(DIGITS)))


def average_ranks(losses: ArrayLike) -> Float64:
    """Return the average rank of each method over the tables, shape ``(k,)``."""
    ranks: Float64 = rank_methods(losses).mean(axis=0)
    return ranks


def friedman_test(losses: ArrayLike) -> significance.FriedmanTest:
    """Test whether all methods are alike: Friedman's chi-squared, corrected for ties, and Iman and Davenport's F.

    Demšar prints the chi-squared without correction (section 3.2.2), which is smaller where there are ties.

    Parameters
    ----------
    losses : (n, k) array
        At least two methods; with fewer than about ten tables or five methods both distributions are approximations.

    Raises
    ------
    ArrayError
        If there is nothing to compare.
    """
    ranks = rank_methods(losses)
    if ranks.shape[1] < 2:
        raise ArrayError("losses", f"losses must have a column for each of at least two methods; got {ranks.shape[1]}.")
    return significance.friedman_test(ranks)


def nemenyi_critical_difference(n_methods: int, n_tables: int, level: float = 0.05) -> float:
    """Return how far apart two average ranks must be to differ, whichever two of the methods they belong to.

    ``CD = q sqrt(k (k + 1) / (6 n))``, where q is the quantile of the studentised range of k groups with infinitely
    many degrees of freedom, divided by the square root of 2.

    Parameters
    ----------
    n_methods, n_tables : int
        k, at least 2, and n, at least 1.
    level : float
        Probability, in (0, 1), of finding any difference where there is none.

    Raises
    ------
    InvalidParameterError
        If one of them is outside its range.

    References
    ----------
    Nemenyi (1963), Distribution-free multiple comparisons, PhD thesis, Princeton; Demšar (2006), section 3.2.2.

    Examples
    --------
    >>> round(nemenyi_critical_difference(4, 14), 2), round(nemenyi_critical_difference(4, 14, 0.1), 2)
    (1.25, 1.12)
    """
    if n_methods < 2:
        raise InvalidParameterError("n_methods", n_methods, "at least 2")
    if n_tables < 1:
        raise InvalidParameterError("n_tables", n_tables, "at least 1")
    if not 0 < level < 1:
        raise InvalidParameterError("level", level, "between 0 and 1")
    quantile = stats.studentized_range.ppf(1 - level, n_methods, np.inf)
    return float(quantile / np.sqrt(2) * _rank_deviation(n_methods, n_tables))


def nemenyi_p_values(average_ranks: FloatArray, n_tables: int) -> Float64:
    """Return the probability of each pair's difference of average ranks, or a larger one among any of the pairs.

    Corrected for all pairs by construction: at most `level` exactly where the ranks are
    `nemenyi_critical_difference` or more apart.

    Returns
    -------
    (k, k) array
        Symmetric; 1 on the diagonal.
    """
    k = len(average_ranks)
    z = np.abs(np.subtract.outer(average_ranks, average_ranks)) / _rank_deviation(k, n_tables)
    p_values: Float64 = stats.studentized_range.sf(z * np.sqrt(2), k, np.inf)
    return p_values


def signed_rank_test(differences: FloatArray) -> tuple[float, int]:
    """Return the two-sided p-value of the Wilcoxon signed-rank test, and the sign of the rank sum.

    Differences that are zero, to `DIGITS` decimals, are left out; without any others the p-value is 1. Exact for up to
    50 others, ties or not.

    Examples
    --------
    >>> signed_rank_test(np.array([-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]))
    (0.03125, -1)
    >>> signed_rank_test(np.zeros(9))
    (1.0, 0)
    """
    rounded = np.round(differences, DIGITS)
    nonzero = rounded[rounded != 0]
    direction = np.sign(np.sum(np.sign(nonzero) * stats.rankdata(np.abs(nonzero))))
    return significance.wilcoxon_test(nonzero, np.zeros_like(nonzero))[1], int(direction)


def smallest_p_value(n_tables: int, n_comparisons: int = 1) -> float:
    """Return the smallest p of a two-sided sign or signed-rank test: one method wins on every table.

    Parameters
    ----------
    n_tables : int
        Pairs without a tie.
    n_comparisons : int
        Comparisons among which Holm's rule corrects the smallest.

    Examples
    --------
    >>> smallest_p_value(5), smallest_p_value(6), smallest_p_value(6, n_comparisons=4)
    (0.0625, 0.03125, 0.125)
    """
    return min(1.0, n_comparisons * 2.0 ** (1 - n_tables))


def wilcoxon_holm(losses: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Test every method against a reference over tables, each of which counts once.

    Parameters
    ----------
    losses : DataFrame
        Rows tables, columns methods.
    reference : str
        A column. Differences are taken relative to the larger of two losses, since losses of different tables have no
        common scale: exchanging method and reference changes signs only.

    Returns
    -------
    DataFrame
        Rows methods; one without any loss has none. ``wins``, ``ties``, ``losses``: on how many tables the method's
        loss is lower, equal, higher. ``sign_p``: two-sided sign test without ties. ``wilcoxon_p``: signed-rank test,
        and ``holm_p`` the same corrected for as many comparisons as there are rows.

    Raises
    ------
    UnknownNameError
        If the reference is no column.

    References
    ----------
    Demšar (2006), section 3.1.3, and 3.2.2 for comparisons with one method.
    """
    base = _column(losses, reference)
    rows = {}
    for method in losses.columns.drop(reference):
        value = losses[method]
        if value.isna().all():
            continue
        larger = value.abs().clip(lower=base.abs()).replace(0.0, 1.0)  # of two zeros the difference is zero
        relative = _missing_worst((value - base) / larger, value, base)
        signs = np.sign(np.round(relative, DIGITS))
        wins, losts = int((signs < 0).sum()), int((signs > 0).sum())
        rows[method] = {
            "wins": wins,
            "ties": int((signs == 0).sum()),
            "losses": losts,
            "sign_p": float(stats.binomtest(wins, wins + losts).pvalue) if wins + losts else 1.0,
            "wilcoxon_p": signed_rank_test(relative)[0],
        }
    columns = ["wins", "ties", "losses", "sign_p", "wilcoxon_p"]
    found = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return found.assign(holm_p=holm(found["wilcoxon_p"].to_numpy(np.float64)))


def wilcoxon_by_table(losses: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Test every method against a reference over the repeats of each table.

    Methods differ where p is at most `LEVEL`. Not corrected for the number of tables: one of 20 differs by chance.

    Parameters
    ----------
    losses : DataFrame
        Rows (table, repeat), columns methods. Runs of one repeat are pairs: they share split and first trials.
    reference : str
        A column.

    Returns
    -------
    DataFrame
        A row per table and other method: the table under the name that the index gives it, ``strategy``, ``p_value``
        (two-sided signed-rank test) and ``verdict``: ``better``, ``same`` or ``worse`` than the reference. Fewer than
        six repeats cannot reach 0.05.

    Raises
    ------
    UnknownNameError
        If the reference is no column.

    References
    ----------
    Shen et al. (2022), DivBO, NeurIPS, Table 2, and Poduval et al. (2024), CASH via Optimal Diversity for Ensemble
    Learning, KDD, Tables 2 and 4, count so: over ten repeats, at 0.05.
    """
    _column(losses, reference)
    head = losses.index.names[0]
    rows = []
    for table, part in losses.groupby(level=0):
        for method in losses.columns.drop(reference):
            differences = _missing_worst(part[method] - part[reference], part[method], part[reference])
            p_value, direction = signed_rank_test(differences)
            verdict = "same" if p_value > LEVEL or direction == 0 else ("better" if direction < 0 else "worse")
            rows.append({head: table, "strategy": method, "p_value": p_value, "verdict": verdict})
    return pd.DataFrame(rows, columns=[head, "strategy", "p_value", "verdict"])


def count_verdicts(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Count tables on which a method is ``better``, ``same`` and ``worse`` (papers: B/S/W): rows methods.

    Parameters
    ----------
    verdicts : DataFrame
        From `wilcoxon_by_table`.
    """
    counts = pd.crosstab(verdicts["strategy"], verdicts["verdict"])
    order = list(dict.fromkeys(verdicts["strategy"]))
    return counts.reindex(index=order, columns=["better", "same", "worse"], fill_value=0)


def bootstrap_interval(
    values: FloatArray,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    method: Literal["percentile", "bca"] = "bca",
    n_draws: int = 2000,
) -> tuple[float, float]:
    """Return an interval for the mean of values of tables, had other tables been drawn.

    Parameters
    ----------
    values : (n,) array
        One value per table: an average rank, a difference.
    rng : Generator
        Draws tables with replacement.
    level : float
        Nominal coverage, in (0, 1). With n below about ten the true one is less.
    method : {"percentile", "bca"}
        Quantiles of the means of the draws, or of these quantiles corrected for bias and skewness.
    n_draws : int
        How often n tables are drawn.

    Returns
    -------
    low, high : float
        NaN if a single value leaves nothing to draw, or a value is missing.

    References
    ----------
    Efron (1987), Better bootstrap confidence intervals, Journal of the American Statistical Association 82.
    """
    n = len(values)
    if n < 2 or np.isnan(values).any():
        return float("nan"), float("nan")
    means = values[rng.integers(n, size=(n_draws, n))].mean(axis=1)
    shares = np.array([(1 - level) / 2, (1 + level) / 2])
    centred = values - values.mean()
    if method == "bca" and np.abs(centred).max() > 1e-12 * np.abs(values).max():
        skewness = np.sum(centred**3) / (6 * np.sum(centred**2) ** 1.5)
        # Draws equal to the estimate count half.
        below = np.mean(means < values.mean()) / 2 + np.mean(means <= values.mean()) / 2
        bias = ndtri(below)
        z = bias + ndtri(shares)
        shares = ndtr(bias + z / (1 - skewness * z))
    low, high = np.quantile(means, shares)
    return float(low), float(high)


def _rank_deviation(n_methods: int, n_tables: int) -> float:
    """Return the standard deviation of the difference of two average ranks when all methods are alike."""
    return float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_tables)))


def _column(losses: pd.DataFrame, reference: str) -> pd.Series:
    if reference not in losses.columns:
        raise UnknownNameError("method", reference, map(str, losses.columns))
    return losses[reference]


def _missing_worst(differences: pd.Series, value: pd.Series, reference: pd.Series) -> Float64:
    """Fill the differences of missing losses: larger than all others towards the missing one, zero where both are."""
    largest = 1 + np.nan_to_num(differences.abs().max())
    signs = value.isna().astype(float) - reference.isna().astype(float)
    return differences.fillna(largest * signs).to_numpy(np.float64)
