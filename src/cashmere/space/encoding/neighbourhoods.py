"""Configurations that differ from a given one in one parameter."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from cashmere.base.arrays import BoolArray, Float64, FloatArray, IntArray
from cashmere.space.encoding.compiled_space import CompiledSpace


class Neighbourhoods:
    """Change one parameter at a time; children that become active take their default.

    Parameters
    ----------
    space : CompiledSpace
        The space.
    """

    def __init__(self, space: CompiledSpace) -> None:
        self.space = space

    def neighbours(self, row: FloatArray, rng: np.random.Generator) -> Float64:
        """Return the one-exchange neighbourhood of an encoded row.

        One active parameter is changed: a categorical to every other value, a number to 4 draws from N(v, 0.2^2) on
        the unit scale. Children that become active take their default; forbidden results are dropped. See
        docs/papers/surrogates.md#one-exchange-neighbours.

        Parameters
        ----------
        row : (d,) array
            An encoded configuration.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        (m, d) array
            Distinct neighbours, in random order.
        """
        raw = self.space.decode(np.asarray(row, dtype=np.float64)[None, :])[:, 0]
        rows, numbers = self._moves(raw, rng)
        return self._exchange(np.repeat(raw[:, None], len(rows), axis=1), rows, numbers)[0]

    def draw_neighbours(self, rows: FloatArray, counts: Sequence[int], rng: np.random.Generator) -> Float64:
        """Draw neighbours of several rows without replacement.

        Parameters
        ----------
        rows : (n, d) array
            Encoded configurations.
        counts : sequence of int
            How many neighbours to draw from each.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        (m, d) array
            At most ``sum(counts)`` rows; fewer if a neighbourhood is small.
        """
        spare = 8 if self.space.forbidden else 0  # to replace forbidden ones
        raw = self.space.decode(np.asarray(rows, dtype=np.float64))
        moves = [self._moves(start, rng) for start in raw.T]
        moved = [row[: count + spare] for (row, _), count in zip(moves, counts, strict=True)]
        numbers = [number[: count + spare] for (_, number), count in zip(moves, counts, strict=True)]
        if not moved:
            return np.empty((0, len(self.space.kept)))
        owner = np.repeat(np.arange(len(moved)), [len(row) for row in moved])
        exchanged, allowed = self._exchange(raw[:, owner], np.concatenate(moved), np.concatenate(numbers))
        owner = owner[allowed]
        position = np.arange(len(owner)) - np.searchsorted(owner, owner)  # among those of the same start
        kept: Float64 = exchanged[position < np.asarray(counts)[owner]]
        return kept

    def coordinate_moves(
        self,
        rows: FloatArray,
        rng: np.random.Generator,
        *,
        n_draws: int = 10,
        scale: float = 0.2,
        fixed: Collection[str] = (),
    ) -> tuple[Float64, IntArray]:
        """Change every active parameter of encoded rows, one at a time (docs/papers/latent.md#local-search).

        Floats move to draws from N(v, scale^2) on the unit scale, within [0, 1]. Integers and ordinals are drawn
        uniformly from a window around v without v, whose half-width is the share `scale` of the range, at least 1;
        that of log-integers is measured on the unit scale. Categoricals move to all other choices. Children that
        become active take their default; forbidden results are dropped.

        Parameters
        ----------
        rows : (n, d) array
            Encoded configurations.
        rng : numpy.random.Generator
            Source of randomness.
        n_draws : int
            Draws per number; integers may repeat.
        scale : float
            Width of the moves, positive.
        fixed : collection of str
            Hyper-parameters to leave unchanged.

        Returns
        -------
        moved : (m, d) array
            The changed rows.
        owner : (m,) int array
            Which of `rows` each comes from, unordered.
        """
        raw = self.space.decode(np.asarray(rows, dtype=np.float64))
        free = ~np.isnan(raw)
        free[[self.space.row_of[name] for name in fixed]] = False
        moves = [self._move_categoricals(raw, free)]
        for numeric, draw in ((self.space.floats, self._draw_floats), (self.space.integers, self._draw_integers)):
            which, owner = np.nonzero(free[numeric])
            if len(which):
                drawn = draw(raw[numeric[which], owner], numeric[which], n_draws, scale, rng)
                moves.append((np.repeat(numeric[which], n_draws), np.repeat(owner, n_draws), drawn.ravel()))
        moved, owner, numbers = (np.concatenate(parts) for parts in zip(*moves, strict=True))
        changed = numbers != raw[moved, owner]  # a range of a single value allows no change
        moved, owner, numbers = moved[changed], owner[changed], numbers[changed]
        exchanged, allowed = self._exchange(raw[:, owner], moved, numbers)
        return exchanged, owner[allowed]

    def _move_categoricals(self, raw: Float64, free: BoolArray) -> tuple[IntArray, IntArray, Float64]:
        """Return the row, the configuration and the code of every choice of the free categoricals."""
        which, owner = np.nonzero(free[self.space.categorical])
        rows = self.space.categorical[which]
        sizes = (self.space.upper[rows] + 1).astype(np.int64)
        codes = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(rows, sizes), np.repeat(owner, sizes), codes.astype(np.float64)

    def _draw_floats(self, current: Float64, rows: IntArray, n: int, scale: float, rng: np.random.Generator) -> Float64:
        unit = current[:, None]
        # The inverse distribution function of the truncated normal draws what rejection outside [0, 1] would.
        below, above = ndtr(-unit / scale), ndtr((1 - unit) / scale)
        drawn: Float64 = unit + scale * ndtri(below + rng.random((len(rows), n)) * (above - below))
        return np.clip(drawn, 0.0, 1.0)

    def _draw_integers(
        self, current: Float64, rows: IntArray, n: int, scale: float, rng: np.random.Generator
    ) -> Float64:
        lower, upper = self.space.lower[rows], self.space.upper[rows]
        width = np.maximum(np.ceil(scale * (upper - lower)), 1)
        unit = self.space.to_unit(current[:, None], rows)
        window = self.space.from_unit(np.clip(unit + np.array([-scale, scale]), 0.0, 1.0), rows)
        log = self.space.log[rows]
        first = np.maximum(np.where(log, np.minimum(window[:, 0], current - 1), current - width), lower)
        last = np.minimum(np.where(log, np.maximum(window[:, 1], current + 1), current + width), upper)
        drawn = first[:, None] + np.floor(rng.random((len(rows), n)) * (last - first)[:, None])
        drawn += drawn >= current[:, None]  # the current value is left out
        numbers: Float64 = np.minimum(drawn, last[:, None])
        return numbers

    def _moves(self, raw: Float64, rng: np.random.Generator) -> tuple[IntArray, Float64]:
        """Return the exchanges of one raw configuration in random order: which row gets which number."""
        rows: list[IntArray] = []
        numbers: list[Float64] = []
        for row in self.space.categorical:
            if not np.isnan(raw[row]):
                others = np.delete(np.arange(len(self.space.columns[row].values), dtype=np.float64), int(raw[row]))
                rows.append(np.full(len(others), row))
                numbers.append(others)
        numeric = self.space.numeric[~np.isnan(raw[self.space.numeric])]
        if len(numeric):
            moved, drawn = self._numeric_moves(raw[numeric], numeric, rng)
            rows.append(moved)
            numbers.append(drawn)
        if not rows:
            return np.array([], dtype=np.int64), np.array([])
        order = rng.permutation(sum(map(len, rows)))
        return np.concatenate(rows)[order], np.concatenate(numbers)[order]

    def _numeric_moves(self, current: Float64, rows: IntArray, rng: np.random.Generator) -> tuple[IntArray, Float64]:
        n_draws, n_spare, scale = 4, 12, 0.2
        unit = self.space.to_unit(current[:, None], rows)
        # The inverse distribution function of the truncated normal draws what rejection outside [0, 1] would.
        below, above = ndtr(-unit / scale), ndtr((1 - unit) / scale)
        drawn = unit + scale * ndtri(below + rng.random((len(rows), n_spare)) * (above - below))
        numbers = self.space.from_unit(np.clip(drawn, 0.0, 1.0), rows)
        # Rounded integers must differ from the present value and from earlier draws. The last resort is a move by one,
        # where draws rarely leave the present value.
        integer = ~self.space.is_float[rows]
        step = np.where(current + 1 > self.space.upper[rows], current - 1, current + 1)
        valid = numbers != current[:, None]
        repeated = (numbers[:, :, None] == numbers[:, None, :]) & np.tri(n_spare, k=-1, dtype=np.bool_)
        valid &= ~repeated.any(axis=2)
        stuck = integer & ~valid.any(axis=1) & (self.space.upper[rows] > self.space.lower[rows])
        numbers[stuck, 0], valid[stuck, 0] = step[stuck], True
        valid &= np.cumsum(valid, axis=1) <= n_draws
        which = np.nonzero(valid)
        return rows[which[0]], numbers[which]

    def _exchange(self, raw: Float64, rows: IntArray, numbers: Float64) -> tuple[Float64, BoolArray]:
        """Put one number into each of m raw configurations ``(n_columns, m)``, in place.

        Returns the encoded results that are allowed, and the mask ``(m,)`` of those.
        """
        raw[rows, np.arange(len(rows))] = numbers
        self.space.settle(raw)
        allowed = ~self.space.is_forbidden(raw)
        return self.space.encode(raw[:, allowed]), allowed
