"""What a search did: diversity of suggestions and members, updates of the pool, rank correlations, contest, map."""

from cashmere.analysis.contest import RecordedContest, contest_fact, read_contest, recorded_contest
from cashmere.analysis.contest_summary import summarise_contest
from cashmere.analysis.correlation import CandidatePairSurrogate, SurrogateTau, kendall_tau, surrogate_tau
from cashmere.analysis.diversity import diversities, mean_over_pairs, pairwise_disagreement, pairwise_diversity
from cashmere.analysis.latent_map import latent_map_fact, summarise_latent_map
from cashmere.analysis.recorded import RecordedPredictions, read_predictions
from cashmere.analysis.trajectory import (
    PoolTrajectory,
    PoolUpdates,
    minimum_diversity,
    pool_trajectory,
    pool_updates,
    trace_pool,
)

__all__ = [
    "CandidatePairSurrogate",
    "PoolTrajectory",
    "PoolUpdates",
    "RecordedContest",
    "RecordedPredictions",
    "SurrogateTau",
    "contest_fact",
    "diversities",
    "kendall_tau",
    "latent_map_fact",
    "mean_over_pairs",
    "minimum_diversity",
    "pairwise_disagreement",
    "pairwise_diversity",
    "pool_trajectory",
    "pool_updates",
    "read_contest",
    "read_predictions",
    "recorded_contest",
    "summarise_contest",
    "summarise_latent_map",
    "surrogate_tau",
    "trace_pool",
]
