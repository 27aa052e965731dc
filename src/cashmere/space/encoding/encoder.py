"""The public face of the encoding: one object per space that encodes, draws and lists neighbours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from numpy.typing import NDArray

from cashmere.base.arrays import BoolArray, Float64, FloatArray, IntArray
from cashmere.space.encoding.codec import Codec
from cashmere.space.encoding.columns import Kind
from cashmere.space.encoding.compiled_space import CompiledSpace
from cashmere.space.encoding.keys import row_keys
from cashmere.space.encoding.neighbourhoods import Neighbourhoods
from cashmere.space.encoding.prior import MAX_TRIES, Prior


class SpaceEncoder:
    """Encode the configurations of one space, draw from its prior and list one-exchange neighbours.

    The space is compiled once; every method works on whole matrices and passes them to one of four parts: `Codec`,
    `Prior`, `Neighbourhoods` and `row_keys`. Columns follow the order of the space without constants. Floats and
    integers lie in [0, 1], categoricals are codes 0 .. k - 1; an inactive parameter is -1, an inactive categorical the
    extra code k (docs/papers/surrogates.md#encoding).

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
        All columns: first those without parents, then those whose parents are in earlier levels, and so on.
    n_listed : int or None
        Number of configurations if they are listed, see `CatalogueEncoder`.

    Notes
    -----
    A ``NotEquals`` condition holds when its parent is inactive, as in ConfigSpace, which would reject anything else.

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
        self.compiled = CompiledSpace(space)
        self.codec = Codec(self.compiled)
        self.prior = Prior(self.compiled)
        self.neighbourhoods = Neighbourhoods(self.compiled)

        encoded = [self.compiled.columns[row] for row in self.compiled.kept]
        self.names: tuple[str, ...] = tuple(column.name for column in encoded)
        self.is_categorical: BoolArray = np.array([c.kind is Kind.CATEGORICAL for c in encoded], dtype=np.bool_)
        self.is_integer: BoolArray = np.array([c.kind is Kind.INTEGER for c in encoded], dtype=np.bool_)
        depths = _depths(space)
        depth_of = np.array([depths[name] for name in self.names], dtype=np.int64)
        self.levels: tuple[IntArray, ...] = tuple(np.flatnonzero(depth_of == depth) for depth in np.unique(depth_of))

    @property
    def n_dims(self) -> int:
        """Number of encoded columns d."""
        return len(self.names)

    def restrict(self, part: ConfigurationSpace, allowed: Mapping[str, Collection[Any]]) -> SpaceEncoder:
        """Return the encoder of a part of the space.

        Parameters
        ----------
        part : ConfigurationSpace
            The space, restricted to `allowed`; see `cashmere.space.splitting.restriction.restrict`.
        allowed : mapping of str to collection
            Values of unconditional categoricals in the part.
        """
        return SpaceEncoder(part)

    # --- configurations <-> rows -----------------------------------------------------------------------------------

    def encode(self, configurations: Iterable[Configuration]) -> Float64:
        """Return the encoded configurations, shape ``(n, d)``, see `Codec.encode`."""
        return self.codec.encode(configurations)

    def decode(self, row: FloatArray) -> Configuration:
        """Return the configuration of an encoded row ``(d,)``, see `Codec.decode`."""
        return self.codec.decode(row)

    def keys(self, rows: FloatArray) -> NDArray[np.uint64]:
        """Return one 64-bit number per encoded row ``(n, d)``, equal for equal rows, see `row_keys`."""
        return row_keys(rows)

    # --- one parameter after the other -----------------------------------------------------------------------------

    def activity(self, rows: FloatArray) -> BoolArray:
        """Return which parameters of encoded rows ``(n, d)`` are active, shape ``(n, d)``, see `Codec.activity`."""
        return self.codec.activity(rows)

    def allowed(self, rows: FloatArray) -> BoolArray:
        """Return which encoded rows ``(n, d)`` hit no forbidden clause, shape ``(n,)``."""
        return self.codec.allowed(rows)

    def inactive_row(self) -> Float64:
        """Return the encoded row ``(d,)`` that marks every parameter as inactive."""
        return self.codec.inactive_row()

    def default_row(self) -> Float64:
        """Return the encoded default of every parameter, shape ``(d,)``, even of those inactive by default."""
        return self.codec.default_row()

    def with_defaults(self, rows: FloatArray) -> Float64:
        """Return encoded rows ``(n, d)`` in which inactive parameters have their default instead of the mark."""
        return self.codec.with_defaults(rows)

    def bins(self, column: int, positions: FloatArray) -> Float64:
        """Return centre and ends of the bins of an integer column, shape ``(3, n)``, see `Codec.bins`."""
        return self.codec.bins(column, positions)

    # --- prior -----------------------------------------------------------------------------------------------------

    def probabilities(self, column: int) -> Float64:
        """Return the prior of the choices of a categorical column, shape ``(k,)``."""
        return self.prior.probabilities(column)

    def choices(self, name: str) -> IntArray:
        """Return the codes of a categorical's choices that have positive prior probability; empty for other names."""
        return self.prior.choices(name)

    def sample(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        fixed: Mapping[str, int] | None = None,
        max_tries: int = MAX_TRIES,
    ) -> Float64:
        """Draw encoded configurations ``(n, d)`` from the prior, see `Prior.sample`."""
        return self.prior.sample(n, rng, fixed=fixed, max_tries=max_tries)

    def enumerate(self, limit: int, *, fixed: Mapping[str, int] | None = None) -> Float64 | None:
        """Return all valid configurations, or None if there are more than `limit`, see `Prior.enumerate`."""
        return self.prior.enumerate(limit, fixed=fixed)

    # --- neighbours ------------------------------------------------------------------------------------------------

    def neighbours(self, row: FloatArray, rng: np.random.Generator) -> Float64:
        """Return the one-exchange neighbourhood of an encoded row ``(d,)``, see `Neighbourhoods.neighbours`."""
        return self.neighbourhoods.neighbours(row, rng)

    def draw_neighbours(self, rows: FloatArray, counts: Sequence[int], rng: np.random.Generator) -> Float64:
        """Draw neighbours of several rows without replacement, see `Neighbourhoods.draw_neighbours`."""
        return self.neighbourhoods.draw_neighbours(rows, counts, rng)

    def coordinate_moves(
        self,
        rows: FloatArray,
        rng: np.random.Generator,
        *,
        n_draws: int = 10,
        scale: float = 0.2,
        fixed: Collection[str] = (),
    ) -> tuple[Float64, IntArray]:
        """Change every active parameter of encoded rows, one at a time, see `Neighbourhoods.coordinate_moves`."""
        return self.neighbourhoods.coordinate_moves(rows, rng, n_draws=n_draws, scale=scale, fixed=fixed)


def _depths(space: ConfigurationSpace) -> dict[str, int]:
    """Return how many generations of parents each hyper-parameter has."""
    depths: dict[str, int] = {}
    for name in space:  # parents come before their children
        depths[name] = 1 + max((depths[parent.name] for parent in space.parents_of[name]), default=-1)
    return depths
