"""Densities of a space's parameters among good and other trials, for tree-structured Parzen estimators."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from ConfigSpace import InCondition
from ConfigSpace.conditions import ConditionLike, Conjunction

from cashmere.base.arrays import BoolArray, Float64, IntArray
from cashmere.space.encoding import SpaceEncoder
from cashmere.surrogates.joint_density import JointDensity, fit_joint
from cashmere.surrogates.tpe import TruncatedMixture, fit_categorical, fit_parzen, forgetting_weights

Groups = tuple[tuple[IntArray, ...], ...]
"""For each level of an encoder, the columns decided together; either all columns of a group are active, or none."""


class Densities(Protocol):
    """Densities of groups of parameters: l among the good trials, g among the rest."""

    def draw(self, columns: IntArray, n: int, rng: np.random.Generator) -> Float64:
        """Draw n points from the density l of a group of c parameters, encoded, shape ``(n, c)``."""
        ...

    def log_ratio(self, columns: IntArray, values: Float64) -> Float64:
        """Return log l - log g at encoded points ``(n, c)`` of a group, shape ``(n,)``."""
        ...


@dataclass(frozen=True, eq=False)
class SplitTrials:
    """Trials, divided into good ones and the rest.

    Attributes
    ----------
    encoder : SpaceEncoder
        The space.
    decided : (n, d) array
        Encoded configurations of all trials, in chronological order.
    is_good : (n,) bool array
        Which of them are good.
    linear_forgetting : int
        See `cashmere.strategies.TPE`.
    """

    encoder: SpaceEncoder
    decided: Float64
    is_good: BoolArray
    linear_forgetting: int

    @functools.cached_property
    def _active(self) -> BoolArray:
        return self.encoder.activity(self.decided)

    def observed(self, columns: IntArray) -> Iterable[tuple[Float64, Float64]]:
        """Yield values ``(m, c)`` and weights ``(m,)`` of a group where it was active: in good trials, in the rest."""
        for is_member in (self.is_good, ~self.is_good):
            values = self.decided[is_member & self._active[:, columns[0]]][:, columns]
            yield values, forgetting_weights(len(values), n_full=self.linear_forgetting)


class IndependentDensities:
    """Densities of single parameters by hyperopt's rules, multiplied; see `Densities`.

    Parameters
    ----------
    trials : SplitTrials
        The trials to estimate them from, on first use.
    prior_weight : float
        See `cashmere.strategies.TPE`.
    """

    def __init__(self, trials: SplitTrials, *, prior_weight: float) -> None:
        self._encoder, self._trials, self._prior_weight = trials.encoder, trials, prior_weight
        self._mixtures: dict[int, tuple[TruncatedMixture, TruncatedMixture]] = {}
        self._probabilities: dict[int, tuple[Float64, Float64]] = {}

    def draw(self, columns: IntArray, n: int, rng: np.random.Generator) -> Float64:
        """Draw points, see `Densities.draw`."""
        return np.stack([self._draw(column, n, rng) for column in columns], axis=1)

    def log_ratio(self, columns: IntArray, values: Float64) -> Float64:
        """Return log l - log g, see `Densities.log_ratio`."""
        ratios = [self._log_ratio(column, part) for column, part in zip(columns, values.T, strict=True)]
        total: Float64 = np.sum(ratios, axis=0)
        return total

    def _draw(self, column: int, n: int, rng: np.random.Generator) -> Float64:
        if self._encoder.is_categorical[column]:
            edges = np.cumsum(self._categorical(column)[0])
            return np.searchsorted(edges / edges[-1], rng.random(n), side="right").astype(np.float64)
        positions = self._numeric(column)[0].sample(n, rng)
        return self._encoder.bins(column, positions)[0] if self._encoder.is_integer[column] else positions

    def _log_ratio(self, column: int, values: Float64) -> Float64:
        if self._encoder.is_categorical[column]:
            codes = values.astype(np.int64)
            # A choice without prior may still have been tried: its ratio is huge or tiny, not infinite.
            good, rest = (np.maximum(p[codes], np.finfo(np.float64).tiny) for p in self._categorical(column))
            return np.log(good) - np.log(rest)
        below, above = self._numeric(column)
        if self._encoder.is_integer[column]:
            _, lower, upper = self._encoder.bins(column, values)
            return below.log_mass(lower, upper) - above.log_mass(lower, upper)
        return below.log_density(values) - above.log_density(values)

    def _categorical(self, column: int) -> tuple[Float64, Float64]:
        if column not in self._probabilities:
            prior = self._encoder.probabilities(column)
            good, rest = (
                fit_categorical(values[:, 0].astype(np.int64), weights, prior, prior_weight=self._prior_weight)
                for values, weights in self._trials.observed(np.array([column]))
            )
            self._probabilities[column] = good, rest
        return self._probabilities[column]

    def _numeric(self, column: int) -> tuple[TruncatedMixture, TruncatedMixture]:
        if column not in self._mixtures:
            good, rest = (
                fit_parzen(values[:, 0], weights, prior_weight=self._prior_weight)
                for values, weights in self._trials.observed(np.array([column]))
            )
            self._mixtures[column] = good, rest
        return self._mixtures[column]


class JointDensities:
    """Joint densities of the parameters of a group by Optuna's rules; see `Densities`.

    Parameters
    ----------
    trials : SplitTrials
        The trials to estimate them from, on first use.
    prior_weight : float
        See `cashmere.strategies.TPE`.
    """

    def __init__(self, trials: SplitTrials, *, prior_weight: float) -> None:
        self._encoder, self._trials, self._prior_weight = trials.encoder, trials, prior_weight
        self._densities: dict[tuple[int, ...], tuple[JointDensity, JointDensity]] = {}

    def draw(self, columns: IntArray, n: int, rng: np.random.Generator) -> Float64:
        """Draw points, see `Densities.draw`."""
        is_choice = self._encoder.is_categorical[columns]
        values = np.empty((n, len(columns)))
        values[:, ~is_choice], values[:, is_choice] = self._pair(columns)[0].sample(n, rng)
        for j in np.flatnonzero(self._encoder.is_integer[columns]):
            values[:, j] = self._encoder.bins(columns[j], values[:, j])[0]
        return values

    def log_ratio(self, columns: IntArray, values: Float64) -> Float64:
        """Return log l - log g, see `Densities.log_ratio`."""
        is_choice = self._encoder.is_categorical[columns]
        lower, upper = values.copy(), values.copy()
        for j in np.flatnonzero(self._encoder.is_integer[columns]):
            lower[:, j], upper[:, j] = self._encoder.bins(columns[j], values[:, j])[1:]
        codes = values[:, is_choice].astype(np.int64)
        good, rest = (
            density.log_density(lower[:, ~is_choice], upper[:, ~is_choice], codes) for density in self._pair(columns)
        )
        return good - rest

    def _pair(self, columns: IntArray) -> tuple[JointDensity, JointDensity]:
        key = tuple(columns.tolist())
        if key not in self._densities:
            is_choice = self._encoder.is_categorical[columns]
            priors = [self._encoder.probabilities(column) for column in columns[is_choice]]
            good, rest = (
                fit_joint(
                    values[:, ~is_choice],
                    values[:, is_choice].astype(np.int64),
                    weights,
                    priors,
                    prior_weight=self._prior_weight,
                )
                for values, weights in self._trials.observed(columns)
            )
            self._densities[key] = good, rest
        return self._densities[key]


def single_parameters(encoder: SpaceEncoder) -> Groups:
    """Return groups of one parameter each."""
    return tuple(tuple(level[:, None]) for level in encoder.levels)


def parameter_groups(encoder: SpaceEncoder) -> Groups:
    """Return groups of all parameters that are active under the same condition.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace, EqualsCondition
    >>> space = ConfigurationSpace({"a": ["svm", "tree"], "b": (0.0, 1.0), "cost": (0.1, 9.0), "width": (0.1, 9.0)})
    >>> space.add([EqualsCondition(space[name], space["a"], "svm") for name in ("cost", "width")])
    >>> encoder = SpaceEncoder(space)
    >>> [[encoder.names[column] for column in group] for level in parameter_groups(encoder) for group in level]
    [['a', 'b'], ['cost', 'width']]
    """
    levels = []
    for level in encoder.levels:
        groups: dict[Hashable, list[int]] = {}
        for column in level:
            conditions = encoder.space.parent_conditions_of[encoder.names[column]]
            groups.setdefault(frozenset(map(_asked_for, conditions)), []).append(column)
        levels.append(tuple(np.array(columns, dtype=np.int64) for columns in groups.values()))
    return tuple(levels)


def _asked_for(condition: ConditionLike) -> Hashable:
    """Return what a condition requires, regardless of the parameter that it activates."""
    if isinstance(condition, Conjunction):
        return type(condition), frozenset(map(_asked_for, condition.components))
    values: Any = condition.values if isinstance(condition, InCondition) else [condition.value]
    return type(condition), condition.parent.name, str(list(values))
