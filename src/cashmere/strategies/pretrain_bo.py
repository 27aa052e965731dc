"""Gaussian processes whose priors were learned on other tables."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass

import numpy as np

from cashmere.records.trial import History, Suggestion
from cashmere.strategies.bandit_bo import BanditBO
from cashmere.strategies.shared.meta_learned import MetaLearned
from cashmere.strategies.shared.option_checks import check_at_least


@dataclass(frozen=True)
class PretrainBO(MetaLearned):
    """Choose like `bandit_bo`, with the mean and kernel of each algorithm's process learned from other tables.

    Parameters
    ----------
    space, artefact, meta_features
        See `MetaLearned`; the meta-features are not used.
    n_initial, n_starts : int
        See `BanditBO`.

    Notes
    -----
    The priors are for standardised losses; losses on the table at hand are standardised over all algorithms together.

    References
    ----------
    Wang, Dahl, Swersky, Lee, Nado, Gilmer, Snoek and Ghahramani (2024), Pre-trained Gaussian processes for Bayesian
    optimization, JMLR 25; for each algorithm as in Ishikawa et al. (2025), arXiv:2502.09329.
    """

    _: KW_ONLY
    n_initial: int = 2
    n_starts: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, n_initial=1, n_starts=1)

    @functools.cached_property
    def search(self) -> BanditBO:
        """The strategy that decides; a cache."""
        known = self.known_artefact
        return BanditBO(
            self.space,
            n_initial=self.n_initial,
            n_starts=self.n_starts,
            priors=tuple(known.priors[position] for position in known.positions(self.blocks)),
        )

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion:
        """Return the most promising configuration, see `cashmere.protocols.Strategy.suggest`."""
        return self.search.suggest(history, rng)
