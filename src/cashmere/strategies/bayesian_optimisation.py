"""Bayesian optimisation with a random forest and expected improvement."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cashmere.acquisition.diversity import order_by_ranks
from cashmere.acquisition.local_search import Score, ascend
from cashmere.acquisition.maximise import best_distinct, draw_candidates
from cashmere.exceptions import InvalidParameterError
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Suggestion
from cashmere.space.encoding import SpaceEncoder
from cashmere.strategies.shared.candidates import Candidates
from cashmere.strategies.shared.discount import Discount
from cashmere.strategies.shared.drawing import draw_suggestion, first_unseen
from cashmere.strategies.shared.loss_model import LearnFrom, LossModel, learn_losses
from cashmere.strategies.shared.scaled_losses import Failures
from cashmere.strategies.shared.search_space import SearchSpace, encoder_of
from cashmere.surrogates.forest import Variance

Local = Literal["neighbours", "climbs"]

_N_DRAWS = 4
"""Trial values per number in one step of a climb, as in SMAC and OpenBox."""


@dataclass(frozen=True)
class BayesianOptimisation:
    """Choose the candidate with the largest expected improvement, from the losses of all trials so far.

    A probabilistic forest is fitted to the encoded configurations and their losses; about 5000 candidates (draws from
    the prior and one-exchange neighbours of the best observations) are ranked by the logarithm of the expected
    improvement over the best loss. The first trials are random, stratified over algorithms.

    Parameters
    ----------
    space : ConfigurationSpace or SpaceEncoder
        The search space.
    n_initial : int
        Trials are random until this many succeeded or twice as many ended (docs/papers/divbo.md#first-trials).
    n_global, n_local : int
        Number of candidates drawn from the prior, and of local ones.
    local : {"neighbours", "climbs"}
        Local candidates: random one-exchange neighbours of the best observations, or as in OpenBox the ends of climbs
        up the expected improvement, from the observations where it is largest.
    variance : {"total", "between"}
        Variance of the forest, see `cashmere.surrogates.forest.forest_moments`.
    random_fraction : float
        Share of later trials that are still random, in [0, 1]. OpenBox uses 0.1; the papers are silent.
    cap_losses : bool
        Treat very bad losses as equally bad, see `scale_losses`; False as in the papers.
    failures : {"worst_possible", "worst_seen", "apart"}
        Loss with which failed trials enter the forest, see `scale_losses`; ``"worst_seen"`` in OpenBox. With
        ``"apart"`` they do not: the improvement is multiplied by the probability of success, which a second forest
        predicts.
    learn_from : {"losses", "predictions"}
        Whether the forest that predicts losses is grown on them, or on the validation predictions of the trials, see
        `cashmere.surrogates.loss_of_predictions`; then failures are kept apart.

    Notes
    -----
    - Pending trials enter the forest with the median loss of the history (constant liar, as in OpenBox), so that
      parallel decisions differ.
    - Very bad losses are capped. A family of models with a few huge losses has a huge variance, which under an
      unbounded metric was enough to attract the search: without the cap, 20 of 40 trials on eucalyptus (log loss) went
      to nearest neighbours, whose best loss was 60 % above the incumbent's.
    - Before the fit, losses are centred by their median and divided by their interquartile range; the improvement's
      ranks do not change, but the lower bound of the forest's variance then suits every metric.
    - The random start is stratified over algorithms. For the forest's splits, see `ProbabilisticForest`.
    - Ties of the acquisition are broken by `rng`.

    References
    ----------
    Hutter, Hoos and Leyton-Brown (2011), Sequential model-based optimization for general algorithm configuration,
    LION 5. Candidates as in Shen et al. (2022), DivBO: Diversity-aware CASH for ensemble learning, NeurIPS,
    appendix A.4.
    """

    space: SearchSpace
    _: KW_ONLY
    n_initial: int = 5
    n_global: int = 4950
    n_local: int = 50
    variance: Variance = "total"
    random_fraction: float = 0.1
    cap_losses: bool = True
    local: Local = "neighbours"
    failures: Failures = "worst_possible"
    learn_from: LearnFrom = "losses"

    def __post_init__(self) -> None:
        for name, least in (("n_initial", 1), ("n_global", 1), ("n_local", 0)):
            if getattr(self, name) < least:
                raise InvalidParameterError(name, getattr(self, name), f"at least {least}")
        if not 0 <= self.random_fraction <= 1:
            raise InvalidParameterError("random_fraction", self.random_fraction, "in [0, 1]")
        if self.variance not in ("total", "between"):
            raise InvalidParameterError("variance", self.variance, "'total' or 'between'")
        for name, kind in (("local", Local), ("failures", Failures), ("learn_from", LearnFrom)):
            known = get_args(kind)
            if getattr(self, name) not in known:
                raise InvalidParameterError(name, getattr(self, name), " or ".join(map(repr, known)))

    @functools.cached_property
    def encoder(self) -> SpaceEncoder:
        """The compiled space; a cache."""
        return encoder_of(self.space)

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion:
        """Return the most promising candidate, see `cashmere.protocols.Strategy.suggest`."""
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        if self._is_random(history, rng):
            return draw_suggestion(self.encoder, decided, rng)
        candidates = self.draw_candidates(history, decided, rng)
        if not len(candidates.rows):
            return draw_suggestion(self.encoder, decided, rng)
        scores = self.score(candidates, history, rng)
        # Most candidates share their leaves with others: equal values are common.
        order = order_by_ranks(scores, candidates.log_improvement, rng)
        seen = self.encoder.keys(decided)
        suggestion = first_unseen(self.encoder, candidates.rows[order], seen, origin=Origin(OriginKind.MODEL))
        return suggestion or draw_suggestion(self.encoder, decided, rng)

    def draw_candidates(self, history: History, decided: NDArray[np.float64], rng: np.random.Generator) -> Candidates:
        """Draw candidates and predict their losses.

        Parameters
        ----------
        history : History
            At least one observation.
        decided : (n_trials, d) array
            Encoded configurations of ``history.trials``.
        rng : numpy.random.Generator
            Source of randomness.
        """
        model = self.learn(history, decided, rng)
        losses, discount = model.losses, Discount.of(history, self.encoder)

        def improvement(rows: NDArray[np.float64]) -> NDArray[np.float64]:
            return model.log_improvement(rows) - discount(rows)

        observed, n_local = decided[: len(history)], self.n_local
        excluded = decided[len(history) :]
        climbed = np.empty((0, self.encoder.n_dims))
        if self.local == "climbs":
            climbed, n_local = self._climb(improvement, observed, decided, rng), 0
            excluded = np.concatenate([excluded, climbed])
        rows = draw_candidates(
            self.encoder, observed, losses, rng, n_global=self.n_global, n_local=n_local, excluded=excluded
        )
        rows = np.concatenate([climbed, rows])
        return Candidates(rows=rows, log_improvement=improvement(rows) if len(rows) else np.empty(0))

    def learn(self, history: History, rows: NDArray[np.float64], rng: np.random.Generator) -> LossModel:
        """Fit a model to the losses of a history, whose trials are given as encoded rows ``(n_trials, d)``."""
        return learn_losses(
            history,
            rows,
            rng,
            learn_from=self.learn_from,
            failures=self.failures,
            variance=self.variance,
            cap=self.cap_losses,
        )

    def _climb(
        self, improvement: Score, observed: NDArray[np.float64], decided: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return the distinct ends of climbs from the observations with the largest improvement."""
        starts = observed[best_distinct(self.encoder.keys(observed), -improvement(observed), self.n_local)]
        climbed, values = ascend(self.encoder, starts, improvement, rng, n_draws=_N_DRAWS, excluded=decided)
        climbed = climbed[values > -np.inf]
        return climbed[best_distinct(self.encoder.keys(climbed), np.zeros(len(climbed)), len(climbed))]

    def score(self, candidates: Candidates, history: History, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the value to be minimised over the candidates, shape ``(n_candidates,)``.

        Here it is the negative logarithm of the expected improvement; strategies that search for an ensemble differ
        only in this method.
        """
        return -candidates.log_improvement

    def _is_random(self, history: History, rng: np.random.Generator) -> bool:
        starting = len(history.successes) < self.n_initial and len(history) < 2 * self.n_initial
        return starting or (self.random_fraction > 0 and rng.random() < self.random_fraction)
