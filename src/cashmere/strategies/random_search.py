"""Random search with the same number of trials for every algorithm."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from cashmere.records.trial import History, Suggestion
from cashmere.space.encoding import SpaceEncoder
from cashmere.strategies.shared.drawing import draw_suggestion, draw_suggestions
from cashmere.strategies.shared.search_space import SearchSpace, encoder_of


@dataclass(frozen=True)
class RandomSearch:
    """Choose at random: one of the least used algorithms so far, then its hyper-parameters from the prior.

    Parameters
    ----------
    space : ConfigurationSpace or SpaceEncoder
        The search space. If it has a categorical ``algorithm``, one of its least used choices (observed and pending)
        is drawn uniformly; else the whole prior is used.

    Notes
    -----
    Stratification over algorithms is ours: it only lowers the variance of the uniform choice, so a run with fewer
    trials than algorithms repeats none. A configuration seen before is replaced by a new draw; when a finite space is
    exhausted, a repetition is suggested.

    References
    ----------
    Bergstra and Bengio (2012), Random search for hyper-parameter optimization, JMLR 13.
    """

    space: SearchSpace

    @functools.cached_property
    def encoder(self) -> SpaceEncoder:
        """The compiled space; a cache."""
        return encoder_of(self.space)

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion:
        """Return a random configuration, see `cashmere.protocols.Strategy.suggest`."""
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        return draw_suggestion(self.encoder, decided, rng)

    @property
    def decides_in_batches(self) -> bool:
        """Always."""
        return True

    def suggest_batch(self, history: History, rng: np.random.Generator, n: int) -> list[Suggestion]:
        """Return random configurations, see `cashmere.protocols.BatchStrategy`."""
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        return draw_suggestions(self.encoder, decided, rng, n)
