"""Other rules for weighing costs, to compare with the one of the package.

======================  ==================  =======================================================================
symbol                  shape               meaning
======================  ==================  =======================================================================
mu, sigma               ``(n,)``            predicted loss and its standard deviation
c                       ``(n,)``            predicted seconds
lambda                  scalar              price of a second, in units of the loss
g                       ``(n,)``            Gittins index: the loss at which opening the box is just worth its price
======================  ==================  =======================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cashmere.acquisition.improvement import log_expected_improvement
from cashmere.acquisition.maximise import draw_candidates
from cashmere.base.arrays import Float64, FloatArray
from cashmere.costs.predicted import PredictedSeconds
from cashmere.protocols import Strategy
from cashmere.records.trial import History, Suggestion
from cashmere.strategies.bayesian_optimisation import BayesianOptimisation
from cashmere.strategies.shared.candidates import Candidates
from cashmere.strategies.shared.scaled_losses import scale_losses
from cashmere.surrogates.forest import ProbabilisticForest

_Z = np.linspace(-30.0, 8.0, 4000)
_LOG_H = log_expected_improvement(-_Z, np.ones_like(_Z), 0.0)
"""Logarithm of h(z) = phi(z) + z Phi(z), the expected improvement of a standard normal loss over z; h(z) ~ z above."""

PRICE = 0.5
"""Price of a second as a share of the largest expected improvement per second: the rule of Xie et al. halves its price
whenever no index is below the best loss, which is when no improvement per second is above it."""


@dataclass(frozen=True, slots=True)
class FixedExponent:
    """A strategy that weighs costs with a fixed exponent instead of one that falls from 1 to 0.

    Attributes
    ----------
    strategy : Strategy
        The strategy that decides.
    exponent : float
        1 for improvement per second until the end, 0 for improvement alone.
    """

    strategy: Strategy
    exponent: float

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion | None:
        """See `cashmere.protocols.Strategy.suggest`."""
        if history.time_left is not None:
            history = replace(history, time_left=replace(history.time_left, share=self.exponent))
        return self.strategy.suggest(history, rng)


@dataclass(frozen=True)
class CheapnessCredited(BayesianOptimisation):
    """Choose by improvement / seconds^alpha, whatever the seconds: what is cheaper than usual gains by it, too.

    Parameters
    ----------
    space, n_initial, n_global, n_local, variance, random_fraction, cap_losses
        See `BayesianOptimisation`.

    References
    ----------
    Lee, Eriksson, Perrone and Seeger (2021), A nonmyopic approach to cost-constrained Bayesian optimization, UAI.
    """

    def draw_candidates(self, history: History, decided: Float64, rng: np.random.Generator) -> Candidates:
        """See `BayesianOptimisation.draw_candidates`."""
        candidates = super().draw_candidates(replace(history, time_left=None), decided, rng)
        if history.time_left is None:
            return candidates
        predicted = PredictedSeconds.learn(self.encoder, history.observations)
        discount = history.time_left.share * predicted.mean_log_seconds(candidates.rows)
        if np.isfinite(history.time_left.seconds):
            discount = discount - predicted.log_probability_within(history.time_left.seconds, candidates.rows)
        return replace(candidates, log_improvement=candidates.log_improvement - discount)


@dataclass(frozen=True)
class PandorasBox(BayesianOptimisation):
    """Choose the smallest Gittins index of Pandora's box: every candidate is a box that may be opened at a price.

    Parameters
    ----------
    space, n_initial, n_global, n_local, variance, random_fraction, cap_losses
        See `BayesianOptimisation`.

    Notes
    -----
    The price of a second is `PRICE` times the largest expected improvement per second, so it falls with the improvement
    that is left and needs no state.

    References
    ----------
    Xie, Astudillo, Frazier, Scully and Terenin (2024), Cost-aware Bayesian optimization via the Pandora's box Gittins
    index, NeurIPS; Xie, Cai, Terenin, Frazier and Scully (2025), Cost-aware stopping for Bayesian optimization,
    arXiv:2507.12453.
    """

    def draw_candidates(self, history: History, decided: Float64, rng: np.random.Generator) -> Candidates:
        """See `BayesianOptimisation.draw_candidates`; minus the index takes the place of the log improvement."""
        if history.time_left is None:
            return super().draw_candidates(history, decided, rng)
        losses, best = scale_losses(history, cap=self.cap_losses)
        liar = np.full(len(history.pending), np.median(losses))
        forest = ProbabilisticForest(variance=self.variance).fit(decided, np.concatenate([losses, liar]), rng)
        observed, pending = decided[: len(history)], decided[len(history) :]
        rows = draw_candidates(
            self.encoder, observed, losses, rng, n_global=self.n_global, n_local=self.n_local, excluded=pending
        )
        mean, variance = forest.predict(rows)
        std = np.sqrt(variance)
        predicted = PredictedSeconds.learn(self.encoder, history.observations)
        log_seconds = predicted.mean_log_seconds(rows)
        per_second = log_expected_improvement(mean, std, best) - log_seconds
        index = gittins_index(mean, std, np.max(per_second, initial=-np.inf) + np.log(PRICE) + log_seconds)
        if np.isfinite(history.time_left.seconds):  # a box that cannot be opened in time is worth nothing
            in_time = predicted.log_probability_within(history.time_left.seconds, rows)
            index = np.where(in_time < np.log(0.5), np.inf, index)
        return Candidates(rows=rows, log_improvement=-index)


def gittins_index(mean: FloatArray, std: FloatArray, log_price: FloatArray) -> Float64:
    """Return the loss g at which the expected improvement over it equals the price, shape ``(n,)``.

    EI(mu, sigma; g) = sigma h((g - mu)/sigma) = price, with h(z) = phi(z) + z Phi(z), which increases.

    Parameters
    ----------
    mean, std : (n,) array
        Moments of the predicted loss; ``std > 0``.
    log_price : (n,) array
        Logarithm of the price of each candidate.
    """
    target = log_price - np.log(std)
    z = np.where(target > _LOG_H[-1], np.exp(np.minimum(target, 700.0)), np.interp(target, _LOG_H, _Z))
    return np.asarray(mean + std * z, dtype=np.float64)
