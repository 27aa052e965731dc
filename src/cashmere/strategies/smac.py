"""SMAC: one random forest over all algorithms, and local search from the best observations."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from cashmere.acquisition.local_search import ascend
from cashmere.acquisition.maximise import best_distinct, draw_candidates
from cashmere.base.arrays import Float64
from cashmere.records.trial import History
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation
from cashmere.strategies.shared.candidates import Candidates
from cashmere.strategies.shared.discount import Discount

_N_DRAWS = 4
"""Values tried per number in one step of the local search, as in SMAC."""


@dataclass(frozen=True)
class SMAC(BayesianOptimisation):
    """Choose like `bo`, with candidates from local searches around the best observations.

    Inactive parameters enter the forest with their defaults instead of a special value, and every fifth later trial is
    random.

    Parameters
    ----------
    space, n_initial, n_global, variance, cap_losses, failures, learn_from
        See `BayesianOptimisation`; `local` has no effect.
    n_local : int
        Number of best observations from which a local search starts.
    random_fraction : float
        Share of later trials that are still random, in [0, 1].

    Notes
    -----
    The forest is that of `BayesianOptimisation`, fitted to losses and not to their logarithms. A step of the local
    search makes the best change of one parameter, the algorithm included.

    References
    ----------
    Hutter, Hoos and Leyton-Brown (2011), Sequential model-based optimization for general algorithm configuration,
    LION 5. Lindauer et al. (2022), SMAC3: A versatile Bayesian optimization package for hyperparameter optimization,
    JMLR 23.
    """

    _: KW_ONLY
    n_global: int = 5000
    n_local: int = 10
    random_fraction: float = 0.2

    @property
    def decides_in_batches(self) -> bool:
        """Never: its searches start from what the forest has just learned."""
        return False

    def draw_candidates(self, history: History, decided: Float64, rng: np.random.Generator) -> Candidates:
        """Search for candidates and predict their losses, see `BayesianOptimisation.draw_candidates`."""
        model = self.learn(history, self.encoder.with_defaults(decided), rng)
        losses, discount = model.losses, Discount.of(history, self.encoder)

        def improvement(rows: Float64) -> Float64:
            return model.log_improvement(self.encoder.with_defaults(rows)) - discount(rows)

        observed, pending = decided[: len(history)], decided[len(history) :]
        starts = observed[best_distinct(self.encoder.keys(observed), losses, self.n_local)]
        climbed, values = ascend(self.encoder, starts, improvement, rng, n_draws=_N_DRAWS, excluded=decided)
        drawn = draw_candidates(
            self.encoder, observed, losses, rng, n_global=self.n_global, n_local=0, excluded=pending
        )
        rows = np.concatenate([climbed[values > -np.inf], drawn])
        return Candidates(rows=rows, log_improvement=improvement(rows) if len(rows) else np.empty(0))
