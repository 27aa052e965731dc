"""Gaussian processes around the mean ranks on the sources that agree with the table."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass

import numpy as np

from cashmere.acquisition.improvement import log_expected_improvement
from cashmere.acquisition.local_search import maximise_per_algorithm
from cashmere.base.arrays import Float64, FloatArray
from cashmere.base.threads import one_blas_thread
from cashmere.metalearning.artefact import load_source_observations
from cashmere.metalearning.source_ranks import SourceRanks, best_agreeing, fit_line
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Suggestion
from cashmere.strategies.shared.discount import Discount
from cashmere.strategies.shared.drawing import draw_suggestion, first_unseen
from cashmere.strategies.shared.meta_learned import MetaLearned
from cashmere.strategies.shared.option_checks import check_at_least
from cashmere.strategies.shared.scaled_losses import scale_losses
from cashmere.strategies.shared.unvisited import has_unvisited
from cashmere.surrogates.gaussian_process import GaussianProcessPrior
from cashmere.surrogates.process_per_algorithm import ProcessPerAlgorithm


@dataclass(frozen=True)
class AgreeingSources(MetaLearned):
    """Choose like `bandit_bo`, with processes around the mean rank on the sources that agree best so far.

    Before every decision, the sources are compared with the table at hand: which of them would have ordered the losses
    seen so far alike? The mean rank of a configuration on the best of them, brought to the scale of the losses, is the
    mean of its algorithm's Gaussian process, which then learns only what is different here.

    Parameters
    ----------
    space, artefact, meta_features
        See `MetaLearned`; the meta-features are not used, because losses say more.
    n_initial : int
        Random trials of each algorithm at the start, at least 1.
    n_starts : int
        Starting points of the local search per algorithm, at least 1.
    n_sources : int
        Number of sources that count, at least 1.

    Notes
    -----
    - A line by least squares brings ranks to losses, see `fit_line`; if no source agrees, it is flat.
    - Kernels are those of the artefact. Their variance is that of what the line leaves over, the same for all
      algorithms, since two losses of an algorithm do not tell its own.
    - Ranks of configurations that no source has tried are smoothed from those of their algorithm, see `SourceRanks`.
    - Pending trials count with their predicted loss, failed ones with `History.failure_loss`.

    References
    ----------
    Ours (2026). Processes per algorithm as in Nguyen, Gupta, Rana, Shilton and Venkatesh (2020), Bayesian optimization
    for categorical and category-specific continuous inputs, AAAI 34; sources weighted by how they rank the trials so
    far as in Feurer, Letham, Hutter and Bakshy (2018), Practical transfer learning for Bayesian optimization,
    arXiv:1802.02219.
    """

    _: KW_ONLY
    n_initial: int = 2
    n_starts: int = 10
    n_sources: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, n_initial=1, n_starts=1, n_sources=1)

    @functools.cached_property
    def ranks(self) -> SourceRanks:
        """Ranks on the sources; a cache."""
        sources = self.known_artefact.sources
        return SourceRanks.learn(
            load_source_observations(self.artefact, self.blocks), sources, self.blocks, self.priors
        )

    @functools.cached_property
    def priors(self) -> list[GaussianProcessPrior]:
        """What the artefact knows of each algorithm's losses; a cache."""
        known = self.known_artefact
        return [known.priors[position] for position in known.positions(self.blocks)]

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion:
        """Return the most promising configuration, see `cashmere.protocols.Strategy.suggest`."""
        encoder = self.blocks.encoder
        decided = encoder.encode(trial.configuration for trial in history.trials)
        if len(history) and not has_unvisited(self.blocks, decided, self.n_initial):
            with one_blas_thread():
                rows = self._search(history, decided, rng)
            suggestion = first_unseen(encoder, rows, encoder.keys(decided), origin=Origin(OriginKind.MODEL))
            if suggestion is not None:
                return suggestion
        return draw_suggestion(encoder, decided, rng)

    def _search(self, history: History, decided: Float64, rng: np.random.Generator) -> Float64:
        """Return the best configuration of every algorithm, best first."""
        losses, best = scale_losses(history)
        tasks, vectors = self.blocks.tasks(decided), self.blocks.vectors(decided)
        n = len(losses)
        ranks = self.ranks.predict(tasks[:n], vectors[:n])
        sources = best_agreeing(ranks, losses, self.n_sources)
        expected = ranks[sources].mean(axis=0)
        intercept, slope = fit_line(expected, losses)
        deviations = losses - intercept - slope * expected
        priors = [prior.around_zero(float(deviations.var()) or 1.0) for prior in self.priors]
        processes = ProcessPerAlgorithm(n_dims=self.blocks.n_dims, priors=priors)
        processes.fit(tasks, vectors, deviations)
        discount = Discount.of(history, self.blocks.encoder)

        def score(rows: FloatArray) -> Float64:
            tasks, vectors = self.blocks.tasks(rows), self.blocks.vectors(rows)
            deviation, variance = processes.predict(tasks, vectors)
            mean = intercept + slope * self.ranks.predict(tasks, vectors, sources).mean(axis=0) + deviation
            return log_expected_improvement(mean, np.sqrt(variance), best) - discount(rows)

        rows, _ = maximise_per_algorithm(self.blocks, score, decided, rng, n_starts=self.n_starts)
        return rows
