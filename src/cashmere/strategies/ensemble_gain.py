"""Ensemble gain: choose the configuration that is expected to lower the ensemble's loss most."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from cashmere.acquisition.diversity import combine_ranks, optdivbo_weight
from cashmere.acquisition.improvement import log_expected_improvement
from cashmere.ensembles.evidence import judge_gain
from cashmere.exceptions import InvalidParameterError
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation, Candidates
from cashmere.strategies.temporary_pool import TemporaryPool, select_pool
from cashmere.surrogates.prediction import AddedShare, PredictionSurrogate
from cashmere.trial import History


@dataclass(frozen=True)
class EnsembleGain(BayesianOptimisation):
    """Decides by the rank of the expected improvement plus the rank of the expected gain of the ensemble.

    The loss of the temporary pool with one more member is known for every observation. A forest that has learned how
    configurations predict carries it over to candidates, each tree a coherent sample; the expected improvement over
    the loss of the pool, from mean and spread of the trees, is the expected gain. Improvement of the single model keeps
    its say: it leads the search while the forest knows little.

    Parameters
    ----------
    space, n_initial, n_global, n_local, variance, random_fraction, cap_losses, catalogue
        See `BayesianOptimisation`.
    max_weight : float
        Weight of the rank by gain in the end, at least 0.
    tau : float
        Speed at which the weight grows with the number of trials, positive; as in `OptDivBO`.
    share : {"best", "fixed"}
        Weight of an added member: the one with the lowest loss, or 1/(m + 1) beside m others.
    protect : bool
        Multiply the weight by the credibility of gains, and compare with a smaller pool where the evidence is for
        fewer members, see `cashmere.ensembles.evidence.judge_gain`: with few or noisy validation rows, what lowers
        the loss of the ensemble there need not do so elsewhere.
    ensemble_size : int
        Members of the temporary pool at most, repetitions included.

    References
    ----------
    Ours; the spread of the trees as in Hutter, Hoos and Leyton-Brown (2011), the growing weight as in Poduval et al.
    (2024), CASH via Optimal Diversity for Ensemble Learning, KDD.
    """

    _: KW_ONLY
    max_weight: float = 1.0
    tau: float = 0.2
    share: AddedShare = "best"
    protect: bool = True
    ensemble_size: int = 25

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_weight < 0:
            raise InvalidParameterError("max_weight", self.max_weight, "at least 0")
        if self.tau <= 0:
            raise InvalidParameterError("tau", self.tau, "positive")
        if self.share not in ("best", "fixed"):
            raise InvalidParameterError("share", self.share, "'best' or 'fixed'")
        if self.ensemble_size < 1:
            raise InvalidParameterError("ensemble_size", self.ensemble_size, "at least 1")

    def score(self, candidates: Candidates, history: History, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return R_perf + w R_gain over the candidates, shape ``(n_candidates,)``."""
        if len(history.successes) < 2:  # nothing to gain from
            return super().score(candidates, history, rng)
        pool = select_pool(history, self.encoder, size=self.ensemble_size, tie="secondary")
        weight = self.max_weight * float(optdivbo_weight(len(history), tau=self.tau))
        if self.protect:
            pool, credibility = self._believe(pool, rng)
            weight *= credibility
        forest = PredictionSurrogate().fit(pool.rows, pool.predictions, pool.y, rng, row_weights=pool.row_weights)
        losses = forest.sample_ensemble_losses(candidates.rows, pool.counts, pool.metric, how=self.share)
        gain = log_expected_improvement(losses.mean(axis=0), losses.std(axis=0), pool.loss)
        return combine_ranks(candidates.log_improvement, gain, weight)

    def _believe(self, pool: TemporaryPool, rng: np.random.Generator) -> tuple[TemporaryPool, float]:
        """Return the pool of the size that the evidence is for, and the credibility of gains."""
        evidence = judge_gain(
            pool.predictions,
            pool.y,
            pool.metric,
            losses=pool.losses,
            rng=rng,
            size=self.ensemble_size,
            row_weights=pool.row_weights,
        )
        if evidence is None:
            return pool, 1.0
        return pool.first(evidence.best_size), evidence.credibility
