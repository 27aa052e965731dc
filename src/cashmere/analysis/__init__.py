"""Analyse a search and the errors of its ensemble.

Diversity of suggestions and members, updates of the pool, rank correlations, contests, latent maps; out-of-fold
predictions of the ensemble, with reliability, confusion, ranking curves and residuals.
"""

from cashmere.analysis.confusion import confusion_matrix, join_small_classes
from cashmere.analysis.contest import RecordedContest, contest_fact, read_contest, recorded_contest
from cashmere.analysis.contest_summary import summarise_contest
from cashmere.analysis.correlation import CandidatePairSurrogate, SurrogateTau, kendall_tau, surrogate_tau
from cashmere.analysis.diversity import diversities, mean_over_pairs, pairwise_disagreement, pairwise_diversity
from cashmere.analysis.latent_map import latent_map_fact, summarise_latent_map
from cashmere.analysis.out_of_fold import OutOfFold, read_out_of_fold
from cashmere.analysis.ranking_curves import RankingCurves, ranking_curves
from cashmere.analysis.recorded import RecordedPredictions, read_predictions
from cashmere.analysis.reliability import ReliabilityCurve, reliability_curve
from cashmere.analysis.residuals import ResidualBands, residual_bands
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
    "OutOfFold",
    "PoolTrajectory",
    "PoolUpdates",
    "RankingCurves",
    "RecordedContest",
    "RecordedPredictions",
    "ReliabilityCurve",
    "ResidualBands",
    "SurrogateTau",
    "confusion_matrix",
    "contest_fact",
    "diversities",
    "join_small_classes",
    "kendall_tau",
    "latent_map_fact",
    "mean_over_pairs",
    "minimum_diversity",
    "pairwise_disagreement",
    "pairwise_diversity",
    "pool_trajectory",
    "pool_updates",
    "ranking_curves",
    "read_contest",
    "read_out_of_fold",
    "read_predictions",
    "recorded_contest",
    "reliability_curve",
    "residual_bands",
    "summarise_contest",
    "summarise_latent_map",
    "surrogate_tau",
    "trace_pool",
]
