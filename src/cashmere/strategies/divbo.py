"""DivBO: Bayesian optimisation that prefers configurations that differ from the ensemble so far."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from cashmere.acquisition.diversity import combine_ranks, divbo_weight, gaussian_draws, minimum_over_pool
from cashmere.base.arrays import FloatArray
from cashmere.exceptions import InvalidParameterError
from cashmere.records.trial import History
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation, Scorer
from cashmere.strategies.shared.diversity_surrogates import SurrogateName, check_surrogate, make_diversity_surrogate
from cashmere.strategies.shared.option_checks import check_at_least, check_positive
from cashmere.strategies.shared.temporary_pool import select_pool


@dataclass(frozen=True)
class DivBO(BayesianOptimisation):
    """Choose by the rank of the expected improvement and, with a small weight, the rank of the diversity.

    The diversity of a candidate is the smallest predicted distance of its predictions to those of a member of the
    temporary pool, the ensemble selected from the observations so far. Its weight grows with the number of trials
    and stays small: it decides among the few per cent most promising candidates.

    Parameters
    ----------
    space, n_initial, n_global, n_local, variance, random_fraction, cap_losses, local, failures, learn_from
        See `BayesianOptimisation`.
    beta : float
        Twice the largest weight (Shen et al., 2022, eq. 5); at least 0. The papers use 0.05 for classification and
        found 0.01 best for regression.
    tau : float
        Speed at which the weight grows with the number of trials, positive.
    surrogate : {"prediction", "pairwise", "pairwise_openbox", "pairwise_fast", "pairwise_incremental"}
        Surrogate of the distances: the forest of `cashmere.surrogates.prediction`, or the papers' boosters on pairs of
        configurations, which take many seconds per trial, each on its own draw of the pairs or, with OpenBox's
        settings, all of them; half as long in fast mode, and about a second on average if they are refitted only when
        the observations have grown by 5 %.
    ensemble_size : int
        Members of the temporary pool, repetitions included.
    draws : int, optional
        Number of independent draws of each pair's distance from a normal distribution; by default every member of the
        surrogate is one sample, which preserves the dependence between pairs:
        docs/papers/divbo.md#samples-of-the-surrogate.

    Notes
    -----
    Where the paper is silent: the pool's ties are broken as in the final ensemble of a run (``"secondary"``), see
    docs/papers/divbo.md#temporary-pool.

    References
    ----------
    Shen, Lu, Li, Tu, Zhang, Cui (2022), DivBO: Diversity-aware CASH for ensemble learning, NeurIPS.
    """

    _: KW_ONLY
    beta: float = 0.05
    tau: float = 0.2
    surrogate: SurrogateName = "prediction"
    ensemble_size: int = 25
    draws: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_surrogate(self.surrogate, self.ensemble_size)
        if self.draws is not None and self.draws < 1:
            raise InvalidParameterError("draws", self.draws, "None or at least 1")
        check_at_least(self, beta=0)
        check_positive(self, "tau")

    def scorer(self, rows: FloatArray, history: History, rng: np.random.Generator) -> Scorer:
        """Return R_perf + w R_div over the candidates (Shen et al., 2022, eq. 5), as a function of R_perf."""
        pool = select_pool(history, self.encoder, size=self.ensemble_size)
        if pool is None:
            return super().scorer(rows, history, rng)
        surrogate = make_diversity_surrogate(self.surrogate, "div")
        surrogate.fit(pool.rows, pool.predictions, pool.y, rng, row_weights=pool.row_weights)
        samples = surrogate.sample_pairs(rows, pool.members)
        if self.draws is not None:
            mean, variance = samples.mean(axis=0), samples.var(axis=0)
            samples = gaussian_draws(mean, variance, self.draws, rng, (0.0, 1.0 if pool.is_classification else np.inf))
        diversity, weight = minimum_over_pool(samples), self.weight(len(history))
        return lambda log_improvement: combine_ranks(log_improvement, diversity, weight)

    def weight(self, n_trials: int) -> float:
        """Return the weight of the diversity rank after this many finished trials."""
        return float(divbo_weight(n_trials, beta=self.beta, tau=self.tau))


@dataclass(frozen=True)
class FixedDivBO(DivBO):
    """Choose like `divbo`, but with a constant weight of the diversity rank: the papers' ablation.

    Parameters
    ----------
    space, n_initial, n_global, n_local, variance, random_fraction, cap_losses, local, failures, learn_from
        See `BayesianOptimisation`.
    surrogate, ensemble_size, draws
        See `DivBO`; `beta` and `tau` have no effect.
    fixed_weight : float
        The weight, at least 0. The paper's ablation uses 0.1, four times the final weight of `DivBO`; 0.025 tests the
        schedule alone.

    References
    ----------
    Shen, Lu, Li, Tu, Zhang, Cui (2022), DivBO: Diversity-aware CASH for ensemble learning, NeurIPS, table 8.
    """

    _: KW_ONLY
    fixed_weight: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, fixed_weight=0)

    def weight(self, n_trials: int) -> float:
        """Return the fixed weight."""
        return self.fixed_weight
