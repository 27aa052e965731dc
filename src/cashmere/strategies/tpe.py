"""Tree-structured Parzen estimators: one density ratio per parameter, operators before their own parameters."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from numpy.typing import NDArray

from cashmere.arrays import BoolArray
from cashmere.exceptions import InvalidParameterError
from cashmere.space.encoding import SpaceEncoder
from cashmere.strategies.random_search import draw_suggestion, first_unseen, make_encoder
from cashmere.surrogates.tpe import (
    SplitRule,
    TruncatedMixture,
    fit_categorical,
    fit_parzen,
    forgetting_weights,
    n_below,
)
from cashmere.trial import History, Suggestion

_N_TRIES = 16
"""Configurations put together before a random one is suggested."""


@dataclass(frozen=True)
class TPE:
    """Decides parameter by parameter for the value that is most typical of good trials, from the ranks of all losses.

    The best few observations are the good ones. For every parameter two densities are estimated from the trials in
    which it was active: l from the good ones, g from the rest. Of some values drawn from l the one with the largest
    l/g is taken, first for parameters without conditions, then for those that thereby become active. The first trials
    are random, stratified over algorithms.

    Parameters
    ----------
    space : ConfigurationSpace
        The search space.
    n_initial : int
        Random trials at the start, failed and pending ones included; the default is hyperopt's.
    n_candidates : int or None
        Values drawn per parameter; None for the larger of 24 and the number of parameters, as in DACOpt.
    gamma, split
        Share of the good observations and its meaning, see `cashmere.surrogates.tpe.n_below`.
    prior_weight : float
        Weight of the prior in every density, positive; an observation has weight 1.
    linear_forgetting : int
        Newest trials of a density that count fully, see `cashmere.surrogates.tpe.forgetting_weights`.
    catalogue : tuple of Configuration, optional
        The only configurations that may be suggested, as for replays of recorded trials. They are ranked by the sum of
        log l - log g over their active parameters.

    Notes
    -----
    - Failed trials are never good. Pending trials belong to the rest, so that parallel decisions keep away from them;
      hyperopt gives both an infinite loss.
    - A configuration that is forbidden or was decided before is put together again, each time from half as many values
      per parameter, so that it is less and less greedy; after 16 attempts a random one is suggested.
    - Integers and ordinals have the mass of their bin of the density, which spans lower - 0.5 to upper + 0.5.
    - The density's prior component is that of a uniform prior, also where the space has another one.

    References
    ----------
    Bergstra, Bardenet, Bengio and Kegl (2011), Algorithms for hyper-parameter optimization, NeurIPS, section 4.
    """

    space: ConfigurationSpace
    _: KW_ONLY
    n_initial: int = 20
    n_candidates: int | None = 24
    gamma: float = 0.25
    split: SplitRule = "sqrt"
    prior_weight: float = 1.0
    linear_forgetting: int = 25
    catalogue: tuple[Configuration, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("n_initial", "n_candidates", "linear_forgetting"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | np.integer) and value >= 1):
                raise InvalidParameterError(name, value, "a whole number, at least 1")
        if not 0 < self.gamma <= 1:
            raise InvalidParameterError("gamma", self.gamma, "in (0, 1]")
        if not self.prior_weight > 0:
            raise InvalidParameterError("prior_weight", self.prior_weight, "positive")
        n_below(1, self.split)

    @functools.cached_property
    def encoder(self) -> SpaceEncoder:
        """The compiled space; a cache."""
        return make_encoder(self.space, self.catalogue)

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion:
        """Return the configuration put together, see `cashmere.protocols.Strategy.suggest`."""
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        if len(decided) < self.n_initial:
            return self.draw_initial(decided, rng)
        densities = self._estimate(history, decided)
        seen = self.encoder.keys(decided)
        if self.catalogue is not None:
            rows = self._rank_catalogue(densities, rng)
            return first_unseen(self.encoder, rows, seen, origin="model") or draw_suggestion(self.encoder, decided, rng)
        n_candidates = self.n_candidates or max(24, self.encoder.n_dims)
        for attempt in range(_N_TRIES):
            row = self._put_together(densities, max(1, n_candidates >> attempt), rng)[None]
            if self.encoder.allowed(row)[0]:
                suggestion = first_unseen(self.encoder, row, seen, origin="model")
                if suggestion is not None:
                    return suggestion
        return draw_suggestion(self.encoder, decided, rng)

    def draw_initial(self, decided: NDArray[np.float64], rng: np.random.Generator) -> Suggestion:
        """Return one of the first configurations, which no density decides.

        Parameters
        ----------
        decided : (n, d) array
            Encoded configurations of all trials so far, fewer than `n_initial`.
        rng : numpy.random.Generator
            Source of randomness.
        """
        return draw_suggestion(self.encoder, decided, rng)

    def _estimate(self, history: History, decided: NDArray[np.float64]) -> ParameterDensities:
        n_good = n_below(len(history), self.split, gamma=self.gamma)
        is_good = np.zeros(len(decided), dtype=np.bool_)
        is_good[best_observations(history, n_good)] = True
        return ParameterDensities(
            self.encoder, decided, is_good, prior_weight=self.prior_weight, linear_forgetting=self.linear_forgetting
        )

    def _put_together(
        self, densities: ParameterDensities, n_candidates: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return an encoded row ``(d,)``, chosen level by level."""
        row = self.encoder.inactive_row()
        for level in self.encoder.levels:
            for column in level[self.encoder.activity(row[None])[0, level]]:
                values = densities.draw(column, n_candidates, rng)
                row[column] = values[np.argmax(densities.log_ratio(column, values))]
        return row

    def _rank_catalogue(self, densities: ParameterDensities, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return all rows of the catalogue, the most promising first, equals in random order."""
        rows = self.encoder.sample(len(self.catalogue or ()), rng)
        active = self.encoder.activity(rows)
        scores = np.zeros(len(rows))
        for column in range(self.encoder.n_dims):
            mask = active[:, column]
            scores[mask] += densities.log_ratio(column, rows[mask, column])
        return rows[np.argsort(-scores, kind="stable")]


class ParameterDensities:
    """Densities of every parameter among the good and the other trials, estimated when first asked for.

    Parameters
    ----------
    encoder : SpaceEncoder
        The space.
    decided : (n, d) array
        Encoded configurations of all trials, in order of time.
    is_good : (n,) bool array
        Which of them are good.
    prior_weight, linear_forgetting
        See `TPE`.
    """

    def __init__(
        self,
        encoder: SpaceEncoder,
        decided: NDArray[np.float64],
        is_good: BoolArray,
        *,
        prior_weight: float,
        linear_forgetting: int,
    ) -> None:
        self._encoder, self._decided, self._is_good = encoder, decided, is_good
        self._active = encoder.activity(decided)
        self._prior_weight, self._linear_forgetting = prior_weight, linear_forgetting
        self._mixtures: dict[int, tuple[TruncatedMixture, TruncatedMixture]] = {}
        self._probabilities: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}

    def draw(self, column: int, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw n encoded values of a parameter from its density among the good trials, shape ``(n,)``."""
        if self._encoder.is_categorical[column]:
            edges = np.cumsum(self._categorical(column)[0])
            return np.searchsorted(edges / edges[-1], rng.random(n), side="right").astype(np.float64)
        positions = self._numeric(column)[0].sample(n, rng)
        return self._encoder.bins(column, positions)[0] if self._encoder.is_integer[column] else positions

    def log_ratio(self, column: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log l - log g at encoded values ``(n,)`` of a parameter, shape ``(n,)``."""
        if self._encoder.is_categorical[column]:
            codes = values.astype(np.int64)
            # A choice without prior may have been tried all the same: its ratio is huge or tiny, not infinite.
            good, rest = (np.maximum(p[codes], np.finfo(np.float64).tiny) for p in self._categorical(column))
            return np.log(good) - np.log(rest)
        below, above = self._numeric(column)
        if self._encoder.is_integer[column]:
            _, lower, upper = self._encoder.bins(column, values)
            return below.log_mass(lower, upper) - above.log_mass(lower, upper)
        return below.log_density(values) - above.log_density(values)

    def _categorical(self, column: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if column not in self._probabilities:
            prior = self._encoder.probabilities(column)
            good, rest = (
                fit_categorical(values.astype(np.int64), weights, prior, prior_weight=self._prior_weight)
                for values, weights in self._observed(column)
            )
            self._probabilities[column] = good, rest
        return self._probabilities[column]

    def _numeric(self, column: int) -> tuple[TruncatedMixture, TruncatedMixture]:
        if column not in self._mixtures:
            good, rest = (
                fit_parzen(values, weights, prior_weight=self._prior_weight)
                for values, weights in self._observed(column)
            )
            self._mixtures[column] = good, rest
        return self._mixtures[column]

    def _observed(self, column: int) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Return values and weights of an active parameter in good trials, then in the others."""
        parts = []
        for is_member in (self._is_good, ~self._is_good):
            values = self._decided[is_member & self._active[:, column], column]
            parts.append((values, forgetting_weights(len(values), n_full=self._linear_forgetting)))
        return parts


def best_observations(history: History, n: int) -> NDArray[np.int64]:
    """Return the positions of the n best successful observations, fewer if there are not so many.

    Equal losses keep their order of time.
    """
    failed = np.array([not observation.succeeded for observation in history], dtype=np.bool_)
    order = np.lexsort([history.losses, failed])
    return order[: min(n, len(history.successes))].astype(np.int64)
