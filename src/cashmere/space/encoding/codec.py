"""Convert configurations to encoded rows and back, and interpret such rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from ConfigSpace import Configuration

from cashmere.base.arrays import BoolArray, Float64, FloatArray
from cashmere.space.encoding.compiled_space import CompiledSpace

_CACHE_SIZE = 50_000
"""Number of encoded configurations to cache."""


class Codec:
    """Turn configurations into encoded rows ``(d,)`` and back.

    Parameters
    ----------
    space : CompiledSpace
        The space.
    """

    def __init__(self, space: CompiledSpace) -> None:
        self.space = space
        # id -> (configuration, row); keeping the configuration prevents the reuse of its id.
        self._cache: dict[int, tuple[Configuration, Float64]] = {}

    def encode(self, configurations: Iterable[Configuration]) -> Float64:
        """Return the encoded configurations, shape ``(n, d)``.

        The rows depend only on the values (not on ConfigSpace's vectors, which change by an ulp when a configuration
        is stored and loaded), so equal values give equal rows. They are cached per configuration object.
        """
        rows = []
        for configuration in configurations:
            known = self._cache.get(id(configuration))
            if known is None or known[0] is not configuration:
                if len(self._cache) >= _CACHE_SIZE:
                    self._cache.clear()
                known = self._cache[id(configuration)] = (configuration, self._encode_one(configuration))
            rows.append(known[1])
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.space.kept))

    def _encode_one(self, configuration: Mapping[str, Any]) -> Float64:
        raw = np.full((len(self.space.columns), 1), np.nan)
        for name, value in configuration.items():
            row = self.space.row_of[name]
            raw[row, 0] = self.space.columns[row].to_raw(value)
        row_vector: Float64 = self.space.encode(raw)[0]
        return row_vector

    def decode(self, row: FloatArray) -> Configuration:
        """Return the configuration of an encoded row ``(d,)``.

        Entries of parameters that cannot be active are ignored; active parameters marked as inactive get their default.

        Raises
        ------
        ConfigSpace.exceptions.ForbiddenValueError
            If the row hits a forbidden clause.
        """
        raw = self.space.decode(np.asarray(row, dtype=np.float64)[None, :])[:, 0]
        values = {
            column.name: column.to_value(float(number))
            for column, number in zip(self.space.columns, raw, strict=True)
            if not np.isnan(number)
        }
        return Configuration(self.space.space, values=values)

    def activity(self, rows: FloatArray) -> BoolArray:
        """Return which parameters of encoded rows ``(n, d)`` are active, shape ``(n, d)``.

        A row may be unfinished, marked as inactive from one of `SpaceEncoder.levels` on: the answer is correct up to
        this level.
        """
        raw = self.space.decode(np.asarray(rows, dtype=np.float64))
        active: BoolArray = ~np.isnan(raw[self.space.kept].T)
        return active

    def allowed(self, rows: FloatArray) -> BoolArray:
        """Return which encoded rows ``(n, d)`` hit no forbidden clause, shape ``(n,)``."""
        return ~self.space.is_forbidden(self.space.decode(np.asarray(rows, dtype=np.float64)))

    def inactive_row(self) -> Float64:
        """Return the encoded row ``(d,)`` that marks every parameter as inactive."""
        return self.space.marks.copy()

    def default_row(self) -> Float64:
        """Return the encoded default of every parameter, shape ``(d,)``, even of those inactive by default."""
        defaults = self.space.defaults[:, None].copy()
        defaults[self.space.integers] = self.space.to_unit(defaults[self.space.integers], self.space.integers)
        row: Float64 = defaults[self.space.kept, 0]
        return row

    def bins(self, column: int, positions: FloatArray) -> Float64:
        """Return centre and ends of the bins of an integer column that hold positions ``(n,)``, shape ``(3, n)``.

        Value v has the bin [v - 0.5, v + 0.5] on the scale of the column; all bins together are [0, 1].
        """
        row = self.space.kept[[column]]
        value = self.space.from_unit(np.asarray(positions, dtype=np.float64)[None, :], row)[0]
        return self.space.to_unit(value + np.array([[0.0], [-0.5], [0.5]]), np.repeat(row, 3))

    def with_defaults(self, rows: FloatArray) -> Float64:
        """Return encoded rows ``(n, d)`` in which inactive parameters have their default instead of the mark."""
        rows = np.asarray(rows, dtype=np.float64)
        filled: Float64 = np.where(rows == self.space.marks, self.default_row(), rows)
        return filled
