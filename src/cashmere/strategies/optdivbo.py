"""OptDivBO: Bayesian optimisation with a diversity derived from the loss."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import get_args

import numpy as np

from cashmere.acquisition.diversity import (
    Measure,
    check_measure,
    combine_ranks,
    optdivbo_weight,
    optimal_measure,
    sum_over_pool,
)
from cashmere.base.arrays import FloatArray
from cashmere.evaluation.metrics import Metric
from cashmere.exceptions import UnknownNameError
from cashmere.records.loss import Loss
from cashmere.records.trial import History
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation, Scorer
from cashmere.strategies.shared.diversity_surrogates import SurrogateName, check_surrogate, make_diversity_surrogate
from cashmere.strategies.shared.option_checks import check_at_least, check_positive
from cashmere.strategies.shared.temporary_pool import select_pool


@dataclass(frozen=True)
class OptDivBO(BayesianOptimisation):
    """Choose by the rank of the expected improvement plus the rank of the optimal diversity.

    The optimal diversity of two models follows from the loss: for squared errors it is the covariance of their errors,
    for other losses the pairwise part of a bound. For a candidate it is summed over the members of the temporary pool;
    because the sum is uncertain, a lower confidence bound is ranked, smallest first.

    Parameters
    ----------
    space, n_initial, n_global, n_local, variance, random_fraction, cap_losses, local, failures, learn_from
        See `BayesianOptimisation`.
    measure : Measure, optional
        ``"div"``, ``"ce"``, ``"bs"``, ``"black_box"`` or ``"gap_ce"`` for class probabilities; ``"div"``, ``"mse"``,
        ``"mae"``, ``"gap_mse"`` or ``"gap_mae"`` for values: see `cashmere.acquisition.diversity.cross_measure`. By
        default the one for the metric, see `optimal_measure`. With ``"div"``, the distance of `DivBO`, the sum is
        maximised.
    tau : float
        Speed at which the weight grows from 0 to 1 with the number of trials, positive.
    max_weight : float
        Final weight of the diversity rank, at least 0; 1 in the paper.
    kappa : float
        Standard deviations subtracted from the predicted sum; not given in the paper.
    surrogate : {"prediction", "pairwise", "pairwise_openbox", "pairwise_fast", "pairwise_incremental"}
        See `DivBO`.
    ensemble_size : int
        Members of the temporary pool, repetitions included.

    References
    ----------
    Poduval, Patnala, Oberoi, Srivasatava, Asthana (2024), CASH via Optimal Diversity for Ensemble Learning, KDD:
    equations 4 to 12 and algorithm 1.
    """

    _: KW_ONLY
    measure: Measure | None = None
    tau: float = 0.2
    max_weight: float = 1.0
    kappa: float = 1.0
    surrogate: SurrogateName = "prediction"
    ensemble_size: int = 25

    def __post_init__(self) -> None:
        super().__post_init__()
        check_surrogate(self.surrogate, self.ensemble_size)
        check_positive(self, "tau")
        check_at_least(self, kappa=0, max_weight=0)
        if self.measure is not None and self.measure not in get_args(Measure):
            raise UnknownNameError("measure", self.measure, get_args(Measure))

    def check_metric(self, metric: Loss) -> None:
        """Reject a measure that does not suit the metric's predictions, see `cashmere.protocols.MetricCheck`."""
        if self.measure is not None and isinstance(metric, Metric):
            of_classes = metric.needs != "values"
            check_measure(self.measure, is_classification=of_classes)

    def scorer(self, rows: FloatArray, history: History, rng: np.random.Generator) -> Scorer:
        """Return R_perf + w R_div over the candidates (Poduval et al., 2024, alg. 1), as a function of R_perf."""
        pool = select_pool(history, self.encoder, size=self.ensemble_size)
        if pool is None:
            return super().scorer(rows, history, rng)
        measure = self.measure or optimal_measure(pool.metric.name, is_classification=pool.is_classification)
        surrogate = make_diversity_surrogate(self.surrogate, measure)
        surrogate.fit(pool.rows, pool.predictions, pool.y, rng, row_weights=pool.row_weights)
        samples = surrogate.sample_pairs(rows, pool.members)
        if measure == "div":  # the only measure for which more is better
            samples = -samples
        bound = sum_over_pool(samples, pool.multiplicity, kappa=self.kappa)
        weight = self.max_weight * float(optdivbo_weight(len(history), tau=self.tau))
        return lambda log_improvement: combine_ranks(log_improvement, -bound, weight)
