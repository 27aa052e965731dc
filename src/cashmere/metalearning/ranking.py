"""Learn which of many candidates is best for a table from their ranks on other tables.

A *query* is a table t, its rows are candidates: pre-trained embeddings, algorithms or configurations. A ranker is
fitted on the queries of all source tables and scores the candidates of a new one.

======================  ==========================  =============================================================
symbol                  shape                       meaning
======================  ==========================  =============================================================
z                       ``(S, F)``                  scaled meta-features of S source tables
L                       ``(S, n_candidates)``       losses of the candidates on the tables; smaller is better
======================  ==========================  =============================================================
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.exceptions import ArrayError, InvalidParameterError, ShapeError

N_LEVELS = 31
"""Relevance labels are 0, ..., 30: LightGBM's table of gains ends there."""
MAX_QUERY_ROWS = 10_000
"""Largest number of rows of a query that LightGBM accepts."""
ABSENT = -1.0
"""Stands for the coordinates that an algorithm lacks; the others are in [0, 1]."""


# ---------------------------------------------------------------- quality of a ranking


def ndcg(relevance: FloatArray | IntArray, k: int) -> float:
    r"""Return the normalised discounted cumulative gain of the first k of a ranking.

    .. math:: \sum_{i=1}^{k} (2^{r_i} - 1) / \log_2(i + 1), \quad \text{divided by its largest value}

    Parameters
    ----------
    relevance : (n,) array
        Relevance of the candidates, non-negative, in the predicted order, best first.
    k : int
        How many count, at least 1; values above n mean n.

    Returns
    -------
    float
        In [0, 1]; 1 if nothing is relevant, since then no order is wrong.

    Raises
    ------
    InvalidParameterError
        If there is no candidate, `k` is below 1, or a relevance is negative or NaN.

    References
    ----------
    Järvelin and Kekäläinen (2002), ACM Transactions on Information Systems 20; gain as in Burges et al. (2005), ICML.

    Examples
    --------
    >>> round(ndcg([3, 2, 0, 1], 4), 4), ndcg([3, 2, 0, 1], 2)
    (0.9926, 1.0)
    """
    r = np.asarray(relevance, dtype=np.float64)
    if r.ndim != 1 or len(r) == 0 or not np.all(r >= 0):
        raise ArrayError("relevance", f"relevance must be a list of one or more numbers from 0 up; got {relevance}.")
    if k < 1:
        raise InvalidParameterError("k", k, "at least 1")
    gains = np.exp2(r) - 1
    discounts = 1 / np.log2(np.arange(2, min(k, len(r)) + 2))
    ideal = float(np.sort(gains)[::-1][: len(discounts)] @ discounts)
    return float(gains[: len(discounts)] @ discounts / ideal) if ideal > 0 else 1.0


def quantile_labels(ranks: FloatArray | IntArray, n_levels: int = N_LEVELS) -> IntArray:
    """Turn ranks into integer relevance labels: levels of about equally many candidates.

    Parameters
    ----------
    ranks : (n,) array
        Rank of each candidate among the n, 1 is best; equal candidates share their average rank.
    n_levels : int
        Largest number of labels, at least 1; fewer candidates get one level each.

    Returns
    -------
    (n,) array of int
        From 0, the worst, to ``min(n, n_levels) - 1``; equal for equal ranks.

    Examples
    --------
    >>> quantile_labels([1, 2, 3, 4, 5, 6], 3)
    array([2, 2, 1, 1, 0, 0])
    >>> quantile_labels([2, 1, 3])
    array([1, 2, 0])
    """
    ranks = np.asarray(ranks, dtype=np.float64)
    n = len(ranks)
    if n_levels < 1:
        raise InvalidParameterError("n_levels", n_levels, "at least 1")
    if np.any(~((ranks >= 1) & (ranks <= n))):
        raise ArrayError(
            "ranks", f"ranks must hold a number from 1 to {n} for each of the {n} candidates; got {ranks}."
        )
    return np.floor((n - ranks) * min(n, n_levels) / max(n, 1)).astype(np.int64)


def _labels_of_losses(losses: FloatArray) -> IntArray:
    """Return the labels of candidates by their losses; NaN, a failure, is the worst."""
    return quantile_labels(stats.rankdata(np.where(np.isnan(losses), np.inf, losses)))


# ---------------------------------------------------------------- the model


def fit_ranker(features: FloatArray, labels: IntArray, groups: IntArray, seed: int = 0) -> str:
    """Fit boosted trees that order the candidates of a query (LambdaMART).

    Parameters
    ----------
    features : (n, n_features) array
        One row per query and candidate; NaN is allowed.
    labels : (n,) array of int
        Relevance, 0 to 30; see `quantile_labels`.
    groups : (n,) array of int
        Number of the query of each row, in any order; at most 10000 rows each.
    seed : int
        Seed for the columns that trees may use.

    Returns
    -------
    str
        The model in LightGBM's text format, for `apply_ranker`. Equal input gives equal text.

    Raises
    ------
    ArrayError
        If there are fewer than two rows, lengths disagree, labels are out of range or a query is too long.

    Notes
    -----
    The settings suit about 50 queries with as many rows and 120 features, most of them irrelevant: small trees, few
    features per tree. On rules planted over the meta-features of real tables, half or twice as many leaves, and a third
    or three times as many trees, changed NDCG@5 by at most about 0.02. But a leaf must have room for the rows of a
    single candidate, one per query, so it may be as small as 20 rows, or a third of the queries if they are few.

    References
    ----------
    Burges (2010), From RankNet to LambdaRank to LambdaMART: an overview, MSR-TR-2010-82.
    """
    from lightgbm import LGBMRanker

    features, labels, groups = np.asarray(features, dtype=np.float64), np.asarray(labels), np.asarray(groups)
    if features.ndim != 2 or len(features) < 2 or not len(features) == len(labels) == len(groups):
        raise ArrayError(
            "features",
            "features, labels and groups must have shapes (n, n_features), (n,) and (n,) with n > 1; "
            f"got {features.shape}, {labels.shape} and {groups.shape}.",
        )
    if labels.min() < 0 or labels.max() >= N_LEVELS:
        raise ArrayError(
            "labels",
            f"labels must be whole numbers from 0 to {N_LEVELS - 1}; got some from {labels.min()} to {labels.max()}.",
        )
    order = np.argsort(groups, kind="stable")
    sizes = np.unique(groups, return_counts=True)[1]
    if sizes.max() > MAX_QUERY_ROWS:
        raise ArrayError("groups", f"A query can have at most {MAX_QUERY_ROWS} rows; the largest has {sizes.max()}.")
    ranker = LGBMRanker(
        objective="lambdarank",
        n_estimators=100,
        learning_rate=0.05,
        num_leaves=8,
        min_child_samples=max(2, min(20, len(sizes) // 3)),
        colsample_bytree=0.3,
        random_state=seed,
        n_jobs=1,
        deterministic=True,
        force_row_wise=True,
        verbosity=-1,
    )
    text: str = ranker.fit(features[order], labels[order], group=sizes).booster_.model_to_string()
    return text


def apply_ranker(text: str, features: FloatArray) -> Float64:
    """Score candidates.

    Parameters
    ----------
    text : str
        From `fit_ranker`.
    features : (n, n_features) array
        Rows as in `fit_ranker`.

    Returns
    -------
    (n,) array
        Scores, larger is better; comparable only within a query.

    Raises
    ------
    InvalidParameterError
        If the text is not a model.
    ShapeError
        If the model has another number of features.
    """
    booster = _parsed(text)
    features = np.asarray(features, dtype=np.float64)
    if features.ndim != 2 or features.shape[1] != booster.num_feature():
        raise ShapeError("features", features.shape, f"(n, {booster.num_feature()})")
    if len(features) == 0:
        return np.empty(0)
    scores: Float64 = booster.predict(features, num_threads=1)
    return scores


@functools.lru_cache(maxsize=4)
def _parsed(text: str) -> Any:
    """Return the model of a text; strings cache their hash, so the look-up takes microseconds."""
    from lightgbm import Booster
    from lightgbm.basic import LightGBMError

    if not text.startswith("tree\n"):  # LightGBM prints before it raises
        raise InvalidParameterError("text", text[:30], "a LightGBM model as fit_ranker returns it")
    try:
        return Booster(model_str=text)
    except LightGBMError as error:
        raise InvalidParameterError(
            "text", text[:30], "a LightGBM model as fit_ranker returns it", f"LightGBM cannot read it: {error}."
        ) from error


# ---------------------------------------------------------------- candidates as features


def embedding_features(z_target: FloatArray, z_sources: FloatArray) -> Float64:
    """Return ``[z_t, z_s, |z_t - z_s|]`` for embeddings pre-trained on each source, ``(n_sources, 3 F)``."""
    z_t = np.broadcast_to(np.asarray(z_target, dtype=np.float64), np.shape(z_sources))
    return np.concatenate([z_t, z_sources, np.abs(z_t - z_sources)], axis=1)


def algorithm_features(z_target: FloatArray, n_algorithms: int) -> Float64:
    """Return ``[z_t, one-hot(m)]`` for each algorithm m, ``(n_algorithms, F + n_algorithms)``."""
    return np.concatenate([np.tile(z_target, (n_algorithms, 1)), np.eye(n_algorithms)], axis=1)


def configuration_features(
    z_target: FloatArray, tasks: IntArray, vectors: FloatArray, n_dims: Sequence[int]
) -> Float64:
    """Return ``[z_t, one-hot(m), vector]`` for configurations.

    Parameters
    ----------
    z_target : (F,) array
        Scaled meta-features of the table.
    tasks : (n,) array of int
        Number of the algorithm of each configuration.
    vectors : (n, width) array
        Their vectors, each in the first ``n_dims[m]`` columns; see `cashmere.space.encoding.algorithm_blocks`.
    n_dims : sequence of M ints
        Length of each algorithm's vector.

    Returns
    -------
    (n, F + M + sum(n_dims)) array
        All algorithms' vectors lie side by side, -1 for those of other algorithms, so no column has two meanings.
    """
    n, M = len(tasks), len(n_dims)
    laid_out = np.full((n, int(np.sum(n_dims))), ABSENT)
    start = 0
    for m, length in enumerate(n_dims):
        laid_out[tasks == m, start : start + length] = vectors[tasks == m, :length]
        start += length
    return np.concatenate([np.tile(z_target, (n, 1)), np.eye(M)[tasks], laid_out], axis=1)


# ---------------------------------------------------------------- queries of the source tables


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankingQueries:
    """Rows from all source tables to fit a ranker on.

    Attributes
    ----------
    features : (n, n_features) array
        Features of target table and candidate.
    labels : (n,) array of int
        Relevance of the candidate for the table, see `quantile_labels`.
    targets : (n,) array of int
        Number of the table: the query.
    sources : (n,) array of int, or None
        Number of the table that the candidate was learned from, if it was.
    """

    features: Float64
    labels: IntArray
    targets: IntArray
    sources: IntArray | None = None

    def fit(self, seed: int = 0) -> str:
        """Fit a ranker on all rows, see `fit_ranker`."""
        return fit_ranker(self.features, self.labels, self.targets, seed)


def embedding_queries(z: FloatArray, losses: FloatArray, origins: Sequence[str]) -> RankingQueries:
    """Return the queries for a ranker that chooses the pre-trained embedding for a table.

    Parameters
    ----------
    z : (S, F) array
        Scaled meta-features of the sources.
    losses : (S, S) array
        Row t, column s: loss of a search on table t with the embedding of s, averaged as in
        docs/papers/latent.md#labels-of-the-ranker; smaller is better. NaN where it was not tried. The diagonal is
        ignored.
    origins : sequence of S str
        Tables of the same origin share raw data: they are not paired, since a new table has no such relatives.

    Returns
    -------
    RankingQueries
        Up to ``S (S - 1)`` rows.
    """
    z, kin = np.asarray(z, dtype=np.float64), np.array(origins)
    parts = []
    for t in range(len(z)):
        candidates = np.flatnonzero((kin != kin[t]) & ~np.isnan(losses[t]))
        features = embedding_features(z[t], z[candidates])
        parts.append((features, _labels_of_losses(losses[t, candidates]), np.full(len(candidates), t), candidates))
    features, labels, targets, sources = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return RankingQueries(features=features, labels=labels, targets=targets, sources=sources)


def algorithm_queries(z: FloatArray, best_losses: FloatArray) -> RankingQueries:
    """Return the queries for AS-ML, which chooses the algorithm for a table.

    Parameters
    ----------
    z : (S, F) array
        Scaled meta-features of the sources.
    best_losses : (S, M) array
        Smallest loss of each algorithm on each table; NaN, the worst, where none of its configurations succeeded.

    Returns
    -------
    RankingQueries
        S M rows.
    """
    S, M = best_losses.shape
    return RankingQueries(
        features=np.concatenate([algorithm_features(z_t, M) for z_t in z]),
        labels=np.concatenate([_labels_of_losses(row) for row in best_losses]),
        targets=np.repeat(np.arange(S), M),
    )


def choose_candidates(losses: FloatArray, *, n_top: int = 100, n_max: int = MAX_QUERY_ROWS) -> IntArray:
    """Return the configurations that are among the best on some table.

    Parameters
    ----------
    losses : (S, C) array
        Losses of C configurations on the tables; NaN where one failed.
    n_top : int
        Configurations taken from each table, fewer if fewer succeeded; in a tie the first.
    n_max : int
        Largest number in total; beyond it, the last configurations of each table are left out evenly.

    Returns
    -------
    (n,) array of int
        Their numbers, ascending, without duplicates.
    """
    order = np.argsort(np.where(np.isnan(losses), np.inf, losses), axis=1, kind="stable")
    places = np.argsort(order, axis=1).astype(np.float64)
    places[np.isnan(losses)] = np.inf
    best_place = places.min(axis=0)
    chosen = np.argsort(best_place, kind="stable")[:n_max]
    return np.sort(chosen[best_place[chosen] < n_top])


def configuration_queries(
    z: FloatArray,
    losses: FloatArray,
    tasks: IntArray,
    vectors: FloatArray,
    n_dims: Sequence[int],
) -> RankingQueries:
    """Return the queries for AHS-ML, which chooses an algorithm and its configuration for a table.

    Parameters
    ----------
    z : (S, F) array
        Scaled meta-features of the sources.
    losses : (S, C) array
        Losses of the candidates, see `choose_candidates`; NaN, the worst, where one failed.
    tasks, vectors, n_dims
        The C candidates, see `configuration_features`.

    Returns
    -------
    RankingQueries
        S C rows.
    """
    S, C = losses.shape
    return RankingQueries(
        features=np.concatenate([configuration_features(z_t, tasks, vectors, n_dims) for z_t in z]),
        labels=np.concatenate([_labels_of_losses(row) for row in losses]),
        targets=np.repeat(np.arange(S), C),
    )
