"""Choose the algorithm by meta-learning and its hyper-parameters by Bayesian optimisation."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass

import numpy as np

from cashmere.acquisition.improvement import log_expected_improvement
from cashmere.acquisition.local_search import maximise_per_algorithm
from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Suggestion
from cashmere.strategies.shared.discount import Discount
from cashmere.strategies.shared.drawing import draw_suggestion, first_unseen
from cashmere.strategies.shared.meta_learned import MetaLearned
from cashmere.strategies.shared.option_checks import check_at_least
from cashmere.strategies.shared.scaled_losses import scale_losses
from cashmere.surrogates.gaussian_process import GaussianProcess

_N_DRAWS = 32


@dataclass(frozen=True)
class AsMl(MetaLearned):
    """Choose the algorithm ranked first for the table, and search only its hyper-parameters.

    A ranker orders the algorithms by the meta-features of the tables. The first one is searched by expected improvement
    under a Gaussian process; the next one only when the first has no new configuration left.

    Parameters
    ----------
    space, artefact, meta_features
        See `MetaLearned`.
    n_initial : int
        Random trials of the algorithm before the first model, at least 1.
    n_starts : int
        Starting points of the local search, at least 1.

    References
    ----------
    The baseline AS-ML of Ishikawa, Ozaki, Kanzaki, Takeuchi and Karasuyama (2025), Bayesian optimization for
    simultaneous selection of machine learning algorithms and hyperparameters on shared latent space, arXiv:2502.09329.
    """

    _: KW_ONLY
    n_initial: int = 2
    n_starts: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, n_initial=1, n_starts=1)

    @functools.cached_property
    def ranked_algorithms(self) -> IntArray:
        """Positions in ``blocks.names``, the most promising first; a cache."""
        ranking = self.known_artefact.rank_algorithms(self.known_table, self.blocks)
        return ranking[np.isin(ranking, self.blocks.drawable)]

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion:
        """Return the most promising configuration, see `cashmere.protocols.Strategy.suggest`."""
        encoder = self.blocks.encoder
        decided = encoder.encode(trial.configuration for trial in history.trials)
        seen = encoder.keys(decided)
        for task in self.ranked_algorithms.tolist():
            rows = self._promising(history, decided, task, rng)
            suggestion = first_unseen(encoder, rows, seen, origin=Origin(OriginKind.MODEL))
            if suggestion is None:
                drawn = encoder.sample(_N_DRAWS, rng, fixed=self.blocks.fixed(task), max_tries=20)
                suggestion = first_unseen(encoder, drawn, seen, origin=Origin(OriginKind.RANDOM))
            if suggestion is not None:
                return suggestion
        return draw_suggestion(encoder, decided, rng)

    def _promising(self, history: History, decided: Float64, task: int, rng: np.random.Generator) -> Float64:
        """Return the best new configuration of an algorithm, shape ``(1, d)``; no row before the first model."""
        own = np.flatnonzero(self.blocks.tasks(decided) == task)
        observed = own[own < len(history)]
        if len(observed) < self.n_initial:
            return decided[:0]
        losses, _ = scale_losses(history)
        n_dims = self.blocks.n_dims[task]
        vectors = self.blocks.vectors(decided)[:, :n_dims]
        process = GaussianProcess().fit(vectors[observed], losses[observed])
        if len(observed) < len(own):
            process = process.imagine(vectors[own[len(observed) :]])
        best = float(losses[observed].min())

        discount = Discount.of(history, self.blocks.encoder)

        def score(rows: FloatArray) -> Float64:
            mean, variance = process.predict(self.blocks.vectors(rows)[:, :n_dims])
            return log_expected_improvement(mean, np.sqrt(variance), best) - discount(rows)

        rows, _ = maximise_per_algorithm(
            self.blocks, score, decided, rng, n_starts=self.n_starts, algorithms=np.array([task])
        )
        return rows
