"""Which contenders leave at the end of a round, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cashmere.base.arrays import FloatArray
from cashmere.contests.reasons import NeverEvaluated, Reason, WorseLoss, WorseRank
from cashmere.contests.significance import compare_with_best, friedman_test, rank_rows, wilcoxon_test

_SAME = 1e-5
"""Relative difference up to which best values count as equal (the authors round scores to five decimals)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision at the end of a round.

    Attributes
    ----------
    dropped : tuple of int
        Positions of the contenders that leave.
    reasons : tuple of Reason
        One for each of them.
    test : str or None
        Name of the test that decided; None if there was none.
    statistic, p_value : float or None
        Statistic and probability of the test.
    adjusted_p : tuple of float
        Adjusted probability of each contender's difference from the best one; empty without comparisons.
    """

    dropped: tuple[int, ...] = ()
    reasons: tuple[Reason, ...] = ()
    test: str | None = None
    statistic: float | None = None
    p_value: float | None = None
    adjusted_p: tuple[float, ...] = ()


def drop_highest(scores: FloatArray, recent: FloatArray, n_keep: int, *, max_extra: int = 0) -> Verdict:
    """Keep the contenders with the best values found so far.

    Parameters
    ----------
    scores : (k,) array
        Best loss of each contender; infinite for those that were never evaluated.
    recent : (k,) array
        Mean loss of each in the round that ends. Breaks ties between scores; remaining ties keep the order of the
        contenders.
    n_keep : int
        How many to keep, at least 1.
    max_extra : int
        Up to this many further contenders whose score equals that of the last one kept (to five digits) stay too,
        unless then all would. 0 keeps exactly `n_keep`.

    Returns
    -------
    Verdict
        A verdict without a test.

    References
    ----------
    Nguyen et al. (2022), An efficient contesting procedure for AutoML optimization, IEEE Access 10, algorithm 1, with
    the treatment of ties in the authors' code, bounded: docs/papers/dacopt.md#equal-values.
    """
    k = len(scores)
    if k <= n_keep:
        return Verdict()
    order = np.lexsort([np.arange(k), recent, scores])
    last = scores[order[n_keep - 1]]
    ties = np.isclose(scores[order[n_keep:]], last, rtol=_SAME, atol=0.0)
    n_extra = min(int(ties.sum()), max_extra)
    kept = n_keep + n_extra if n_keep + n_extra < k else n_keep
    dropped = tuple(sorted(order[kept:].tolist()))
    reasons = tuple(
        WorseLoss(best_loss=float(scores[i]), bar=float(last), n_kept=kept, n_contenders=k)
        if np.isfinite(scores[i])
        else NeverEvaluated()
        for i in dropped
    )
    return Verdict(dropped=dropped, reasons=reasons)


def drop_defeated(
    samples: FloatArray,
    names: Sequence[str],
    *,
    alpha: float = 0.05,
    min_blocks: int = 3,
    authors_z: bool = False,
) -> Verdict:
    """Keep the contenders that are not significantly worse than the best one.

    Three or more are compared by Friedman's test and, if it rejects, each with the best one by Holm's procedure; two
    are compared by Wilcoxon's signed ranks.

    Parameters
    ----------
    samples : (n_blocks, k) array
        Losses, see `cashmere.contests.significance.paired_samples`.
    names : sequence of k str
        Names of the contenders, for the reasons.
    alpha : float
        Level of significance, in (0, 1).
    min_blocks : int
        With fewer blocks there is no test and nothing is dropped.
    authors_z : bool
        See `cashmere.contests.significance.compare_with_best`.

    Returns
    -------
    Verdict
        A verdict with the test, if there were enough blocks.

    References
    ----------
    Nguyen et al. (2022), An efficient contesting procedure for AutoML optimization, IEEE Access 10, algorithm 2. Line
    17 prints the test negated; it means that the hypothesis of no difference is rejected.
    """
    n_blocks, k = samples.shape
    if n_blocks < min_blocks or k < 2:
        return Verdict()
    if k == 2:
        statistic, p_value = wilcoxon_test(samples[:, 0], samples[:, 1])
        ranks = rank_rows(samples).mean(axis=0)
        worse = int(np.argmax(ranks))
        if p_value > alpha or ranks[0] == ranks[1]:
            return Verdict(test="wilcoxon", statistic=statistic, p_value=p_value)
        reason = WorseRank(
            test="wilcoxon",
            rank=float(ranks[worse]),
            best_rank=float(ranks[1 - worse]),
            best=names[1 - worse],
            p_value=float(p_value),
        )
        return Verdict(dropped=(worse,), reasons=(reason,), test="wilcoxon", statistic=statistic, p_value=p_value)
    friedman = friedman_test(samples)
    if friedman.p_value > alpha:
        return Verdict(test="friedman", statistic=friedman.chi2, p_value=friedman.p_value)
    ranks = friedman.average_ranks
    compared = compare_with_best(ranks, n_blocks, authors_z=authors_z)
    dropped = tuple(np.flatnonzero(compared.adjusted < alpha).tolist())
    reasons = tuple(
        WorseRank(
            test="holm",
            rank=float(ranks[i]),
            best_rank=float(ranks[compared.best]),
            best=names[compared.best],
            p_value=float(compared.adjusted[i]),
        )
        for i in dropped
    )
    return Verdict(
        dropped=dropped,
        reasons=reasons,
        test="friedman",
        statistic=friedman.chi2,
        p_value=friedman.p_value,
        adjusted_p=tuple(compared.adjusted.tolist()),
    )
