"""Narrow the ranges of hyper-parameters."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

from ConfigSpace import CategoricalHyperparameter, UniformFloatHyperparameter, UniformIntegerHyperparameter
from ConfigSpace.hyperparameters import Hyperparameter

from cashmere.data.task import TaskProfile
from cashmere.exceptions import InvalidParameterError
from cashmere.space.component import Algorithm, Component, Subspace

_C = TypeVar("_C", bound=Component)
_Ranges = Mapping[str, Sequence[Any]]


def narrowed(component: _C, ranges: _Ranges) -> _C:
    """Return a component whose hyper-parameters have narrower ranges.

    Parameters
    ----------
    component : Algorithm or Operator
        Its variants outside the ranges are left out.
    ranges : mapping of str to sequence
        For names without prefix, as checked by `check_range`.
    """
    within = functools.partial(_subspace_within, component.subspace, ranges)
    if not isinstance(component, Algorithm):
        return dataclasses.replace(component, subspace=within)
    variants = functools.partial(_variants_within, component.variants, within)
    return dataclasses.replace(component, subspace=within, variants=variants)


def check_range(full_name: str, given: Any, subspace: Subspace) -> None:
    """Check that a range lies within that of a hyper-parameter.

    Raises
    ------
    InvalidParameterError
        If it is not the lowest and the highest number, or a list of choices, within the present range, or others depend
        on the hyper-parameter: their conditions name values that might be gone.
    """
    name = full_name.partition(":")[2]
    [hp] = [each for each in subspace.hyperparameters if each.name == name]
    items = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
    if name in {each.name for each in deciding(subspace)}:
        expected = "a hyper-parameter on which no other depends"
    elif isinstance(hp, CategoricalHyperparameter):
        if items and all(item in hp.choices for item in items):
            return
        expected = f"a list with one or more of {', '.join(map(repr, hp.choices))}"
    elif isinstance(hp, UniformFloatHyperparameter | UniformIntegerHyperparameter):
        is_whole = isinstance(hp, UniformIntegerHyperparameter)
        number = Integral if is_whole else Real
        are_numbers = len(items) == 2 and all(isinstance(item, number) for item in items)
        if are_numbers and hp.lower <= items[0] < items[1] <= hp.upper:
            return
        kind = "whole numbers" if is_whole else "numbers"
        expected = f"two different {kind}, the lower one first, from {hp.lower:g} to {hp.upper:g}"
    else:
        expected = "a hyper-parameter with choices or with a uniform range"
    raise InvalidParameterError(full_name, given, expected)


def deciding(subspace: Subspace) -> list[Hyperparameter[Any, Any]]:
    """Return the hyper-parameters on whose values conditions or forbidden clauses depend; some more than once."""
    rules = (*subspace.conditions, *subspace.forbidden)
    sides = ("parent", "hyperparameter", "left", "right")
    found = (getattr(each, side, None) for rule in rules for each in literals(rule) for side in sides)
    return [hp for hp in found if hp is not None]


def literals(rule: Any) -> Sequence[Any]:
    """Return the parts of a condition or of a forbidden clause; itself if it has none."""
    parts: Sequence[Any] = getattr(rule, "dlcs", (rule,))
    return parts


def _subspace_within(subspace: Callable[[TaskProfile], Subspace], ranges: _Ranges, profile: TaskProfile) -> Subspace:
    whole = copy.deepcopy(subspace(profile))
    for hyperparameter in whole.hyperparameters:
        if hyperparameter.name in ranges:
            _narrow(hyperparameter, ranges[hyperparameter.name])
    return whole


def _narrow(hp: Hyperparameter[Any, Any], to: Sequence[Any]) -> None:
    """Make a hyper-parameter again with another range: the same object, since conditions refer to it."""
    if isinstance(hp, CategoricalHyperparameter):
        kept = [choice for choice in hp.choices if choice in to]
        weights = None if hp.weights is None else [w for w, c in zip(hp.weights, hp.choices, strict=True) if c in to]
        default = hp.default_value if hp.default_value in kept else kept[0]
        CategoricalHyperparameter.__init__(hp, hp.name, kept, default, hp.meta, weights)
    elif isinstance(hp, UniformFloatHyperparameter | UniformIntegerHyperparameter):
        low, high = to
        default = min(max(hp.default_value, low), high)
        if isinstance(hp, UniformFloatHyperparameter):
            UniformFloatHyperparameter.__init__(hp, hp.name, low, high, default, hp.log, hp.meta)
        else:
            UniformIntegerHyperparameter.__init__(hp, hp.name, low, high, default, hp.log, hp.meta)


def _variants_within(
    variants: Callable[[TaskProfile], Sequence[Mapping[str, Any]]],
    subspace: Callable[[TaskProfile], Subspace],
    profile: TaskProfile,
) -> Sequence[Mapping[str, Any]]:
    offered = {hp.name: hp for hp in subspace(profile).hyperparameters}
    return [
        variant
        for variant in variants(profile)
        if all(name not in offered or offered[name].legal_value(value) for name, value in variant.items())
    ]
