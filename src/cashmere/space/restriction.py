"""Parts of a ConfigurationSpace in which some choices are not offered."""

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
from ConfigSpace.exceptions import ActiveHyperparameterNotSetError, ForbiddenValueError
from ConfigSpace.forbidden import ForbiddenConjunction, ForbiddenLike, ForbiddenOrConjunction, ForbiddenRelation
from ConfigSpace.hyperparameters import Hyperparameter

from cashmere.exceptions import InvalidParameterError, UnknownNameError
from cashmere.space.group_trees import limit_meta


def restrict(space: ConfigurationSpace, allowed: Mapping[str, Collection[Any]]) -> ConfigurationSpace:
    """Copy a space, with fewer values of some categoricals and without what can never be active then.

    Parameters
    ----------
    space : ConfigurationSpace
        The full space; it is not changed.
    allowed : mapping of str to collection
        Categoricals that are limited, and the values that stay; their order remains that of the space.

    Returns
    -------
    ConfigurationSpace
        Names, weights, priors and ``meta`` are those of the full space, group trees limited like the choices.
        Conditions and forbidden clauses stay where they can still apply, limited to the values that are left.

    Raises
    ------
    UnknownNameError
        If a name is not in the space.
    InvalidParameterError
        If a name is no categorical, none of its choices would be left, or every combination of the allowed values
        has a default configuration that is forbidden.

    Notes
    -----
    A categorical keeps its default if it is allowed and legal together with the other defaults; otherwise it takes
    the first choices that make a legal default configuration, without which ConfigSpace accepts no space. If all
    choices that are left have weight zero, they become equally probable.

    Whether a condition can hold is decided for each of its literals alone.

    Examples
    --------
    >>> from ConfigSpace import EqualsCondition
    >>> space = ConfigurationSpace({"learner": ["svm", "forest", "tree"], "C": (0.1, 10.0), "depth": (1, 9)})
    >>> space.add(EqualsCondition(space["C"], space["learner"], "svm"))
    >>> list(restrict(space, {"learner": ["forest", "tree"]}))
    ['depth', 'learner']
    """
    choices = {name: _choices_left(space, name, values) for name, values in allowed.items()}
    names = list(choices)
    # The defaults as they are come first; a later combination is needed only where they hit a forbidden clause.
    for defaults in itertools.product(*choices.values()):
        try:
            return _restricted(space, choices, dict(zip(names, defaults, strict=True)))
        except (ForbiddenValueError, ActiveHyperparameterNotSetError):
            continue
    raise InvalidParameterError("allowed", dict(allowed), "values with a default configuration that is not forbidden")


def lift(configuration: Mapping[str, Any], space: ConfigurationSpace) -> Configuration:
    """Return the configuration with the same values in another space, such as the one its own space is a part of.

    Parameters
    ----------
    configuration : Configuration
        A configuration of a restricted space.
    space : ConfigurationSpace
        The full space.

    Raises
    ------
    ValueError
        If ConfigSpace finds that the values are no configuration of the space.
    """
    return Configuration(space, values=dict(configuration))


def _choices_left(space: ConfigurationSpace, name: str, values: Collection[Any]) -> list[Any]:
    """Return the choices of a categorical that stay, its default in front."""
    if name not in space:
        raise UnknownNameError("hyper-parameter", name, space)
    hyperparameter = space[name]
    if not isinstance(hyperparameter, CategoricalHyperparameter):
        raise InvalidParameterError("allowed", name, "given for categorical hyper-parameters only")
    left = [choice for choice in hyperparameter.choices if choice in values]
    if not left:
        raise InvalidParameterError(f"allowed[{name!r}]", values, f"at least one of {hyperparameter.choices}")
    return sorted(left, key=lambda choice: choice != hyperparameter.default_value)


def _restricted(
    space: ConfigurationSpace, choices: Mapping[str, Collection[Any]], defaults: Mapping[str, Any]
) -> ConfigurationSpace:
    kept: dict[str, Hyperparameter[Any, Any]] = {}
    conditions: dict[str, ConditionLike] = {}
    for name, hyperparameter in space.items():  # parents come before their children
        child = hyperparameter
        if isinstance(hyperparameter, CategoricalHyperparameter) and name in choices:
            child = _limit_choices(hyperparameter, choices[name], defaults[name])
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


def _limit_choices(
    choice: CategoricalHyperparameter, values: Collection[Any], default: Any
) -> CategoricalHyperparameter:
    left = [
        (value, weight) for value, weight in zip(choice.choices, choice.probabilities, strict=True) if value in values
    ]
    weights = [float(weight) for _, weight in left]
    return CategoricalHyperparameter(
        choice.name,
        [value for value, _ in left],
        default_value=default,
        weights=weights if choice.weights is not None and any(weights) else None,
        meta=limit_meta(choice.meta, values),
    )


def _limit_condition(
    condition: ConditionLike,
    child: Hyperparameter[Any, Any],
    kept: Mapping[str, Hyperparameter[Any, Any]],
    conditions: Collection[str],
) -> ConditionLike | bool:
    """Return the condition on the parents that are kept; True or False where it always or never holds now."""
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
        return is_negated  # what is inactive is unequal to everything
    if isinstance(condition, InCondition):
        values = [value for value in condition.values if parent.legal_value(value)]
        return InCondition(child, parent, values) if values else False
    if not parent.legal_value(condition.value):
        return is_negated
    if is_negated and parent.size == 1 and parent.name not in conditions:
        return False
    return type(condition)(child, parent, condition.value)


def _limit_clause(clause: ForbiddenLike, kept: Mapping[str, Hyperparameter[Any, Any]]) -> ForbiddenLike | None:
    """Return the clause on the hyper-parameters that are kept; None where it can apply no more."""
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
