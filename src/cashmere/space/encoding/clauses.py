"""Conditions and forbidden clauses, compiled to masks over many configurations.

Every clause is evaluated on a raw matrix ``(n_columns, n)`` with NaN for inactive values
(see `cashmere.space.encoding.columns`).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from ConfigSpace import conditions as given_conditions
from ConfigSpace import forbidden as given_forbidden
from ConfigSpace.conditions import ConditionLike
from ConfigSpace.forbidden import ForbiddenLike

from cashmere.base.arrays import BoolArray, Float64
from cashmere.exceptions import SpaceError
from cashmere.space.encoding.columns import Column

_OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Clause(Protocol):
    """A statement about one configuration, hashable so that equal statements are evaluated once."""

    def holds(self, raw: Float64) -> BoolArray:
        """Return for each of the ``n`` columns of the raw matrix whether the statement is true."""
        ...


@dataclass(frozen=True, slots=True)
class IsIn:
    """The number in a row is one of the values; false where inactive."""

    row: int
    values: tuple[float, ...]

    def holds(self, raw: Float64) -> BoolArray:
        """See `Clause`."""
        mask: BoolArray = raw[self.row] == self.values[0]
        for value in self.values[1:]:
            mask |= raw[self.row] == value
        return mask


@dataclass(frozen=True, slots=True)
class Compares:
    """Compare the number in a row with a value; inactive is unequal to everything, as in ConfigSpace."""

    row: int
    symbol: str
    value: float

    def holds(self, raw: Float64) -> BoolArray:
        """See `Clause`."""
        mask: BoolArray = _OPERATORS[self.symbol](raw[self.row], self.value)
        return mask


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds."""

    parts: tuple[Clause, ...]

    def holds(self, raw: Float64) -> BoolArray:
        """See `Clause`."""
        mask = self.parts[0].holds(raw).copy()
        for part in self.parts[1:]:
            mask &= part.holds(raw)
        return mask


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds."""

    parts: tuple[Clause, ...]

    def holds(self, raw: Float64) -> BoolArray:
        """See `Clause`."""
        mask = self.parts[0].holds(raw).copy()
        for part in self.parts[1:]:
            mask |= part.holds(raw)
        return mask


@dataclass(frozen=True, slots=True)
class Relates:
    """Compare the values of two hyper-parameters; false where one is inactive."""

    left_row: int
    right_row: int
    left: Column
    right: Column
    symbol: str

    def holds(self, raw: Float64) -> BoolArray:
        """See `Clause`."""
        mask = np.zeros(raw.shape[1], dtype=np.bool_)
        compare = _OPERATORS[self.symbol]
        for i in np.flatnonzero(~np.isnan(raw[self.left_row]) & ~np.isnan(raw[self.right_row])):
            left, right = raw[self.left_row, i], raw[self.right_row, i]
            mask[i] = compare(self.left.to_value(float(left)), self.right.to_value(float(right)))
        return mask


def compile_condition(condition: ConditionLike, columns: Sequence[Column], row_of: dict[str, int]) -> Clause:
    """Translate a ConfigSpace condition."""
    if isinstance(condition, given_conditions.Conjunction):
        parts = tuple(compile_condition(part, columns, row_of) for part in condition.components)
        return AnyOf(parts) if isinstance(condition, given_conditions.OrConjunction) else AllOf(parts)
    row = row_of[condition.parent.name]
    to_raw = columns[row].to_raw
    if isinstance(condition, given_conditions.InCondition):
        return IsIn(row, tuple(map(to_raw, condition.values)))
    if isinstance(condition, given_conditions.EqualsCondition):
        return IsIn(row, (to_raw(condition.value),))
    symbols: dict[type, str] = {
        given_conditions.NotEqualsCondition: "!=",
        given_conditions.LessThanCondition: "<",
        given_conditions.GreaterThanCondition: ">",
    }
    for kind, symbol in symbols.items():
        if isinstance(condition, kind):
            return Compares(row, symbol, to_raw(condition.value))
    raise SpaceError(
        f"Conditions of the kind {type(condition).__name__} cannot be encoded ({condition}). Use EqualsCondition, "
        "NotEqualsCondition, InCondition, LessThanCondition or GreaterThanCondition.",
        item=condition,
    )


def compile_forbidden(clause: ForbiddenLike, columns: Sequence[Column], row_of: dict[str, int]) -> Clause:
    """Translate a ConfigSpace forbidden clause."""
    if isinstance(clause, given_forbidden.ForbiddenConjunction):
        parts = tuple(compile_forbidden(part, columns, row_of) for part in clause.components)
        return AnyOf(parts) if isinstance(clause, given_forbidden.ForbiddenOrConjunction) else AllOf(parts)
    if isinstance(clause, given_forbidden.ForbiddenRelation):
        left, right = row_of[clause.left.name], row_of[clause.right.name]
        symbols: dict[type, str] = {
            given_forbidden.ForbiddenLessThanEqualsRelation: "<=",
            given_forbidden.ForbiddenGreaterThanEqualsRelation: ">=",
            given_forbidden.ForbiddenLessThanRelation: "<",
            given_forbidden.ForbiddenGreaterThanRelation: ">",
            given_forbidden.ForbiddenEqualsRelation: "==",
        }
        symbol = next(symbol for kind, symbol in symbols.items() if isinstance(clause, kind))
        return Relates(left, right, columns[left], columns[right], symbol)
    row = row_of[clause.hyperparameter.name]
    if isinstance(clause, given_forbidden.ForbiddenInClause):
        return IsIn(row, tuple(map(columns[row].to_raw, clause.values)))
    if isinstance(clause, given_forbidden.ForbiddenEqualsClause):
        return IsIn(row, (columns[row].to_raw(clause.value),))
    raise SpaceError(
        f"Forbidden clauses of the kind {type(clause).__name__} cannot be encoded ({clause}). Use "
        "ForbiddenEqualsClause, ForbiddenInClause, a relation, or their conjunction with And or Or.",
        item=clause,
    )
