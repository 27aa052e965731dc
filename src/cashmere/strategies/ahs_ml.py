"""Select algorithm and hyper-parameters by meta-learning alone."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from ConfigSpace import Configuration

from cashmere.base.arrays import Float64
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Suggestion
from cashmere.strategies.shared.drawing import draw_suggestion, first_unseen
from cashmere.strategies.shared.meta_learned import MetaLearned


@dataclass(frozen=True)
class AhsMl(MetaLearned):
    """Choose the next configuration of a list that is ranked for the table by what worked on other tables.

    The list holds the configurations that were among the best hundred on some source table; a ranker orders them by
    the meta-features of the tables. Losses on the table at hand are ignored. After the end of the list, choose at
    random.

    Parameters
    ----------
    space, artefact, meta_features
        See `MetaLearned`.

    References
    ----------
    The baseline AHS-ML of Ishikawa, Ozaki, Kanzaki, Takeuchi and Karasuyama (2025), Bayesian optimization for
    simultaneous selection of machine learning algorithms and hyperparameters on shared latent space, arXiv:2502.09329.
    """

    @functools.cached_property
    def ranked_rows(self) -> Float64:
        """Encoded configurations ``(n, d)``, the most promising first; a cache."""
        artefact, encoder = self.known_artefact, self.blocks.encoder
        names = set(self.blocks.names)
        order = artefact.rank_configurations(self.known_table).tolist()
        listed = [artefact.candidates[i] for i in order]
        listed = [values for values in listed if values.get("algorithm", "all") in names]
        rows = encoder.encode([Configuration(encoder.space, dict(values)) for values in listed])
        drawable = None if encoder.n_listed is None else encoder.enumerate(encoder.n_listed)
        return rows if drawable is None else rows[np.isin(encoder.keys(rows), encoder.keys(drawable))]

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion:
        """Return the next configuration of the list, see `cashmere.protocols.Strategy.suggest`."""
        encoder = self.blocks.encoder
        decided = encoder.encode(trial.configuration for trial in history.trials)
        suggestion = first_unseen(encoder, self.ranked_rows, encoder.keys(decided), origin=Origin(OriginKind.RANKING))
        return suggestion or draw_suggestion(encoder, decided, rng)
