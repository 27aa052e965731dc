"""Configurations as rows of numbers, and the space's prior and neighbourhoods on such rows.

======================  =====================  ====================================================================
symbol                  shape                  meaning
======================  =====================  ====================================================================
encoded                 ``(n, d)``             what surrogates see: no constants, inactive marked (`spec` 2.1)
raw                     ``(n_columns, n)``     inside this module only: one row per hyper-parameter in topological
                                               order (parents first), constants included, NaN for inactive
======================  =====================  ====================================================================
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from cashmere.base.arrays import BoolArray, FloatArray, IntArray
from cashmere.space.encoding.clauses import Clause, compile_condition, compile_forbidden
from cashmere.space.encoding.columns import Column, Kind, make_column

_MAX_TRIES = 1000
"""Rounds of rejection before `SpaceEncoder.sample` gives up (`spec/problem.md` 1.5)."""

_CACHE_SIZE = 50_000
"""Encoded configurations that are remembered."""


class SpaceEncoder:
    """Encodes the configurations of one space, draws from its prior and lists one-exchange neighbours.

    The space is compiled once; every method works on whole matrices. Columns follow the order of the space with
    constants left out. Floats and integers lie in [0, 1], categoricals are codes 0 .. k - 1; an inactive
    parameter is -1, an inactive categorical the extra code k (`spec/surrogates.md` 2.1).

    Parameters
    ----------
    space : ConfigurationSpace
        The space; it must not be changed afterwards.

    Attributes
    ----------
    names : tuple of str
        Hyper-parameter of each encoded column.
    is_categorical : (d,) bool array
        Columns that hold codes.
    is_integer : (d,) bool array
        Columns that hold the centres of integers' bins, see `bins`.
    levels : tuple of int arrays
        All columns: first those without parents, then those whose parents stand in earlier levels, and so on.
    n_listed : int or None
        How many configurations there are if they are listed, see `CatalogueEncoder`.

    Notes
    -----
    A ``NotEquals`` condition holds when its parent is inactive: ConfigSpace means it so and would reject anything else.
    Log-integers are drawn like ConfigSpace does, floor(exp(U(log lo, log(hi + 1)))), which is not uniform in the
    encoding. Priors that are not uniform (normal, beta) are drawn by ConfigSpace.

    Examples
    --------
    >>> import numpy as np
    >>> from ConfigSpace import ConfigurationSpace
    >>> encoder = SpaceEncoder(ConfigurationSpace({"depth": (1, 4), "kernel": ["rbf", "linear"]}))
    >>> encoder.sample(2, np.random.default_rng(0)).shape
    (2, 2)
    >>> dict(encoder.decode(np.array([0.375, 1.0])))
    {'depth': 2, 'kernel': 'linear'}
    """

    n_listed: int | None = None

    def __init__(self, space: ConfigurationSpace) -> None:
        self.space = space
        # ConfigSpace orders its hyper-parameters by depth, so that parents come before their children.
        self._columns: list[Column] = [make_column(hp) for hp in space.values()]
        row_of = {column.name: row for row, column in enumerate(self._columns)}
        self._row_of = row_of
        self._conditions: list[tuple[int, Clause]] = [
            (row, compile_condition(condition, self._columns, row_of))
            for row, column in enumerate(self._columns)
            for condition in space.parent_conditions_of[column.name]
        ]
        self._forbidden = [compile_forbidden(clause, self._columns, row_of) for clause in space.forbidden_clauses]

        self._kept = self._rows(lambda column: column.kind is not Kind.CONSTANT)
        kept = [self._columns[row] for row in self._kept]
        self.names: tuple[str, ...] = tuple(column.name for column in kept)
        self.is_categorical: BoolArray = np.array([column.kind is Kind.CATEGORICAL for column in kept], dtype=np.bool_)
        self.is_integer: BoolArray = np.array([column.kind is Kind.INTEGER for column in kept], dtype=np.bool_)
        depths = _depths(space)
        depth_of = np.array([depths[name] for name in self.names], dtype=np.int64)
        self.levels: tuple[IntArray, ...] = tuple(np.flatnonzero(depth_of == depth) for depth in np.unique(depth_of))
        self._marks = np.array([len(c.values) if c.kind is Kind.CATEGORICAL else -1.0 for c in kept])
        self._defaults = np.array([column.default for column in self._columns])
        self._lower = np.array([column.lower for column in self._columns])
        self._upper = np.array([column.upper for column in self._columns])
        self._log = np.array([column.log for column in self._columns], dtype=np.bool_)
        self._is_float = np.array([column.kind is Kind.FLOAT for column in self._columns], dtype=np.bool_)

        self._integers = self._rows(lambda column: column.kind is Kind.INTEGER)
        self._linear_integers = self._rows(lambda column: column.kind is Kind.INTEGER and not column.log)
        self._log_integers = self._rows(lambda column: column.kind is Kind.INTEGER and column.log)
        self._floats = self._rows(lambda column: column.kind is Kind.FLOAT)
        self._numeric = self._rows(lambda column: column.kind in (Kind.INTEGER, Kind.FLOAT))
        self._categorical = self._rows(lambda column: column.kind is Kind.CATEGORICAL)
        self._uniform_categorical = self._rows(lambda column: len(set(column.probabilities)) == 1)
        self._weighted_categorical = self._rows(lambda column: len(set(column.probabilities)) > 1)
        self._constant = self._rows(lambda column: column.kind is Kind.CONSTANT)
        self._not_uniform = self._rows(lambda column: not column.is_uniform)

        # id -> (configuration, row); the configuration is kept so that its id cannot be given to another one.
        self._cache: dict[int, tuple[Configuration, NDArray[np.float64]]] = {}

    def _rows(self, belongs: Any) -> IntArray:
        return np.array([row for row, column in enumerate(self._columns) if belongs(column)], dtype=np.int64)

    @property
    def n_dims(self) -> int:
        """Number of encoded columns d."""
        return len(self.names)

    # --- configurations <-> rows -----------------------------------------------------------------------------------

    def encode(self, configurations: Iterable[Configuration]) -> NDArray[np.float64]:
        """Return the encoded configurations, shape ``(n, d)``.

        The rows depend on the values only (not on ConfigSpace's vectors, which change by an ulp when a configuration
        is stored and loaded), so equal values give equal rows. They are remembered per configuration object.
        """
        rows = []
        for configuration in configurations:
            known = self._cache.get(id(configuration))
            if known is None or known[0] is not configuration:
                if len(self._cache) >= _CACHE_SIZE:
                    self._cache.clear()
                known = self._cache[id(configuration)] = (configuration, self._encode_one(configuration))
            rows.append(known[1])
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.n_dims)

    def _encode_one(self, configuration: Mapping[str, Any]) -> NDArray[np.float64]:
        raw = np.full((len(self._columns), 1), np.nan)
        for name, value in configuration.items():
            row = self._row_of[name]
            raw[row, 0] = self._columns[row].to_raw(value)
        row_vector: NDArray[np.float64] = self._encode_raw(raw)[0]
        return row_vector

    def decode(self, row: FloatArray) -> Configuration:
        """Return the configuration of an encoded row ``(d,)``.

        Entries of parameters that cannot be active are ignored; marks of those that must be become their default.

        Raises
        ------
        ConfigSpace.exceptions.ForbiddenValueError
            If the row hits a forbidden clause.
        """
        raw = self._decode_raw(np.asarray(row, dtype=np.float64)[None, :])[:, 0]
        values = {
            column.name: column.to_value(float(number))
            for column, number in zip(self._columns, raw, strict=True)
            if not np.isnan(number)
        }
        return Configuration(self.space, values=values)

    def keys(self, rows: FloatArray) -> NDArray[np.uint64]:
        """Return one 64-bit number per encoded row ``(n, d)``; equal rows have equal keys, others practically never."""
        bits = np.ascontiguousarray(rows, dtype=np.float64).view(np.uint64)
        # Small whole numbers differ only in their upper bits: fold them down before mixing.
        mixed = (bits ^ (bits >> np.uint64(29))) * _hash_factors(bits.shape[1])
        mixed ^= mixed >> np.uint64(32)
        keys: NDArray[np.uint64] = mixed.sum(axis=1, dtype=np.uint64)
        return keys

    # --- one parameter after the other -----------------------------------------------------------------------------

    def activity(self, rows: FloatArray) -> BoolArray:
        """Return which parameters of encoded rows ``(n, d)`` are active, shape ``(n, d)``.

        A row may be unfinished, marked as inactive from one of the `levels` on: it is right up to this level.
        """
        raw = self._decode_raw(np.asarray(rows, dtype=np.float64))
        active: BoolArray = ~np.isnan(raw[self._kept].T)
        return active

    def allowed(self, rows: FloatArray) -> BoolArray:
        """Return which encoded rows ``(n, d)`` hit no forbidden clause, shape ``(n,)``."""
        return ~self._is_forbidden(self._decode_raw(np.asarray(rows, dtype=np.float64)))

    def inactive_row(self) -> NDArray[np.float64]:
        """Return the encoded row ``(d,)`` that marks every parameter as inactive."""
        return self._marks.copy()

    def default_row(self) -> NDArray[np.float64]:
        """Return the default of every parameter, encoded, shape ``(d,)``; also of those inactive by default."""
        defaults = self._defaults[:, None].copy()
        defaults[self._integers] = self._to_unit(defaults[self._integers], self._integers)
        row: NDArray[np.float64] = defaults[self._kept, 0]
        return row

    def probabilities(self, column: int) -> NDArray[np.float64]:
        """Return the prior of the choices of a categorical column, shape ``(k,)``."""
        probabilities = np.array(self._columns[self._kept[column]].probabilities, dtype=np.float64)
        normalised: NDArray[np.float64] = probabilities / probabilities.sum()
        return normalised

    def bins(self, column: int, positions: FloatArray) -> NDArray[np.float64]:
        """Return centre and ends of the bins of an integer column that hold positions ``(n,)``, shape ``(3, n)``.

        Value v has the bin [v - 0.5, v + 0.5] on the scale of the column; all bins together are [0, 1].
        """
        row = self._kept[[column]]
        value = self._from_unit(np.asarray(positions, dtype=np.float64)[None, :], row)[0]
        return self._to_unit(value + np.array([[0.0], [-0.5], [0.5]]), np.repeat(row, 3))

    def with_defaults(self, rows: FloatArray) -> NDArray[np.float64]:
        """Return encoded rows ``(n, d)`` in which inactive parameters stand at their default instead of the mark."""
        rows = np.asarray(rows, dtype=np.float64)
        filled: NDArray[np.float64] = np.where(rows == self._marks, self.default_row(), rows)
        return filled

    # --- prior -----------------------------------------------------------------------------------------------------

    def choices(self, name: str) -> IntArray:
        """Return the codes of a categorical's choices that have positive prior probability; empty for other names."""
        row = self._row_of.get(name)
        if row is None or self._columns[row].kind is not Kind.CATEGORICAL:
            return np.array([], dtype=np.int64)
        return np.flatnonzero(np.array(self._columns[row].probabilities) > 0)

    def sample(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        fixed: Mapping[str, int] | None = None,
        max_tries: int = _MAX_TRIES,
    ) -> NDArray[np.float64]:
        """Draw encoded configurations from the prior of the space.

        Parameters
        ----------
        n : int
            Number of rows.
        rng : numpy.random.Generator
            Source of randomness.
        fixed : mapping of str to int, optional
            Codes of categoricals that are not drawn.
        max_tries : int
            Rounds of rejection by the forbidden clauses.

        Returns
        -------
        (n, d) array
            Valid rows, repetitions possible; fewer than `n` only if forbidden clauses still reject after `max_tries`.
        """
        accepted: list[NDArray[np.float64]] = []
        missing, drawn = n, 0
        size = n
        for _ in range(max_tries):
            if missing <= 0:
                break
            raw = self._draw_raw(size, rng, fixed or {})
            drawn += size
            if self._forbidden:
                raw = raw[:, ~self._is_forbidden(raw)]
            accepted.append(raw[:, :missing])
            missing -= accepted[-1].shape[1]
            # As many as should give the missing ones at the acceptance rate so far, within bounds of memory.
            size = min(16 + 2 * missing * drawn // max(n - missing, 1), 4096)
        if not accepted:
            return np.empty((0, self.n_dims))
        return self._encode_raw(accepted[0] if len(accepted) == 1 else np.hstack(accepted))

    def _draw_raw(self, n: int, rng: np.random.Generator, fixed: Mapping[str, int]) -> NDArray[np.float64]:
        raw = rng.random((len(self._columns), n))
        rows = self._linear_integers
        lower, upper = self._lower[rows, None], self._upper[rows, None]
        raw[rows] = np.minimum(lower + np.floor(raw[rows] * (upper - lower + 1)), upper)
        rows = self._log_integers
        lower, upper = self._lower[rows, None], self._upper[rows, None]
        # As ConfigSpace draws them: value v has mass log((v + 1)/v).
        raw[rows] = np.clip(np.floor(lower * np.exp(raw[rows] * np.log((upper + 1) / lower))), lower, upper)
        rows = self._uniform_categorical
        raw[rows] = np.floor(raw[rows] * (self._upper[rows, None] + 1))
        for row in self._weighted_categorical:
            edges = np.cumsum(self._columns[row].probabilities)
            raw[row] = np.searchsorted(edges / edges[-1], raw[row], side="right")
        for name, code in fixed.items():
            raw[self._row_of[name]] = code
        for row in self._not_uniform:
            raw[row] = self._columns[row].draw_from_prior(n, rng)
        raw[self._constant] = 0.0
        self._settle(raw, is_complete=True)
        return raw

    def enumerate(self, limit: int, *, fixed: Mapping[str, int] | None = None) -> NDArray[np.float64] | None:
        """Return all valid configurations, shape ``(n, d)``; None if there are more than `limit` or infinitely many.

        Parameters
        ----------
        limit : int
            How many are too many.
        fixed : mapping of str to int, optional
            Codes of categoricals that are not varied.
        """
        raw = np.empty((0, 1))
        clauses = dict(self._conditions)
        for row, column in enumerate(self._columns):
            clause = clauses.get(row)
            active = np.ones(raw.shape[1], dtype=np.bool_) if clause is None else clause.holds(raw)
            options = np.array([0.0])
            if active.any() and column.kind is not Kind.CONSTANT:
                size = raw.shape[1] * (column.upper - column.lower + 1)
                if column.kind is Kind.FLOAT or size > 10 * limit:  # forbidden clauses may still remove many
                    return None
                options = np.arange(column.lower, column.upper + 1)
                if fixed and column.name in fixed:
                    options = np.array([float(fixed[column.name])])
            repeats = np.where(active, len(options), 1)
            ends = np.cumsum(repeats)
            position = np.arange(ends[-1]) - np.repeat(ends - repeats, repeats)
            numbers = np.where(np.repeat(active, repeats), options[position], np.nan)
            raw = np.vstack([np.repeat(raw, repeats, axis=1), numbers])
        raw = raw[:, ~self._is_forbidden(raw)]
        return self._encode_raw(raw) if raw.shape[1] <= limit else None

    # --- neighbours ------------------------------------------------------------------------------------------------

    def neighbours(self, row: FloatArray, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the one-exchange neighbourhood of an encoded row (`spec/surrogates.md` 2.6).

        One active parameter is changed: a categorical to every other value, a number to 4 draws from N(v, 0.2^2) on
        the unit scale. Children that become active take their default; forbidden results are dropped.

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
        raw = self._decode_raw(np.asarray(row, dtype=np.float64)[None, :])[:, 0]
        rows, numbers = self._moves(raw, rng)
        return self._exchange(np.repeat(raw[:, None], len(rows), axis=1), rows, numbers)[0]

    def draw_neighbours(self, rows: FloatArray, counts: Sequence[int], rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw neighbours of several rows without replacement.

        Parameters
        ----------
        rows : (n, d) array
            Encoded configurations.
        counts : sequence of int
            How many neighbours to draw of each.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        (m, d) array
            At most ``sum(counts)`` rows; fewer where a neighbourhood is small.
        """
        spare = 8 if self._forbidden else 0  # in place of those that turn out to be forbidden
        raw = self._decode_raw(np.asarray(rows, dtype=np.float64))
        moves = [self._moves(start, rng) for start in raw.T]
        moved = [row[: count + spare] for (row, _), count in zip(moves, counts, strict=True)]
        numbers = [number[: count + spare] for (_, number), count in zip(moves, counts, strict=True)]
        if not moved:
            return np.empty((0, self.n_dims))
        owner = np.repeat(np.arange(len(moved)), [len(row) for row in moved])
        exchanged, allowed = self._exchange(raw[:, owner], np.concatenate(moved), np.concatenate(numbers))
        owner = owner[allowed]
        position = np.arange(len(owner)) - np.searchsorted(owner, owner)  # among those of the same start
        kept: NDArray[np.float64] = exchanged[position < np.asarray(counts)[owner]]
        return kept

    def coordinate_moves(
        self,
        rows: FloatArray,
        rng: np.random.Generator,
        *,
        n_draws: int = 10,
        scale: float = 0.2,
        fixed: Collection[str] = (),
    ) -> tuple[NDArray[np.float64], IntArray]:
        """Change every active parameter of encoded rows, one at a time (`spec/latent.md` 5.3).

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
            Draws per number; repetitions of integers are possible.
        scale : float
            Width of the moves, positive.
        fixed : collection of str
            Hyper-parameters that stay.

        Returns
        -------
        moved : (m, d) array
            The changed rows.
        owner : (m,) int array
            Which of `rows` each comes from, not in order.
        """
        raw = self._decode_raw(np.asarray(rows, dtype=np.float64))
        free = ~np.isnan(raw)
        free[[self._row_of[name] for name in fixed]] = False
        moves = [self._move_categoricals(raw, free)]
        for numeric, draw in ((self._floats, self._draw_floats), (self._integers, self._draw_integers)):
            which, owner = np.nonzero(free[numeric])
            if len(which):
                drawn = draw(raw[numeric[which], owner], numeric[which], n_draws, scale, rng)
                moves.append((np.repeat(numeric[which], n_draws), np.repeat(owner, n_draws), drawn.ravel()))
        moved, owner, numbers = (np.concatenate(parts) for parts in zip(*moves, strict=True))
        changed = numbers != raw[moved, owner]  # not so where the range is a single value
        moved, owner, numbers = moved[changed], owner[changed], numbers[changed]
        exchanged, allowed = self._exchange(raw[:, owner], moved, numbers)
        return exchanged, owner[allowed]

    def _move_categoricals(
        self, raw: NDArray[np.float64], free: BoolArray
    ) -> tuple[IntArray, IntArray, NDArray[np.float64]]:
        """Return for every choice of the free categoricals: its row, the configuration, the code."""
        which, owner = np.nonzero(free[self._categorical])
        rows = self._categorical[which]
        sizes = (self._upper[rows] + 1).astype(np.int64)
        codes = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.repeat(rows, sizes), np.repeat(owner, sizes), codes.astype(np.float64)

    def _draw_floats(
        self, current: NDArray[np.float64], rows: IntArray, n: int, scale: float, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        unit = current[:, None]
        # The inverse distribution function of the truncated normal draws what rejection outside [0, 1] would.
        below, above = ndtr(-unit / scale), ndtr((1 - unit) / scale)
        drawn: NDArray[np.float64] = unit + scale * ndtri(below + rng.random((len(rows), n)) * (above - below))
        return np.clip(drawn, 0.0, 1.0)

    def _draw_integers(
        self, current: NDArray[np.float64], rows: IntArray, n: int, scale: float, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        lower, upper = self._lower[rows], self._upper[rows]
        width = np.maximum(np.ceil(scale * (upper - lower)), 1)
        unit = self._to_unit(current[:, None], rows)
        window = self._from_unit(np.clip(unit + np.array([-scale, scale]), 0.0, 1.0), rows)
        log = self._log[rows]
        first = np.maximum(np.where(log, np.minimum(window[:, 0], current - 1), current - width), lower)
        last = np.minimum(np.where(log, np.maximum(window[:, 1], current + 1), current + width), upper)
        drawn = first[:, None] + np.floor(rng.random((len(rows), n)) * (last - first)[:, None])
        drawn += drawn >= current[:, None]  # the present value is left out
        numbers: NDArray[np.float64] = np.minimum(drawn, last[:, None])
        return numbers

    def _moves(self, raw: NDArray[np.float64], rng: np.random.Generator) -> tuple[IntArray, NDArray[np.float64]]:
        """Return the exchanges of one raw configuration in random order: which row gets which number."""
        rows: list[IntArray] = []
        numbers: list[NDArray[np.float64]] = []
        for row in self._categorical:
            if not np.isnan(raw[row]):
                others = np.delete(np.arange(len(self._columns[row].values), dtype=np.float64), int(raw[row]))
                rows.append(np.full(len(others), row))
                numbers.append(others)
        numeric = self._numeric[~np.isnan(raw[self._numeric])]
        if len(numeric):
            moved, drawn = self._numeric_moves(raw[numeric], numeric, rng)
            rows.append(moved)
            numbers.append(drawn)
        if not rows:
            return np.array([], dtype=np.int64), np.array([])
        order = rng.permutation(sum(map(len, rows)))
        return np.concatenate(rows)[order], np.concatenate(numbers)[order]

    def _numeric_moves(
        self, current: NDArray[np.float64], rows: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray, NDArray[np.float64]]:
        n_draws, n_spare, scale = 4, 12, 0.2
        unit = self._to_unit(current[:, None], rows)
        # The inverse distribution function of the truncated normal draws what rejection outside [0, 1] would.
        below, above = ndtr(-unit / scale), ndtr((1 - unit) / scale)
        drawn = unit + scale * ndtri(below + rng.random((len(rows), n_spare)) * (above - below))
        numbers = self._from_unit(np.clip(drawn, 0.0, 1.0), rows)
        # Rounded integers must differ from the present value and from earlier draws; a one-step move is the last
        # resort on ranges so wide that 0.2 of them is rarely left, or so narrow that a draw rarely gets away.
        integer = ~self._is_float[rows]
        step = np.where(current + 1 > self._upper[rows], current - 1, current + 1)
        valid = numbers != current[:, None]
        repeated = (numbers[:, :, None] == numbers[:, None, :]) & np.tri(n_spare, k=-1, dtype=np.bool_)
        valid &= ~repeated.any(axis=2)
        stuck = integer & ~valid.any(axis=1) & (self._upper[rows] > self._lower[rows])
        numbers[stuck, 0], valid[stuck, 0] = step[stuck], True
        valid &= np.cumsum(valid, axis=1) <= n_draws
        which = np.nonzero(valid)
        return rows[which[0]], numbers[which]

    def _exchange(
        self, raw: NDArray[np.float64], rows: IntArray, numbers: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], BoolArray]:
        """Put one number into each of m raw configurations ``(n_columns, m)``, in place.

        Returns the encoded results that are allowed, and the mask ``(m,)`` of those.
        """
        raw[rows, np.arange(len(rows))] = numbers
        self._settle(raw)
        allowed = ~self._is_forbidden(raw)
        return self._encode_raw(raw[:, allowed]), allowed

    # --- raw matrices ----------------------------------------------------------------------------------------------

    def _settle(self, raw: NDArray[np.float64], *, is_complete: bool = False) -> None:
        """Make activity consistent, in place: inactive becomes NaN, active but missing takes its default.

        Nothing is missing where every row has been drawn: `is_complete`.
        """
        masks: dict[Clause, tuple[BoolArray, BoolArray]] = {}
        for row, clause in self._conditions:
            if clause not in masks:
                # Parents stand above their children, so they are settled when they are looked at.
                active = clause.holds(raw)
                masks[clause] = active, ~active
            active, inactive = masks[clause]
            numbers = raw[row]
            if not is_complete:
                np.copyto(numbers, self._defaults[row], where=active & np.isnan(numbers))
            np.copyto(numbers, np.nan, where=inactive)

    def _is_forbidden(self, raw: NDArray[np.float64]) -> BoolArray:
        mask = np.zeros(raw.shape[1], dtype=np.bool_)
        for clause in self._forbidden:
            mask |= clause.holds(raw)
        return mask

    def _encode_raw(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        unit = raw.copy()
        unit[self._integers] = self._to_unit(raw[self._integers], self._integers)
        unit = unit[self._kept]
        np.copyto(unit, self._marks[:, None], where=np.isnan(unit))
        return np.ascontiguousarray(unit.T)

    def _decode_raw(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        unit = encoded.T.copy()
        unit[(unit < 0) | (self.is_categorical[:, None] & (unit >= self._marks[:, None]))] = np.nan
        raw = np.zeros((len(self._columns), len(encoded)))
        raw[self._kept] = unit
        raw[self._integers] = self._from_unit(raw[self._integers], self._integers)
        free = np.setdiff1d(np.arange(len(raw)), [row for row, _ in self._conditions])
        raw[free] = np.where(np.isnan(raw[free]), self._defaults[free, None], raw[free])
        self._settle(raw)
        return raw

    def _integer_scale(self, rows: IntArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the two ends lo - 0.5 and hi + 0.5 of integer rows, or their logarithms, each ``(len(rows), 1)``."""
        ends = np.stack([self._lower[rows] - 0.5, self._upper[rows] + 0.5])
        log = self._log[rows] & ~self._is_float[rows]
        ends[:, log] = np.log(ends[:, log])
        return ends[0][:, None], ends[1][:, None]

    def _to_unit(self, raw: NDArray[np.float64], rows: IntArray) -> NDArray[np.float64]:
        """Map raw numeric rows to [0, 1]: (v - lo + 0.5)/(hi - lo + 1) for integers, floats are there already."""
        low, high = self._integer_scale(rows)
        log = (self._log[rows] & ~self._is_float[rows])[:, None]
        scaled = np.where(log, np.log(np.where(log, raw, 1.0)), raw)
        unit: NDArray[np.float64] = np.where(self._is_float[rows, None], raw, (scaled - low) / (high - low))
        return unit

    def _from_unit(self, unit: NDArray[np.float64], rows: IntArray) -> NDArray[np.float64]:
        """Invert `_to_unit`; integers by rounding."""
        low, high = self._integer_scale(rows)
        log = (self._log[rows] & ~self._is_float[rows])[:, None]
        scaled = low + unit * (high - low)
        scaled = np.where(log, np.exp(np.where(log, scaled, 0.0)), scaled)
        rounded = np.clip(np.rint(scaled), self._lower[rows, None], self._upper[rows, None])
        raw: NDArray[np.float64] = np.where(self._is_float[rows, None], unit, rounded)
        return raw


class CatalogueEncoder(SpaceEncoder):
    """Encodes a space of which only the listed configurations may be drawn, as when recorded trials are replayed.

    Draws are without replacement, nothing has neighbours, and `decode` returns the listed objects.

    Parameters
    ----------
    space : ConfigurationSpace
        The space they belong to.
    catalogue : sequence of Configuration
        What may be drawn.
    """

    def __init__(self, space: ConfigurationSpace, catalogue: Sequence[Configuration]) -> None:
        super().__init__(space)
        rows = self.encode(catalogue)
        keys, first = np.unique(self.keys(rows), return_index=True)
        self._listed = rows[np.sort(first)]  # each once
        self.n_listed = len(self._listed)
        self._by_key = {int(key): catalogue[i] for key, i in zip(keys, first, strict=True)}

    def decode(self, row: FloatArray) -> Configuration:
        """Return the listed configuration of an encoded row ``(d,)``, or that of the space."""
        key = int(self.keys(np.asarray(row, dtype=np.float64)[None, :])[0])
        return self._by_key[key] if key in self._by_key else super().decode(row)

    def sample(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        fixed: Mapping[str, int] | None = None,
        max_tries: int = _MAX_TRIES,
    ) -> NDArray[np.float64]:
        """Draw at most `n` of the listed configurations, each at most once, in random order."""
        return rng.permutation(self._select(fixed))[:n]

    def _select(self, fixed: Mapping[str, int] | None) -> NDArray[np.float64]:
        rows = self._listed
        for name, code in (fixed or {}).items():
            rows = rows[rows[:, self.names.index(name)] == code]
        return rows

    def enumerate(self, limit: int, *, fixed: Mapping[str, int] | None = None) -> NDArray[np.float64] | None:
        """Return all listed configurations with these codes, or None if there are more than `limit`."""
        rows = self._select(fixed)
        return rows if len(rows) <= limit else None

    def draw_neighbours(self, rows: FloatArray, counts: Sequence[int], rng: np.random.Generator) -> NDArray[np.float64]:
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
    ) -> tuple[NDArray[np.float64], IntArray]:
        """Return no rows."""
        return np.empty((0, self.n_dims)), np.empty(0, dtype=np.int64)


def _depths(space: ConfigurationSpace) -> dict[str, int]:
    """Return how many generations of parents each hyper-parameter has."""
    depths: dict[str, int] = {}
    for name in space:  # parents come before their children
        depths[name] = 1 + max((depths[parent.name] for parent in space.parents_of[name]), default=-1)
    return depths


@functools.lru_cache(maxsize=16)
def _hash_factors(n: int) -> NDArray[np.uint64]:
    """Return n odd 64-bit factors, the same in every process."""
    return np.random.default_rng(20240229).integers(2**63, 2**64, size=n, dtype=np.uint64) | np.uint64(1)
