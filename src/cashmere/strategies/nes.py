"""Neural ensemble search by regularised evolution: mutate members of the ensemble of the latest configurations."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import Float64, FloatArray
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Suggestion
from cashmere.space.encoding import SpaceEncoder
from cashmere.space.splitting.groups import operator_choices
from cashmere.strategies.shared.drawing import draw_suggestion, first_unseen
from cashmere.strategies.shared.option_checks import check_at_least
from cashmere.strategies.shared.search_space import SearchSpace, encoder_of
from cashmere.strategies.shared.temporary_pool import select_pool

_N_DRAWS = 4
"""Values of a number to try before another parameter is changed."""


@dataclass(frozen=True)
class NES:
    """Choose a mutation of a member of the ensemble selected from the latest configurations.

    The population is the latest successful trials: each new one replaces the oldest. An ensemble is selected from it,
    one of its members is drawn, and one of its hyper-parameters is changed: regularised evolution. The first trials are
    random, stratified over algorithms.

    Parameters
    ----------
    space : ConfigurationSpace or SpaceEncoder
        The search space.
    population : int
        Trials in the population, at least 2. Trials are random until this many succeeded or twice as many ended.
    ensemble_size : int
        Size of the ensemble whose members may become parents, repetitions included; at least 1.

    Notes
    -----
    - Every distinct member of the ensemble is the parent with equal probability, however often it was picked.
    - With p active hyper-parameters, the choice of an operator (the algorithm, or another choice that others depend on)
      changes with probability 1/p, otherwise one of the rest. Numbers move as in `SpaceEncoder.coordinate_moves`, and
      children that become active take their default. If all results are known already, another parameter is changed.
    - Failed trials are never in the population, and pending ones not yet.
    - If only listed configurations may be drawn, the undecided one nearest to the mutation is taken. The distance is
      the sum over hyper-parameters of differences on the unit scale; it is 1 for unequal choices and where a parameter
      is active in only one of the two.

    References
    ----------
    Zaidi, Zela, Elsken, Holmes, Hutter and Teh (2021), Neural ensemble search for uncertainty estimation and dataset
    shift, NeurIPS: NES-RE. For configurations as in Shen et al. (2022), DivBO: Diversity-aware CASH for ensemble
    learning, NeurIPS.
    """

    space: SearchSpace
    _: KW_ONLY
    population: int = 30
    ensemble_size: int = 25

    def __post_init__(self) -> None:
        check_at_least(self, population=2, ensemble_size=1)

    @functools.cached_property
    def encoder(self) -> SpaceEncoder:
        """The compiled space; a cache."""
        return encoder_of(self.space)

    @functools.cached_property
    def _whole_space(self) -> SpaceEncoder:
        return self.encoder if self.encoder.n_listed is None else SpaceEncoder(self.encoder.space)

    @functools.cached_property
    def _operators(self) -> frozenset[str]:
        return frozenset(operator_choices(self._whole_space.space))

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion:
        """Return a mutation of a parent, see `cashmere.protocols.Strategy.suggest`."""
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        parents = None if self._is_starting(history) else self.parents(history)
        suggestion = None
        if parents is not None:
            suggestion = self._mutate(rng.choice(parents), self.encoder.keys(decided), rng)
        return suggestion or draw_suggestion(self.encoder, decided, rng)

    def parents(self, history: History) -> Float64 | None:
        """Return the encoded configurations of the ensemble selected from the population.

        Parameters
        ----------
        history : History
            The history, with metric and targets.

        Returns
        -------
        (n_members, d) array or None
            Distinct members. None while fewer than two of the population have finite predictions.

        Raises
        ------
        MissingPredictionsError
            If the population lacks predictions, or the history the metric or the targets.
        """
        population = replace(history, observations=history.successes[-self.population :], pending=())
        pool = select_pool(population, self.encoder, size=self.ensemble_size)
        return None if pool is None else pool.rows[pool.members]

    def _is_starting(self, history: History) -> bool:
        return len(history.successes) < self.population and len(history) < 2 * self.population

    def _mutate(self, parent: FloatArray, seen: NDArray[np.uint64], rng: np.random.Generator) -> Suggestion | None:
        """Return a new configuration that differs from the parent in one hyper-parameter; None if there is none."""
        for name in self._order_of_change(parent, rng):
            fixed = [other for other in self._whole_space.names if other != name]
            moved, _ = self._whole_space.coordinate_moves(parent[None], rng, n_draws=_N_DRAWS, fixed=fixed)
            moved = rng.permutation(moved)
            if len(moved) and self.encoder.n_listed is not None:
                moved = self._nearest_listed(moved[0], self.encoder.n_listed, rng)
            suggestion = first_unseen(self.encoder, moved, seen, origin=Origin(OriginKind.MUTATION))
            if suggestion is not None:
                return suggestion
        return None

    def _order_of_change(self, parent: FloatArray, rng: np.random.Generator) -> list[str]:
        """Return the active hyper-parameters in the order in which they are tried."""
        active = np.flatnonzero(self._whole_space.activity(parent[None])[0])
        names = [self._whole_space.names[column] for column in rng.permutation(active)]
        operators_first = bool(names) and rng.random() < 1 / len(names)
        return sorted(names, key=lambda name: (name in self._operators) != operators_first)

    def _nearest_listed(self, row: FloatArray, n_listed: int, rng: np.random.Generator) -> Float64:
        """Return all listed rows, nearest first, ties in random order."""
        listed = self.encoder.sample(n_listed, rng)
        distances = np.minimum(np.abs(listed - row), 1).sum(axis=1)
        return listed[np.argsort(distances, kind="stable")]
