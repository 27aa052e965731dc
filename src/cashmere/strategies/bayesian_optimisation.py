"""Bayesian optimisation with a random forest and expected improvement."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cashmere.acquisition.diversity import order_by_ranks
from cashmere.acquisition.improvement import log_expected_improvement
from cashmere.acquisition.local_search import Score, ascend
from cashmere.acquisition.maximise import best_distinct, draw_candidates
from cashmere.base.arrays import Float64, FloatArray
from cashmere.exceptions import InvalidParameterError
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Suggestion, Trial
from cashmere.space.encoding import SpaceEncoder
from cashmere.strategies.shared.candidates import Candidates
from cashmere.strategies.shared.discount import Discount
from cashmere.strategies.shared.drawing import draw_suggestion, draw_suggestions, first_unseen
from cashmere.strategies.shared.loss_model import LearnFrom, LossModel, learn_losses
from cashmere.strategies.shared.option_checks import check_at_least
from cashmere.strategies.shared.scaled_losses import Failures
from cashmere.strategies.shared.search_space import SearchSpace, encoder_of
from cashmere.surrogates.forest import ProbabilisticForest, Variance

Local = Literal["neighbours", "climbs"]

Scorer = Callable[[FloatArray], Float64]
"""Maps the logarithm of the expected improvement of candidates to the values to minimise over them."""

_N_DRAWS = 4
"""Values tried per number in one step of a climb, as in SMAC and OpenBox."""


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
    - Decisions that are taken together (`suggest_batch`) share the forest and the candidates. Each enters with the
      median loss, but only into the leaves that it falls into: trees are not grown again before the next batch.
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
        check_at_least(self, n_initial=1, n_global=1, n_local=0)
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

    @property
    def decides_in_batches(self) -> bool:
        """Whether losses alone are learned from: only `ProbabilisticForest` can count further configurations."""
        return self.learn_from == "losses"

    def suggest_batch(self, history: History, rng: np.random.Generator, n: int) -> list[Suggestion]:
        """Return the next n decisions from one look at the history, see `cashmere.protocols.BatchStrategy`.

        The number of random ones is drawn, and they come first.
        """
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        if self._is_starting(history):
            return draw_suggestions(self.encoder, decided, rng, n)
        drawn = draw_suggestions(self.encoder, decided, rng, int(rng.binomial(n, self.random_fraction)))
        history = _with_pending(history, drawn)
        chosen = self._choose_together(history, rng, n - len(drawn))
        decided = self.encoder.encode(trial.configuration for trial in _with_pending(history, chosen).trials)
        return [*drawn, *chosen, *draw_suggestions(self.encoder, decided, rng, n - len(drawn) - len(chosen))]

    def _choose_together(self, history: History, rng: np.random.Generator, n: int) -> list[Suggestion]:
        """Choose n of the candidates one after the other, fewer if they are exhausted."""
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        model, discount = self.learn(history, decided, rng), Discount.of(history, self.encoder)
        forest, rows = model.surrogate, self._draw_rows(model, discount, history, decided, rng)
        assert isinstance(forest, ProbabilisticForest)
        if not len(rows):
            return []
        scorer, seen = self.scorer(rows, history, rng), set(self.encoder.keys(decided).tolist())
        leaves, unchanging = forest.leaves(rows), model.log_success(rows) - discount(rows)
        suggestions: list[Suggestion] = []
        is_left = np.ones(len(rows), dtype=np.bool_)
        while len(suggestions) < n:
            mean, variance = forest.moments(leaves)
            improvement = log_expected_improvement(mean, np.sqrt(variance), model.best) + unchanging
            order = order_by_ranks(scorer(improvement), improvement, rng)
            chosen = self._first_unseen(rows, order[is_left[order]], seen)
            if chosen is None:
                break
            position, suggestion = chosen
            suggestions.append(suggestion)
            is_left[position] = False
            forest.count(leaves[:, position], model.liar)
        return suggestions

    def _first_unseen(self, rows: Float64, order: NDArray[np.intp], seen: set[int]) -> tuple[int, Suggestion] | None:
        """Return the position of the first new candidate and its suggestion, and add it to those seen."""
        for position in order.tolist():
            configuration = self.encoder.decode(rows[position])
            # ConfigSpace rounds floats, so a new row may become a known configuration.
            key = int(self.encoder.keys(self.encoder.encode([configuration]))[0])
            if key not in seen:
                seen.add(key)
                return position, Suggestion(configuration=configuration, origin=Origin(OriginKind.MODEL))
        return None

    def draw_candidates(self, history: History, decided: Float64, rng: np.random.Generator) -> Candidates:
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
        model, discount = self.learn(history, decided, rng), Discount.of(history, self.encoder)
        rows = self._draw_rows(model, discount, history, decided, rng)
        improvement = model.log_improvement(rows) - discount(rows) if len(rows) else np.empty(0)
        return Candidates(rows=rows, log_improvement=improvement)

    def _draw_rows(
        self,
        model: LossModel,
        discount: Discount,
        history: History,
        decided: Float64,
        rng: np.random.Generator,
    ) -> Float64:
        """Return encoded candidates, see `draw_candidates`."""

        def improvement(rows: Float64) -> Float64:
            return model.log_improvement(rows) - discount(rows)

        observed, n_local = decided[: len(history)], self.n_local
        excluded = decided[len(history) :]
        climbed = np.empty((0, self.encoder.n_dims))
        if self.local == "climbs":
            climbed, n_local = self._climb(improvement, observed, decided, rng), 0
            excluded = np.concatenate([excluded, climbed])
        rows = draw_candidates(
            self.encoder, observed, model.losses, rng, n_global=self.n_global, n_local=n_local, excluded=excluded
        )
        return np.concatenate([climbed, rows])

    def learn(self, history: History, rows: Float64, rng: np.random.Generator) -> LossModel:
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

    def _climb(self, improvement: Score, observed: Float64, decided: Float64, rng: np.random.Generator) -> Float64:
        """Return the distinct ends of climbs from the observations with the largest improvement."""
        starts = observed[best_distinct(self.encoder.keys(observed), -improvement(observed), self.n_local)]
        climbed, values = ascend(self.encoder, starts, improvement, rng, n_draws=_N_DRAWS, excluded=decided)
        climbed = climbed[values > -np.inf]
        return climbed[best_distinct(self.encoder.keys(climbed), np.zeros(len(climbed)), len(climbed))]

    def score(self, candidates: Candidates, history: History, rng: np.random.Generator) -> Float64:
        """Return the value to be minimised over the candidates, shape ``(n_candidates,)``.

        Here it is the negative logarithm of the expected improvement, see `scorer`.
        """
        return self.scorer(candidates.rows, history, rng)(candidates.log_improvement)

    def scorer(self, rows: FloatArray, history: History, rng: np.random.Generator) -> Scorer:
        """Return the function that scores encoded candidates ``(n_candidates, d)`` by their expected improvement.

        Strategies that search for an ensemble differ only in this method.
        """
        return np.negative

    def _is_random(self, history: History, rng: np.random.Generator) -> bool:
        return self._is_starting(history) or (self.random_fraction > 0 and rng.random() < self.random_fraction)

    def _is_starting(self, history: History) -> bool:
        return len(history.successes) < self.n_initial and len(history) < 2 * self.n_initial


def _with_pending(history: History, suggestions: Sequence[Suggestion]) -> History:
    """Return the history with suggestions as further pending trials."""
    first = len(history.trials)
    taken = [Trial(number=first + i, configuration=s.configuration, seed=0) for i, s in enumerate(suggestions)]
    return replace(history, pending=(*history.pending, *taken))
