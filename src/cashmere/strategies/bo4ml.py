"""Parzen estimators that start from combinations of groups of operators: the inner optimiser of DACOpt."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, get_args

import numpy as np
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace
from ConfigSpace.conditions import ConditionLike, Conjunction

from cashmere.base.arrays import Float64, IntArray
from cashmere.exceptions import InvalidParameterError
from cashmere.records.origin import Origin, OriginKind
from cashmere.records.trial import Suggestion
from cashmere.space.splitting.groups import SubspacePart, operator_choices, split
from cashmere.strategies.shared.drawing import draw_suggestion, first_unseen
from cashmere.strategies.shared.option_checks import check_at_least
from cashmere.strategies.tpe import TPE, Density

Weight = Literal["uniform", "n_params"]
"""How often an algorithm is drawn at the start: as often as the others, or in proportion to its size."""

_N_COMBINATIONS = 32
"""Choices of all operators tried before the start-up gives up on a combination of groups."""


@dataclass(frozen=True)
class BO4ML(TPE):
    """Choose like `tpe`, after initial trials spread over groups of algorithms of all operators.

    The space is cut into `n_initial` combinations of groups, which together hold every algorithm of every operator.
    Each of the initial trials takes another combination, draws for every operator an algorithm from its group, and
    draws all other parameters from the prior.

    Parameters
    ----------
    space, gamma, split, prior_weight, linear_forgetting
        See `TPE`.
    density : {"independent", "joint"}
        See `TPE`; the paper uses hyperopt's, one per parameter.
    n_initial : int
        Trials at the start, failed and pending ones included; if the space has fewer combinations, they take turns.
    n_candidates : int, optional
        Values drawn per parameter; by default the larger of 24 and the number of parameters.
    weight : {"uniform", "n_params"}
        Probability of an algorithm inside its group: the same for all, or proportional to one plus the number of its
        parameters.
    seed : int
        Seed for cutting groups where sizes leave a choice, and for the order of the combinations. It is independent of
        the seed of a run: trial k takes combination k in every study.

    Notes
    -----
    - The authors' code mixes several preferences when it draws algorithms; here all have the same probability, or are
      weighted by size.
    - If prior or clauses exclude everything drawn in a combination, its trial is one of `RandomSearch`.

    References
    ----------
    Nguyen, Kononova, Menzel, Sendhoff, Bäck (2021), Efficient AutoML via combinational sampling, IEEE SSCI; Nguyen et
    al. (2022), An efficient contesting procedure for AutoML optimization, IEEE Access 10, section III.
    """

    _: KW_ONLY
    density: Density = "independent"
    n_initial: int = 5
    n_candidates: int | None = None
    weight: Weight = "uniform"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weight not in get_args(Weight):
            raise InvalidParameterError("weight", self.weight, "'uniform' or 'n_params'")
        check_at_least(self, seed=0)

    @functools.cached_property
    def combinations(self) -> tuple[SubspacePart, ...]:
        """The combinations of groups, in the order of the first trials; a cache."""
        return split(self.encoder.space, self.n_initial, np.random.default_rng(self.seed))

    def draw_initial(self, decided: Float64, rng: np.random.Generator) -> Suggestion:
        """Return a configuration from the combination of groups whose turn it is, see `TPE.draw_initial`."""
        part = self.combinations[len(decided) % len(self.combinations)]
        codes = {name: self._codes(name, values) for name, values in part.allowed.items()}
        seen = self.encoder.keys(decided)
        for _ in range(_N_COMBINATIONS if all(map(len, codes.values())) else 0):
            fixed = {name: int(rng.choice(codes[name], p=self._shares(name, codes[name]))) for name in codes}
            rows = self.encoder.sample(8, rng, fixed=fixed, max_tries=4)
            suggestion = first_unseen(self.encoder, rows, seen, origin=Origin(OriginKind.START, part.label))
            if suggestion is not None:
                return suggestion
        return draw_suggestion(self.encoder, decided, rng)

    def _codes(self, operator: str, values: tuple[Any, ...]) -> IntArray:
        """Return the codes of the values of an operator that the prior does not exclude."""
        choices = self._operators[operator].choices
        possible = set(self.encoder.choices(operator).tolist())
        return np.array([code for code, v in enumerate(choices) if v in values and code in possible], dtype=np.int64)

    def _shares(self, operator: str, codes: IntArray) -> Float64:
        """Return the probabilities of an operator's choices, given by their codes."""
        sizes = 1 + self._n_own[operator][codes] if self.weight == "n_params" else np.ones(len(codes))
        shares: Float64 = sizes / sizes.sum()
        return shares

    @functools.cached_property
    def _operators(self) -> dict[str, CategoricalHyperparameter]:
        return operator_choices(self.encoder.space)

    @functools.cached_property
    def _n_own(self) -> dict[str, IntArray]:
        return {
            name: np.array([count_own_parameters(self.encoder.space, name, value) for value in operator.choices])
            for name, operator in self._operators.items()
        }


def count_own_parameters(space: ConfigurationSpace, operator: str, value: Any) -> int:
    """Return how many parameters one value of an operator may activate, children of children included."""
    own: set[str] = set()
    for name in space:  # parents come before their children
        for condition in space.parent_conditions_of[name]:
            for single in _single_conditions(condition):
                parent = single.parent.name
                if parent in own or (parent == operator and single.satisfied_by_value({operator: value})):
                    own.add(name)
    return len(own)


def _single_conditions(condition: ConditionLike) -> Iterator[Any]:
    if isinstance(condition, Conjunction):
        for part in condition.components:
            yield from _single_conditions(part)
    else:
        yield condition
