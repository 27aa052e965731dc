"""What a search did for its ensemble: diversity of suggestions and members, updates of the pool, rank correlations."""

from cashmere.analysis.correlation import CandidatePairSurrogate, SurrogateTau, kendall_tau, surrogate_tau
from cashmere.analysis.diversity import diversities, mean_over_pairs, pairwise_disagreement, pairwise_diversity
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
    "RecordedPredictions",
    "SurrogateTau",
    "diversities",
    "kendall_tau",
    "mean_over_pairs",
    "minimum_diversity",
    "pairwise_disagreement",
    "pairwise_diversity",
    "pool_trajectory",
    "pool_updates",
    "read_predictions",
    "surrogate_tau",
    "trace_pool",
]
