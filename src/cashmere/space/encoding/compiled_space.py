"""A space as arrays: bounds, defaults, conditions and forbidden clauses of all hyper-parameters.

======================  =====================  ====================================================================
symbol                  shape                  meaning
======================  =====================  ====================================================================
encoded                 ``(n, d)``             input of surrogates: no constants, inactive marked, see `SpaceEncoder`
raw                     ``(n_columns, n)``     used only in this folder: one row per hyper-parameter in topological
                                               order (parents first), constants included, NaN for inactive
======================  =====================  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from ConfigSpace import ConfigurationSpace

from cashmere.base.arrays import BoolArray, Float64, IntArray
from cashmere.space.encoding.clauses import Clause, compile_condition, compile_forbidden
from cashmere.space.encoding.columns import Column, Kind, make_column


class CompiledSpace:
    """Describe a space by the rows of its raw matrices, and turn raw matrices into encoded ones and back.

    Parameters
    ----------
    space : ConfigurationSpace
        The space; it must not be changed afterwards.

    Attributes
    ----------
    space : ConfigurationSpace
        The space.
    columns : list of n_columns Column
        The hyper-parameters, parents before their children.
    row_of : dict of str to int
        Name of a hyper-parameter -> its row in raw matrices.
    conditions : list of (int, Clause)
        Row of a child, and the clause under which it is active.
    forbidden : list of Clause
        Clauses that no configuration may satisfy.
    kept : (d,) int array
        The encoded rows: all but the constants.
    marks : (d,) array
        Mark of each encoded column for inactive values.
    defaults, lower, upper : (n_columns,) arrays
        Raw default; bounds of the value or of the position in the list of values.
    integers, floats, numeric, categorical, constant : int arrays
        Rows of each kind; `numeric` joins integers and floats.
    """

    def __init__(self, space: ConfigurationSpace) -> None:
        self.space = space
        # ConfigSpace orders its hyper-parameters by depth, so that parents come before their children.
        self.columns: list[Column] = [make_column(hp) for hp in space.values()]
        self.row_of: dict[str, int] = {column.name: row for row, column in enumerate(self.columns)}
        self.conditions: list[tuple[int, Clause]] = [
            (row, compile_condition(condition, self.columns, self.row_of))
            for row, column in enumerate(self.columns)
            for condition in space.parent_conditions_of[column.name]
        ]
        self.forbidden: list[Clause] = [
            compile_forbidden(clause, self.columns, self.row_of) for clause in space.forbidden_clauses
        ]

        self.kept = self.rows(lambda column: column.kind is not Kind.CONSTANT)
        kept = [self.columns[row] for row in self.kept]
        self.marks = np.array([len(c.values) if c.kind is Kind.CATEGORICAL else -1.0 for c in kept])
        self.defaults = np.array([column.default for column in self.columns])
        self.lower = np.array([column.lower for column in self.columns])
        self.upper = np.array([column.upper for column in self.columns])
        self.integers = self.rows(lambda column: column.kind is Kind.INTEGER)
        self.floats = self.rows(lambda column: column.kind is Kind.FLOAT)
        self.numeric = self.rows(lambda column: column.kind in (Kind.INTEGER, Kind.FLOAT))
        self.categorical = self.rows(lambda column: column.kind is Kind.CATEGORICAL)
        self.constant = self.rows(lambda column: column.kind is Kind.CONSTANT)
        self.is_float: BoolArray = np.array([column.kind is Kind.FLOAT for column in self.columns], dtype=np.bool_)
        self.log: BoolArray = np.array([column.log for column in self.columns], dtype=np.bool_)
        self._is_code: BoolArray = np.array([column.kind is Kind.CATEGORICAL for column in kept], dtype=np.bool_)

    def rows(self, belongs: Callable[[Column], bool]) -> IntArray:
        """Return the rows whose column satisfies a predicate."""
        return np.array([row for row, column in enumerate(self.columns) if belongs(column)], dtype=np.int64)

    def settle(self, raw: Float64, *, is_complete: bool = False) -> None:
        """Make activity consistent, in place: inactive becomes NaN, active but missing takes its default.

        With `is_complete`, every row has been drawn and nothing is missing.
        """
        masks: dict[Clause, tuple[BoolArray, BoolArray]] = {}
        for row, clause in self.conditions:
            if clause not in masks:
                # Parents come before their children, so they are settled by then.
                active = clause.holds(raw)
                masks[clause] = active, ~active
            active, inactive = masks[clause]
            numbers = raw[row]
            if not is_complete:
                np.copyto(numbers, self.defaults[row], where=active & np.isnan(numbers))
            np.copyto(numbers, np.nan, where=inactive)

    def is_forbidden(self, raw: Float64) -> BoolArray:
        """Return which configurations of a raw matrix hit a forbidden clause, shape ``(n,)``."""
        mask = np.zeros(raw.shape[1], dtype=np.bool_)
        for clause in self.forbidden:
            mask |= clause.holds(raw)
        return mask

    def encode(self, raw: Float64) -> Float64:
        """Return the encoded rows ``(n, d)`` of a raw matrix."""
        unit = raw.copy()
        unit[self.integers] = self.to_unit(raw[self.integers], self.integers)
        unit = unit[self.kept]
        np.copyto(unit, self.marks[:, None], where=np.isnan(unit))
        return np.ascontiguousarray(unit.T)

    def decode(self, encoded: Float64) -> Float64:
        """Return the raw matrix of encoded rows ``(n, d)``; only parameters active under their parents have a value."""
        unit = encoded.T.copy()
        unit[(unit < 0) | (self._is_code[:, None] & (unit >= self.marks[:, None]))] = np.nan
        raw = np.zeros((len(self.columns), len(encoded)))
        raw[self.kept] = unit
        raw[self.integers] = self.from_unit(raw[self.integers], self.integers)
        free = np.setdiff1d(np.arange(len(raw)), [row for row, _ in self.conditions])
        raw[free] = np.where(np.isnan(raw[free]), self.defaults[free, None], raw[free])
        self.settle(raw)
        return raw

    def _integer_scale(self, rows: IntArray) -> tuple[Float64, Float64]:
        """Return the two ends lo - 0.5 and hi + 0.5 of integer rows, or their logarithms, each ``(len(rows), 1)``."""
        ends = np.stack([self.lower[rows] - 0.5, self.upper[rows] + 0.5])
        log = self.log[rows] & ~self.is_float[rows]
        ends[:, log] = np.log(ends[:, log])
        return ends[0][:, None], ends[1][:, None]

    def to_unit(self, raw: Float64, rows: IntArray) -> Float64:
        """Map raw numeric rows to [0, 1]: (v - lo + 0.5)/(hi - lo + 1) for integers; floats already are in [0, 1]."""
        low, high = self._integer_scale(rows)
        log = (self.log[rows] & ~self.is_float[rows])[:, None]
        scaled = np.where(log, np.log(np.where(log, raw, 1.0)), raw)
        unit: Float64 = np.where(self.is_float[rows, None], raw, (scaled - low) / (high - low))
        return unit

    def from_unit(self, unit: Float64, rows: IntArray) -> Float64:
        """Invert `to_unit`; integers by rounding."""
        low, high = self._integer_scale(rows)
        log = (self.log[rows] & ~self.is_float[rows])[:, None]
        scaled = low + unit * (high - low)
        scaled = np.where(log, np.exp(np.where(log, scaled, 0.0)), scaled)
        rounded = np.clip(np.rint(scaled), self.lower[rows, None], self.upper[rows, None])
        raw: Float64 = np.where(self.is_float[rows, None], unit, rounded)
        return raw
