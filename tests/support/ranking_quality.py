"""Does a ranker help on tables that it has not seen?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cashmere.base.arrays import Float64
from cashmere.exceptions import ObservationsError
from cashmere.metalearning.ranking import RankingQueries, apply_ranker, fit_ranker, ndcg


def random_ndcg(relevance: ArrayLike, k: int) -> float:
    """Return the expectation of `ndcg` over all orders: over rotations, since each puts every candidate everywhere."""
    return float(np.mean([ndcg(np.roll(relevance, shift), k) for shift in range(np.size(relevance))]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankingQuality:
    """NDCG@k on unseen tables, one number per query in the order of `targets`."""

    targets: NDArray[np.int64]
    ranked: Float64
    random: Float64

    @property
    def mean_ranked(self) -> float:
        """Mean over the queries in the ranker's order."""
        return float(self.ranked.mean())

    @property
    def mean_random(self) -> float:
        """Mean over the queries expected from a random order."""
        return float(self.random.mean())


def leave_one_origin_out(queries: RankingQueries, origins: Sequence[str], *, k: int, seed: int = 0) -> RankingQuality:
    """Measure a ranker on each table after fitting it on the tables of other origins.

    Parameters
    ----------
    queries : RankingQueries
        Queries of at least two origins.
    origins : sequence of S str
        Tables of the same origin are held out together, as queries and as sources of candidates.
    k : int
        Number of candidates that count.
    seed : int
        See `fit_ranker`.

    Returns
    -------
    RankingQuality
        Candidates with equal scores keep their given order.

    Raises
    ------
    ObservationsError
        If nothing is left to fit on.
    """
    kin = np.array(origins)
    targets = np.unique(queries.targets)
    ranked = {}
    for origin in dict.fromkeys(kin[targets].tolist()):
        away = kin[queries.targets] == origin
        kept = ~away
        if queries.sources is not None:
            kept &= kin[queries.sources] != origin
        if not kept.any():
            raise ObservationsError(
                f"Judging a ranker takes tables of at least two origins; got only {', '.join(sorted(set(origins)))}. "
                "Collect observations on further tables."
            )
        text = fit_ranker(queries.features[kept], queries.labels[kept], queries.targets[kept], seed)
        for t in targets[kin[targets] == origin].tolist():
            rows = np.flatnonzero(queries.targets == t)
            order = np.argsort(-apply_ranker(text, queries.features[rows]), kind="stable")
            ranked[t] = ndcg(queries.labels[rows[order]], k)
    return RankingQuality(
        targets=targets,
        ranked=np.array([ranked[t] for t in targets.tolist()]),
        random=np.array([random_ndcg(queries.labels[queries.targets == t], k) for t in targets.tolist()]),
    )
