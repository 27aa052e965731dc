"""Tree-structured Parzen estimators: density ratios of parameters, operators before their own parameters."""

from __future__ import annotations

import functools
from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cashmere.base.arrays import Float64
from cashmere.exceptions import InvalidParameterError
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import History, Suggestion
from cashmere.space.encoding import SpaceEncoder
from cashmere.strategies.shared.discount import Discount
from cashmere.strategies.shared.drawing import draw_suggestion, first_unseen
from cashmere.strategies.shared.option_checks import check_positive
from cashmere.strategies.shared.parzen_densities import (
    Densities,
    Groups,
    IndependentDensities,
    JointDensities,
    SplitTrials,
    parameter_groups,
    single_parameters,
)
from cashmere.strategies.shared.search_space import SearchSpace, encoder_of
from cashmere.surrogates.tpe import SplitRule, n_below

Density = Literal["joint", "independent"]
"""Which densities are estimated: of parameters that are active together, or of each parameter alone."""

_SPLITS: dict[Density, SplitRule] = {"joint": "linear", "independent": "sqrt"}

_N_DRAWN = 12
"""Configurations drawn from the density of good trials when cost counts."""

_N_TRIES = 16
"""Configurations assembled before a random one is suggested."""


@dataclass(frozen=True)
class TPE:
    """Choose values that are typical of good trials and not of the rest, from the ranks of all losses.

    The best few observations are the good ones. For parameters that are active together, two densities are estimated
    from the trials in which they were active: l from the good ones, g from the rest. Among some points drawn from l,
    the one with the largest l/g is taken, first for parameters without conditions, then for those that thereby become
    active. The first trials are random, stratified over algorithms.

    Parameters
    ----------
    space : ConfigurationSpace or SpaceEncoder
        The search space.
    density : {"joint", "independent"}
        Choose parameters under the same condition together, by a joint density, as Optuna does; or one after the other,
        by separate densities, as hyperopt does.
    n_initial : int
        Random trials at the start, failed and pending ones included; the default is hyperopt's.
    n_candidates : int or None
        Points drawn per decision; None for the larger of 24 and the number of parameters, as in DACOpt.
    gamma, split
        Share of the good observations and its meaning, see `cashmere.surrogates.tpe.n_below`. None for the usual
        values: a tenth of the observations but at most 25, or, for independent densities, a quarter of the root of
        their number.
    prior_weight : float
        Weight of the prior in every density, positive; an observation has weight 1.
    linear_forgetting : int
        Newest trials of a density that count fully, see `cashmere.surrogates.tpe.forgetting_weights`.

    Notes
    -----
    - Failed trials are never good. Pending trials belong to the rest, so that parallel decisions avoid them; hyperopt
      gives both an infinite loss.
    - A configuration that is forbidden or was decided before is assembled again, each time from half as many points per
      decision, so that it is less and less greedy; after 16 attempts a random one is suggested.
    - Integers and ordinals have the mass of their bin of the density, which spans lower - 0.5 to upper + 0.5.
    - If only listed configurations may be drawn, they are ranked by the sum of log l - log g over their active
      parameters.
    - The prior component of a number's density is that of a uniform prior, even if the space has another one.
    - Parameters under the same condition are the groups that Optuna finds in the trials with its option ``group``;
      without it, Optuna treats only the parameters that are always active jointly, and the others one by one.

    References
    ----------
    Bergstra, Bardenet, Bengio and Kegl (2011), Algorithms for hyper-parameter optimization, NeurIPS, section 4; for the
    joint density Watanabe (2023), Tree-structured Parzen estimator: understanding its algorithm components and their
    roles for better empirical performance, arXiv:2304.11127.
    """

    space: SearchSpace
    _: KW_ONLY
    density: Density = "joint"
    n_initial: int = 20
    n_candidates: int | None = 24
    gamma: float | None = None
    split: SplitRule | None = None
    prior_weight: float = 1.0
    linear_forgetting: int = 25

    def __post_init__(self) -> None:
        if self.density not in get_args(Density):
            raise InvalidParameterError("density", self.density, "'joint' or 'independent'")
        for name in ("n_initial", "n_candidates", "linear_forgetting"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | np.integer) and value >= 1):
                raise InvalidParameterError(name, value, "a whole number of at least 1")
        if self.gamma is not None and not 0 < self.gamma <= 1:
            raise InvalidParameterError("gamma", self.gamma, "in (0, 1]")
        check_positive(self, "prior_weight")
        self._n_good(1)

    @functools.cached_property
    def encoder(self) -> SpaceEncoder:
        """The compiled space; a cache."""
        return encoder_of(self.space)

    @functools.cached_property
    def groups(self) -> Groups:
        """The parameters decided together; a cache."""
        return (parameter_groups if self.density == "joint" else single_parameters)(self.encoder)

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion:
        """Return the assembled configuration, see `cashmere.protocols.Strategy.suggest`."""
        decided = self.encoder.encode(trial.configuration for trial in history.trials)
        if len(decided) < self.n_initial:
            return self.draw_initial(decided, rng)
        densities, discount = self._estimate(history, decided), Discount.of(history, self.encoder)
        seen = self.encoder.keys(decided)
        if self.encoder.n_listed is not None:
            rows = self.encoder.sample(self.encoder.n_listed, rng)
            rows = rows[np.argsort(-self._log_ratio(densities, rows) + discount(rows), kind="stable")]
            suggestion = first_unseen(self.encoder, rows, seen, origin=Origin(OriginKind.MODEL))
            return suggestion or draw_suggestion(self.encoder, decided, rng)
        n_candidates = self.n_candidates or max(24, self.encoder.n_dims)
        for attempt in range(_N_TRIES):
            # One by the largest l/g at each step; if cost counts, others drawn from l, to choose among.
            n_points = [max(1, n_candidates >> attempt), *([1] * _N_DRAWN if discount.counts else [])]
            rows = np.stack([self._put_together(densities, n, rng) for n in n_points])
            rows = rows[self.encoder.allowed(rows)]
            if len(rows) > 1:
                rows = rows[np.argsort(-self._log_ratio(densities, rows) + discount(rows), kind="stable")]
            suggestion = first_unseen(self.encoder, rows, seen, origin=Origin(OriginKind.MODEL))
            if suggestion is not None:
                return suggestion
        return draw_suggestion(self.encoder, decided, rng)

    def draw_initial(self, decided: Float64, rng: np.random.Generator) -> Suggestion:
        """Return one of the first configurations, which no density chooses.

        Parameters
        ----------
        decided : (n, d) array
            Encoded configurations of all trials so far, fewer than `n_initial`.
        rng : numpy.random.Generator
            Source of randomness.
        """
        return draw_suggestion(self.encoder, decided, rng)

    def _n_good(self, n: int) -> int:
        return n_below(n, _SPLITS[self.density] if self.split is None else self.split, gamma=self.gamma)

    def _estimate(self, history: History, decided: Float64) -> Densities:
        is_good = np.zeros(len(decided), dtype=np.bool_)
        is_good[best_observations(history, self._n_good(len(history)))] = True
        trials = SplitTrials(self.encoder, decided, is_good, self.linear_forgetting)
        estimate = JointDensities if self.density == "joint" else IndependentDensities
        return estimate(trials, prior_weight=self.prior_weight)

    def _put_together(self, densities: Densities, n_candidates: int, rng: np.random.Generator) -> Float64:
        """Return an encoded row ``(d,)``, chosen level by level."""
        row = self.encoder.inactive_row()
        for level in self.groups:
            active = self.encoder.activity(row[None])[0]
            for columns in level:
                if active[columns[0]]:
                    values = densities.draw(columns, n_candidates, rng)
                    row[columns] = values[np.argmax(densities.log_ratio(columns, values))]
        return row

    def _log_ratio(self, densities: Densities, rows: Float64) -> Float64:
        """Return the sum of log l - log g over the active parameters of encoded rows, shape ``(n,)``."""
        active = self.encoder.activity(rows)
        scores = np.zeros(len(rows))
        for columns in (columns for level in self.groups for columns in level):
            mask = active[:, columns[0]]
            scores[mask] += densities.log_ratio(columns, rows[mask][:, columns])
        return scores


def best_observations(history: History, n: int) -> NDArray[np.int64]:
    """Return the positions of the n best successful observations, or of all if there are fewer.

    Equal losses keep their chronological order.
    """
    failed = np.array([not observation.succeeded for observation in history], dtype=np.bool_)
    order = np.lexsort([history.losses, failed])
    return order[: min(n, len(history.successes))].astype(np.int64)
