"""Ensemble gain: choose the configuration expected to lower the ensemble's loss most."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from cashmere.acquisition.diversity import combine_ranks, optdivbo_weight
from cashmere.acquisition.improvement import lower_confidence_bound
from cashmere.base.arrays import Float64, FloatArray
from cashmere.ensembles.added_member import losses_with_added
from cashmere.ensembles.evidence import judge_gain
from cashmere.records.trial import History
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation, Scorer
from cashmere.strategies.shared.option_checks import check_at_least, check_positive
from cashmere.strategies.shared.temporary_pool import TemporaryPool, select_pool
from cashmere.surrogates.prediction import PredictionSurrogate


@dataclass(frozen=True)
class EnsembleGain(BayesianOptimisation):
    """Choose by the rank of the expected improvement plus the rank of the expected gain of the ensemble.

    How much one more member would lower the loss of the temporary pool is known for every observation. A forest that
    has learned how configurations predict transfers it to candidates, each tree giving a sample of the gain; their mean
    is the expected gain, and their spread draws the search to where it is uncertain. The improvement of the single
    model still counts: it leads the search while the forest knows little.

    Parameters
    ----------
    space, n_initial, n_global, n_local, variance, random_fraction, cap_losses, local, failures, learn_from
        See `BayesianOptimisation`.
    max_weight : float
        Final weight of the rank by gain, at least 0.
    tau : float
        Speed at which the weight grows with the number of trials, positive; as in `OptDivBO`.
    kappa : float
        Standard deviations (over trees) added to the expected gain, at least 0.
    protect : bool
        Multiply the weight by the credibility of gains, and compare with a smaller pool if the evidence favours fewer
        members, see `cashmere.ensembles.evidence.judge_gain`: with few or noisy validation rows, an addition that
        lowers the ensemble's loss there need not do so elsewhere. Below 40 rows there is no evidence, and gains do not
        count.
    ensemble_size : int
        Largest number of members of the temporary pool, repetitions included.

    References
    ----------
    Ours; the growing weight as in Poduval et al. (2024), CASH via Optimal Diversity for Ensemble Learning, KDD.
    """

    _: KW_ONLY
    max_weight: float = 1.0
    tau: float = 0.2
    kappa: float = 0.0
    protect: bool = True
    ensemble_size: int = 25

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, max_weight=0, kappa=0, ensemble_size=1)
        check_positive(self, "tau")

    def scorer(self, rows: FloatArray, history: History, rng: np.random.Generator) -> Scorer:
        """Return R_perf + w R_gain over the candidates, as a function of R_perf."""
        pool = select_pool(history, self.encoder, size=self.ensemble_size)
        if pool is None:
            return super().scorer(rows, history, rng)
        weight = self.max_weight * float(optdivbo_weight(len(history), tau=self.tau))
        if self.protect:
            pool, credibility = self._believe(pool)
            weight *= credibility
        if weight == 0:
            return super().scorer(rows, history, rng)
        forest = PredictionSurrogate().fit(pool.rows, pool.predictions, pool.y, rng, row_weights=pool.row_weights)
        losses = forest.sample(self._losses_with_added(pool), rows)
        bound = lower_confidence_bound(losses.mean(axis=0), losses.std(axis=0), self.kappa)
        return lambda log_improvement: combine_ranks(log_improvement, -bound, weight)

    def _losses_with_added(self, pool: TemporaryPool) -> Float64:
        """Return the loss of the pool with each observation added, capped at the upper quartile."""
        losses = losses_with_added(
            pool.predictions,
            pool.prediction,
            pool.y,
            pool.metric,
            size=len(pool.order),
            row_weights=pool.row_weights,
        )
        # How bad the worst additions are does not matter, and must not dominate the means of their leaves.
        return np.minimum(losses, np.percentile(losses, 75))

    def _believe(self, pool: TemporaryPool) -> tuple[TemporaryPool, float]:
        """Return the pool of the size that the evidence favours, and the credibility of gains."""
        evidence = judge_gain(
            pool.predictions,
            pool.y,
            pool.metric,
            rng=np.random.default_rng(len(pool.y)),
            size=self.ensemble_size,
            row_weights=pool.row_weights,
        )
        if evidence is None:
            return pool, 0.0
        return pool.first(evidence.best_size), evidence.credibility
