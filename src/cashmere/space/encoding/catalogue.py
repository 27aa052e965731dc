"""A space from which only listed configurations may be drawn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace

from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.space.encoding.prior import MAX_TRIES


class CatalogueEncoder(SpaceEncoder):
    """Encode a space from which only listed configurations may be drawn, as when recorded trials are replayed.

    Draws are without replacement, nothing has neighbours, and `decode` returns the listed objects.

    Parameters
    ----------
    space : ConfigurationSpace
        The space of the configurations.
    catalogue : sequence of Configuration
        The configurations that may be drawn.
    """

    def __init__(self, space: ConfigurationSpace, catalogue: Sequence[Configuration]) -> None:
        super().__init__(space)
        self._configurations = tuple(catalogue)
        rows = self.encode(catalogue)
        keys, first = np.unique(self.keys(rows), return_index=True)
        self._listed = rows[np.sort(first)]  # without duplicates
        self.n_listed = len(self._listed)
        self._by_key = {int(key): catalogue[i] for key, i in zip(keys, first, strict=True)}

    def restrict(self, part: ConfigurationSpace, allowed: Mapping[str, Collection[Any]]) -> CatalogueEncoder:
        """Return the encoder of the listed configurations inside a part, see `SpaceEncoder.restrict`."""
        inside = [c for c in self._configurations if all(c[name] in values for name, values in allowed.items())]
        return CatalogueEncoder(part, inside)

    def decode(self, row: FloatArray) -> Configuration:
        """Return the listed configuration of an encoded row ``(d,)``, or a new one if none is listed."""
        key = int(self.keys(np.asarray(row, dtype=np.float64)[None, :])[0])
        return self._by_key[key] if key in self._by_key else super().decode(row)

    def sample(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        fixed: Mapping[str, int] | None = None,
        max_tries: int = MAX_TRIES,
    ) -> Float64:
        """Draw at most `n` of the listed configurations, each at most once, in random order."""
        return rng.permutation(self._select(fixed))[:n]

    def _select(self, fixed: Mapping[str, int] | None) -> Float64:
        rows = self._listed
        for name, code in (fixed or {}).items():
            rows = rows[rows[:, self.names.index(name)] == code]
        return rows

    def enumerate(self, limit: int, *, fixed: Mapping[str, int] | None = None) -> Float64 | None:
        """Return all listed configurations with these codes, or None if there are more than `limit`."""
        rows = self._select(fixed)
        return rows if len(rows) <= limit else None

    def draw_neighbours(self, rows: FloatArray, counts: Sequence[int], rng: np.random.Generator) -> Float64:
        """Return no rows."""
        return np.empty((0, self.n_dims))

    def coordinate_moves(
        self,
        rows: FloatArray,
        rng: np.random.Generator,
        *,
        n_draws: int = 10,
        scale: float = 0.2,
        fixed: Collection[str] = (),
    ) -> tuple[Float64, IntArray]:
        """Return no rows."""
        return np.empty((0, self.n_dims)), np.empty(0, dtype=np.int64)
