"""Bayesian optimisation on a latent space shared by all algorithms."""

from __future__ import annotations

import difflib
import functools
from dataclasses import KW_ONLY, dataclass

import numpy as np

from cashmere.acquisition.improvement import log_expected_improvement
from cashmere.acquisition.local_search import maximise_per_algorithm
from cashmere.base.arrays import Float64, FloatArray
from cashmere.exceptions import InvalidParameterError
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Suggestion
from cashmere.strategies.shared.discount import Discount
from cashmere.strategies.shared.drawing import draw_suggestion, first_unseen
from cashmere.strategies.shared.meta_learned import MetaLearned
from cashmere.strategies.shared.option_checks import check_at_least
from cashmere.strategies.shared.scaled_losses import scale_losses
from cashmere.strategies.shared.unvisited import has_unvisited
from cashmere.surrogates.latent import LatentSurrogate
from cashmere.surrogates.latent_space import PretrainedEmbedding

EMBEDDINGS = ("auto", "ranked", "random", "scratch")


@dataclass(frozen=True)
class Latent(MetaLearned):
    """Choose the largest expected improvement under one Gaussian process on a latent space shared by all algorithms.

    A small network per algorithm maps its hyper-parameters into a space of few dimensions, and one multi-task Gaussian
    process predicts losses there, so that the losses of one algorithm help to judge the others. The networks were
    pre-trained on a source table, chosen by a ranking of the sources for the table at hand; only their output layers
    are fitted during the search.

    Parameters
    ----------
    space : ConfigurationSpace
        A space with a categorical ``algorithm``; any other counts as one algorithm.
    n_initial : int
        Random configurations of each algorithm before the first model.
    embedding : str
        Source of the networks: ``"ranked"``, by the artefact's ranking for the table; ``"random"``, drawn with
        `embedding_seed`; ``"scratch"``, networks trained from scratch in every decision; or the name of a source.
        ``"auto"`` is ``"ranked"`` if there is an artefact for the space and the table is known, else
        ``"scratch"``.
    alpha : float
        Penalty for leaving the pre-trained weights (eq. 6), see `LatentSurrogate`.
    n_starts : int
        Starting points per algorithm of the search for the largest improvement.
    embedding_seed : int
        Seed of the random choice of an embedding.
    artefact, meta_features
        See `MetaLearned`.

    Notes
    -----
    - Pending trials enter with the median loss, failed ones with `History.failure_loss`; very bad losses are capped as
      in `BayesianOptimisation`.
    - Each fit starts from the pre-trained weights, not from the last fit, so a decision depends only on the history.
      L-BFGS replaces the paper's Adam.
    - In spaces with operators the learner is the algorithm, and the operators' parameters join its vector.

    References
    ----------
    Ishikawa, Ozaki, Kanzaki, Takeuchi and Karasuyama (2025), Bayesian optimization for simultaneous selection of
    machine learning algorithms and hyperparameters on shared latent space, arXiv:2502.09329.
    """

    _: KW_ONLY
    n_initial: int = 2
    embedding: str = "auto"
    alpha: float = 10.0
    n_starts: int = 10
    embedding_seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, n_initial=1, n_starts=1, alpha=0)
        if self.embedding not in ("auto", "scratch"):
            sources = self.known_artefact.sources
            if self.embedding not in (*EMBEDDINGS, *sources):
                near = difflib.get_close_matches(self.embedding, sources, n=3) or sources[:3]
                named = ", ".join(map(repr, EMBEDDINGS))
                expected = f"{named} or a source of the artefact, such as {', '.join(map(repr, near))}"
                raise InvalidParameterError("embedding", self.embedding, expected)

    @functools.cached_property
    def pretrained(self) -> PretrainedEmbedding | None:
        """The chosen networks; None if they are trained from scratch.

        Raises
        ------
        InvalidParameterError
            If they are to be ranked but the table is unknown, see `known_table`.
        """
        if self.embedding == "scratch" or (self.embedding == "auto" and not self._can_rank):
            return None
        artefact = self.known_artefact
        if self.embedding in artefact.sources:
            source = artefact.sources.index(self.embedding)
        elif self.embedding == "random":
            source = int(np.random.default_rng(self.embedding_seed).integers(len(artefact.sources)))
        else:
            source = int(artefact.rank_embeddings(self.known_table)[0])
        return artefact.embedding(source, self.blocks)

    @property
    def _can_rank(self) -> bool:
        return self.meta_features is not None and self.found_artefact is not None

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion:
        """Return the most promising configuration, see `cashmere.protocols.Strategy.suggest`."""
        encoder = self.blocks.encoder
        decided = encoder.encode(trial.configuration for trial in history.trials)
        if not len(history) or has_unvisited(self.blocks, decided, self.n_initial):
            return draw_suggestion(encoder, decided, rng)
        surrogate, best = self.fit(history, decided, rng)

        discount = Discount.of(history, encoder)

        def score(rows: FloatArray) -> Float64:
            mean, variance = surrogate.predict(self.blocks.tasks(rows), self.blocks.vectors(rows))
            return log_expected_improvement(mean, np.sqrt(variance), best) - discount(rows)

        rows, _ = maximise_per_algorithm(self.blocks, score, decided, rng, n_starts=self.n_starts)
        suggestion = first_unseen(encoder, rows, encoder.keys(decided), origin=Origin(OriginKind.MODEL))
        return suggestion or draw_suggestion(encoder, decided, rng)

    def fit(self, history: History, decided: Float64, rng: np.random.Generator) -> tuple[LatentSurrogate, float]:
        """Fit the surrogate to a history.

        Parameters
        ----------
        history : History
            At least one observation.
        decided : (n_trials, d) array
            Encoded configurations of ``history.trials``.
        rng : numpy.random.Generator
            Draws the initial weights if there is no pre-training.

        Returns
        -------
        LatentSurrogate
            Surrogate of the losses from `scale_losses`.
        float
            The best of these losses.
        """
        losses, best = scale_losses(history)
        liar = np.full(len(history.pending), np.median(losses))
        surrogate = LatentSurrogate(n_algorithms=len(self.blocks.names), pretrained=self.pretrained, alpha=self.alpha)
        tasks, vectors = self.blocks.tasks(decided), self.blocks.vectors(decided)
        return surrogate.fit(tasks, vectors, np.concatenate([losses, liar]), rng), best
