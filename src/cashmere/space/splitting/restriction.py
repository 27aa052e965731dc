"""Restrict a ConfigurationSpace to some of its choices."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Any

from ConfigSpace import (
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    ForbiddenInClause,
    InCondition,
    NotEqualsCondition,
    OrConjunction,
)
from ConfigSpace.conditions import ConditionLike, Conjunction
from ConfigSpace.exceptions import ForbiddenValueError
from ConfigSpace.forbidden import ForbiddenConjunction, ForbiddenLike, ForbiddenOrConjunction, ForbiddenRelation
from ConfigSpace.hyperparameters import Hyperparameter
from ConfigSpace.types import NotSet

from cashmere.exceptions import SpaceError, UnknownNameError
from cashmere.space.splitting.group_trees import limit_meta


def restrict(space: ConfigurationSpace, allowed: Mapping[str, Collection[Any]]) -> ConfigurationSpace:
    """Copy a space with fewer values of some categoricals, without parameters that can then never be active.

    Parameters
    ----------
    space : ConfigurationSpace
        The full space; it is not changed.
    allowed : mapping of str to collection
        Categoricals to restrict, and the values to keep; their order remains that of the space.

    Returns
    -------
    ConfigurationSpace
        Names, weights, priors and ``meta`` are those of the full space, with group trees restricted like the choices.
        Conditions and forbidden clauses are kept where they can still apply, restricted to the remaining values.

    Raises
    ------
    UnknownNameError
        If a name is not in the space.
    SpaceError
        If a name is not categorical, none of its choices would be left, or no choice of defaults is legal.

    Notes
    -----
    Remaining defaults are kept. If together they hit a forbidden clause, which ConfigSpace does not accept, the
    categoricals of that clause get the first other legal defaults. If all remaining choices have weight zero, they
    become equally probable.

    Whether a condition can hold is decided for each literal separately.

    Examples
    --------
    >>> from ConfigSpace import EqualsCondition
    >>> space = ConfigurationSpace({"learner": ["svm", "forest", "tree"], "C": (0.1, 10.0), "depth": (1, 9)})
    >>> space.add(EqualsCondition(space["C"], space["learner"], "svm"))
    >>> list(restrict(space, {"learner": ["forest", "tree"]}))
    ['depth', 'learner']
    """
    choices = {name: _choices_left(space, name, values) for name, values in allowed.items()}
    try:
        return _restricted(space, choices)
    except ForbiddenValueError:
        return _restricted(space, _with_legal_defaults(space, choices))


def lift(configuration: Configuration, space: ConfigurationSpace) -> Configuration:
    """Return the configuration with the same values in another space, such as the full space of a part.

    Parameters
    ----------
    configuration : Configuration
        A configuration of a restricted space, or of the full one, which is returned as it is.
    space : ConfigurationSpace
        The full space.

    Raises
    ------
    ValueError
        If the values are not a configuration of the space.
    """
    return configuration if configuration.config_space is space else Configuration(space, values=dict(configuration))


def names_in(clause: ForbiddenLike) -> set[str]:
    """Return the names of the hyper-parameters in a forbidden clause."""
    if isinstance(clause, ForbiddenConjunction):
        return set().union(*map(names_in, clause.dlcs))
    if isinstance(clause, ForbiddenRelation):
        return {clause.left.name, clause.right.name}
    return {clause.hyperparameter.name}


def _choices_left(space: ConfigurationSpace, name: str, values: Collection[Any]) -> list[Any]:
    """Return the remaining choices of a categorical, its default first."""
    if name not in space:
        raise UnknownNameError("hyper-parameter", name, space)
    choice = space[name]
    if not isinstance(choice, CategoricalHyperparameter):
        raise SpaceError(
            f"The hyper-parameter {name!r} cannot be restricted, because it is not categorical. Remove it from "
            "allowed.",
            item=choice,
        )
    left = [value for value in choice.choices if value in values]
    if not left:
        raise SpaceError(
            f"allowed[{name!r}] must keep at least one of {', '.join(map(repr, choice.choices))}; got {values!r}.",
            item=choice,
        )
    return sorted(left, key=lambda value: value != choice.default_value)


def _with_legal_defaults(space: ConfigurationSpace, choices: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Put other choices first until the default configuration hits no forbidden clause.

    Only categoricals in violated clauses are varied: few at first, more if that does not help.
    """
    varied: dict[str, list[Any]] = {}
    while True:
        conflicts: set[str] = set()
        for defaults in itertools.product(*varied.values()):
            chosen = dict(zip(varied, defaults, strict=True))
            values = _default_values(space, {name: left[0] for name, left in choices.items()} | chosen)
            hit = [clause for clause in space.forbidden_clauses if clause.is_forbidden_value(values)]
            if not hit:
                moved = {
                    name: [default, *(v for v in varied[name] if v != default)] for name, default in chosen.items()
                }
                return {**choices, **moved}
            conflicts.update(*map(names_in, hit))
        more = [
            choice
            for name in sorted(conflicts - varied.keys())
            if isinstance(choice := space[name], CategoricalHyperparameter)
        ]
        if not more:
            raise SpaceError(
                f"With the values {choices}, every default configuration is forbidden by a clause of the space, and "
                "ConfigSpace needs a legal one. Allow more values.",
                item=choices,
            )
        for choice in more:
            varied[choice.name] = choices.get(choice.name) or _choices_left(space, choice.name, choice.choices)


def _default_values(space: ConfigurationSpace, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chosen values where active, and the defaults of all other active parameters."""
    values: dict[str, Any] = {}
    for name, hyperparameter in space.items():  # parents come before their children
        parents = {parent.name: values.get(parent.name, NotSet) for parent in space.parents_of[name]}
        if all(condition.satisfied_by_value(parents) for condition in space.parent_conditions_of[name]):
            values[name] = chosen.get(name, hyperparameter.default_value)
    return values


def _restricted(space: ConfigurationSpace, choices: Mapping[str, list[Any]]) -> ConfigurationSpace:
    """Copy the space with these choices, the first of which are the defaults."""
    kept: dict[str, Hyperparameter[Any, Any]] = {}
    conditions: dict[str, ConditionLike] = {}
    for name, hyperparameter in space.items():  # parents come before their children
        child = hyperparameter
        if isinstance(hyperparameter, CategoricalHyperparameter) and name in choices:
            child = _limit_choices(hyperparameter, choices[name])
        condition = next((_limit_condition(c, child, kept, conditions) for c in space.parent_conditions_of[name]), True)
        if condition is False:
            continue
        kept[name] = child
        if condition is not True:
            conditions[name] = condition
    clauses = [limited for clause in space.forbidden_clauses if (limited := _limit_clause(clause, kept)) is not None]
    part = ConfigurationSpace(name=space.name, meta=space.meta)
    part.add(kept.values(), conditions.values(), clauses)
    return part


def _limit_choices(choice: CategoricalHyperparameter, left: list[Any]) -> CategoricalHyperparameter:
    weighted = zip(choice.choices, choice.probabilities, strict=True)
    values, weights = zip(*((value, float(weight)) for value, weight in weighted if value in left), strict=True)
    return CategoricalHyperparameter(
        choice.name,
        values,
        default_value=left[0],
        weights=weights if choice.weights is not None and any(weights) else None,
        meta=limit_meta(choice.meta, left),
    )


def _limit_condition(
    condition: ConditionLike,
    child: Hyperparameter[Any, Any],
    kept: Mapping[str, Hyperparameter[Any, Any]],
    conditions: Collection[str],
) -> ConditionLike | bool:
    """Return the condition on the remaining parents; True or False if it now always or never holds."""
    if isinstance(condition, Conjunction):
        parts = [_limit_condition(part, child, kept, conditions) for part in condition.components]
        is_any = isinstance(condition, OrConjunction)
        if is_any in parts:  # one True makes the disjunction true, one False the conjunction false
            return is_any
        undecided = [part for part in parts if not isinstance(part, bool)]
        if len(undecided) > 1:
            return type(condition)(*undecided)
        return undecided[0] if undecided else not is_any
    is_negated = isinstance(condition, NotEqualsCondition)
    parent = kept.get(condition.parent.name)
    if parent is None:
        return is_negated  # an inactive value is unequal to everything
    if isinstance(condition, InCondition):
        values = [value for value in condition.values if parent.legal_value(value)]
        return InCondition(child, parent, values) if values else False
    if not parent.legal_value(condition.value):
        return is_negated
    if is_negated and parent.size == 1 and parent.name not in conditions:
        return False
    return type(condition)(child, parent, condition.value)


def _limit_clause(clause: ForbiddenLike, kept: Mapping[str, Hyperparameter[Any, Any]]) -> ForbiddenLike | None:
    """Return the clause on the remaining hyper-parameters; None if it can no longer apply."""
    if isinstance(clause, ForbiddenConjunction):
        parts = [limited for part in clause.components if (limited := _limit_clause(part, kept)) is not None]
        enough = 1 if isinstance(clause, ForbiddenOrConjunction) else len(clause.components)
        return type(clause)(*parts) if len(parts) >= enough else None
    if isinstance(clause, ForbiddenRelation):
        left, right = kept.get(clause.left.name), kept.get(clause.right.name)
        return type(clause)(left, right) if left is not None and right is not None else None
    hyperparameter = kept.get(clause.hyperparameter.name)
    if hyperparameter is None:
        return None
    if isinstance(clause, ForbiddenInClause):
        values = [value for value in clause.values if hyperparameter.legal_value(value)]
        return ForbiddenInClause(hyperparameter, values) if values else None
    comparison: Any = clause  # all others compare with one value
    return type(comparison)(hyperparameter, comparison.value) if hyperparameter.legal_value(comparison.value) else None
