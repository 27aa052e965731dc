"""Fit a Gaussian process to every algorithm, and follow the largest expected improvement."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass

import numpy as np

from cashmere.acquisition.improvement import log_expected_improvement
from cashmere.acquisition.local_search import maximise_per_algorithm
from cashmere.base.arrays import Float64, FloatArray
from cashmere.base.threads import one_blas_thread
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Suggestion
from cashmere.space.encoding import SpaceEncoder
from cashmere.space.encoding.algorithm_blocks import AlgorithmBlocks
from cashmere.strategies.shared.discount import Discount
from cashmere.strategies.shared.drawing import draw_suggestion, first_unseen
from cashmere.strategies.shared.option_checks import check_at_least
from cashmere.strategies.shared.scaled_losses import scale_losses
from cashmere.strategies.shared.search_space import SearchSpace, encoder_of
from cashmere.strategies.shared.unvisited import has_unvisited
from cashmere.surrogates.gaussian_process import GaussianProcessPrior
from cashmere.surrogates.process_per_algorithm import ProcessPerAlgorithm


@dataclass(frozen=True)
class BanditBO:
    """Choose the algorithm with the largest expected improvement, predicted for each from its own losses alone.

    Each algorithm has a Gaussian process over its hyper-parameters. Local search maximises the expected improvement
    over the best loss of all algorithms under each process, and the best of these maxima is taken. The first trials are
    random, the same number for every algorithm.

    Parameters
    ----------
    space : ConfigurationSpace or SpaceEncoder
        The search space; without a categorical ``algorithm`` it is searched with one process.
    n_initial : int
        Random trials of each algorithm at the start, at least 1.
    n_starts : int
        Starting points of the local search per algorithm, at least 1.
    cap_losses : bool
        Treat very bad losses as equally bad, see `scale_losses`.
    priors : tuple of GaussianProcessPrior, optional
        Priors of each algorithm's standardised losses, instead of priors fitted to the observed losses; for
        `PretrainBO`.

    Notes
    -----
    - Nguyen et al. choose the algorithm by Thompson sampling; the largest expected improvement is the form in which the
      method is compared with a shared latent space (docs/papers/latent.md#banditbo).
    - Pending trials count with their predicted loss. Failed trials enter with `History.failure_loss`.
    - It is meant for few hyper-parameters per algorithm. Choices are one-hot coordinates, and inactive parameters have
      their defaults, see `AlgorithmBlocks`.

    References
    ----------
    Nguyen, Gupta, Rana, Shilton and Venkatesh (2020), Bayesian optimization for categorical and category-specific
    continuous inputs, AAAI 34.
    """

    space: SearchSpace
    _: KW_ONLY
    n_initial: int = 2
    n_starts: int = 10
    cap_losses: bool = True
    priors: tuple[GaussianProcessPrior, ...] | None = None

    def __post_init__(self) -> None:
        check_at_least(self, n_initial=1, n_starts=1)

    @functools.cached_property
    def encoder(self) -> SpaceEncoder:
        """The compiled space; a cache."""
        return encoder_of(self.space)

    @functools.cached_property
    def blocks(self) -> AlgorithmBlocks:
        """The space as a set of algorithms; a cache."""
        return AlgorithmBlocks(self.encoder)

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion:
        """Return the most promising configuration, see `cashmere.protocols.Strategy.suggest`."""
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        if len(history) and not has_unvisited(self.blocks, decided, self.n_initial):
            with one_blas_thread():
                rows = self._search(history, decided, rng)
            suggestion = first_unseen(self.encoder, rows, self.encoder.keys(decided), origin=Origin(OriginKind.MODEL))
            if suggestion is not None:
                return suggestion
        return draw_suggestion(self.encoder, decided, rng)

    def _search(self, history: History, decided: Float64, rng: np.random.Generator) -> Float64:
        """Return the best configuration of every algorithm, best first."""
        losses, best = scale_losses(history, cap=self.cap_losses)
        if self.priors is not None:
            centre, scale = losses.mean(), losses.std() or 1.0
            losses, best = (losses - centre) / scale, (best - centre) / scale
        processes = ProcessPerAlgorithm(n_dims=self.blocks.n_dims, priors=self.priors)
        processes.fit(self.blocks.tasks(decided), self.blocks.vectors(decided), losses)
        discount = Discount.of(history, self.encoder)

        def score(rows: FloatArray) -> Float64:
            mean, variance = processes.predict(self.blocks.tasks(rows), self.blocks.vectors(rows))
            return log_expected_improvement(mean, np.sqrt(variance), best) - discount(rows)

        rows, _ = maximise_per_algorithm(self.blocks, score, decided, rng, n_starts=self.n_starts)
        return rows
