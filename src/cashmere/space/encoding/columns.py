"""One hyper-parameter as a number: convert between its values and raw numbers.

The *raw* number of a value is what conditions and forbidden clauses compare: the position on the (log) unit scale for
floats, the integer itself for integers, the position in the sequence for ordinals and categoricals, 0 for constants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import numpy as np
from ConfigSpace.hyperparameters import (
    CategoricalHyperparameter,
    Constant,
    FloatHyperparameter,
    Hyperparameter,
    IntegerHyperparameter,
    OrdinalHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)

from cashmere.base.arrays import Float64
from cashmere.exceptions import SpaceError

_DECIMALS = 13
"""ConfigSpace rounds every float value to this many decimals."""

_DIGITS = 11
"""Significant digits of generated floats: of the value on log scales, of the larger bound on linear ones."""


class Kind(Enum):
    """The kind of values in a column."""

    FLOAT = auto()
    INTEGER = auto()
    """Integers and ordinals: an ordinal is the integer 0 .. k - 1."""
    CATEGORICAL = auto()
    CONSTANT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A hyper-parameter and the mapping between its values and raw numbers.

    Attributes
    ----------
    name : str
        Name of the hyper-parameter.
    kind : Kind
        Kind of its values.
    hyperparameter : Hyperparameter
        The original; needed to draw from priors that are not uniform.
    values : tuple
        Values in order of their raw number 0, 1, ...; empty for floats and integers.
    lower, upper : float
        Bounds of the value (floats, integers) or of the position.
    log : bool
        Whether the scale is logarithmic.
    probabilities : tuple of float
        Prior of the choices of a categorical.
    is_uniform : bool
        Whether the prior is uniform on the (log) scale; if not, ConfigSpace draws.
    default : float
        Raw number of the default value.
    """

    name: str
    kind: Kind
    hyperparameter: Hyperparameter[Any, Any] = field(repr=False, compare=False)
    values: tuple[Any, ...] = ()
    lower: float = 0.0
    upper: float = 1.0
    log: bool = False
    probabilities: tuple[float, ...] = ()
    is_uniform: bool = True
    default: float = 0.0
    positions: Mapping[Any, int] | None = field(default=None, repr=False, compare=False)

    def to_raw(self, value: Any) -> float:
        """Return the raw number of a value."""
        if self.kind is Kind.FLOAT:
            # Rounded as in ConfigSpace, so that a stored and loaded value gets the same number.
            return unit_position(round(float(value), _DECIMALS), self.lower, self.upper, log=self.log)
        if self.kind is Kind.CONSTANT:
            return 0.0
        if not self.values:
            return float(round(float(value)))
        return float(self.positions[value] if self.positions is not None else self.values.index(value))

    def to_value(self, raw: float) -> Any:
        """Return the value of a raw number."""
        if self.kind is Kind.FLOAT:
            return self._float_value(raw)
        if self.values:
            return self.values[round(raw)]
        return round(raw)

    def _float_value(self, unit: float) -> float:
        if unit == self.default:  # exact, because conditions may compare with it
            return round(float(self.hyperparameter.default_value), _DECIMALS)
        # Fewer digits than a float holds, so that the round trip to the unit position and back is exact.
        if self.log:
            value = math.exp(math.log(self.lower) + unit * (math.log(self.upper) - math.log(self.lower)))
            size = value
        else:
            value = self.lower + unit * (self.upper - self.lower)
            size = max(abs(self.lower), abs(self.upper))
        decimals = min(_DECIMALS, _DIGITS - 1 - math.floor(math.log10(size)))
        value = min(max(round(value, decimals), self.lower), self.upper)
        # A bound such as 2**-15 has more decimals than ConfigSpace keeps; rounding it must not leave the range.
        value = round(value, _DECIMALS)
        if value < self.lower:
            value = round(value + 10.0**-_DECIMALS, _DECIMALS)
        if value > self.upper:
            value = round(value - 10.0**-_DECIMALS, _DECIMALS)
        return value

    def draw_from_prior(self, n: int, rng: np.random.Generator) -> Float64:
        """Draw raw numbers from a prior that is not uniform, shape ``(n,)``."""
        state = np.random.RandomState(int(rng.integers(2**31)))
        drawn = np.asarray(self.hyperparameter.sample_value(n, seed=state), dtype=np.float64)
        if self.kind is Kind.INTEGER:
            return drawn
        if self.log:
            return np.log(drawn / self.lower) / math.log(self.upper / self.lower)
        return (drawn - self.lower) / (self.upper - self.lower)


def unit_position(value: float, lower: float, upper: float, *, log: bool) -> float:
    """Return (v - lo)/(hi - lo), of the logarithms if `log`, clipped to [0, 1]."""
    if log:
        value, lower, upper = math.log(value), math.log(lower), math.log(upper)
    return min(max((value - lower) / (upper - lower), 0.0), 1.0)


def make_column(hyperparameter: Hyperparameter[Any, Any]) -> Column:
    """Describe a ConfigSpace hyper-parameter as a column."""
    hp = hyperparameter
    name = hp.name
    if isinstance(hp, Constant):
        return Column(name=name, kind=Kind.CONSTANT, hyperparameter=hp, values=(hp.value,))
    if isinstance(hp, CategoricalHyperparameter | OrdinalHyperparameter):
        is_ordinal = isinstance(hp, OrdinalHyperparameter)
        values = tuple(hp.sequence if isinstance(hp, OrdinalHyperparameter) else hp.choices)
        try:
            positions: dict[Any, int] | None = {value: index for index, value in enumerate(values)}
        except TypeError:  # unhashable values, such as lists
            positions = None
        return Column(
            name=name,
            kind=Kind.INTEGER if is_ordinal else Kind.CATEGORICAL,
            hyperparameter=hp,
            values=values,
            upper=float(len(values) - 1),
            probabilities=() if isinstance(hp, OrdinalHyperparameter) else tuple(map(float, hp.probabilities)),
            default=float(values.index(hp.default_value)),
            positions=positions,
        )
    if isinstance(hp, FloatHyperparameter):
        lower, upper, log = float(hp.lower), float(hp.upper), bool(hp.log)
        return Column(
            name=name,
            kind=Kind.FLOAT,
            hyperparameter=hp,
            lower=lower,
            upper=upper,
            log=log,
            is_uniform=isinstance(hp, UniformFloatHyperparameter),
            default=unit_position(round(float(hp.default_value), _DECIMALS), lower, upper, log=log),
        )
    if isinstance(hp, IntegerHyperparameter):
        return Column(
            name=name,
            kind=Kind.INTEGER,
            hyperparameter=hp,
            lower=float(hp.lower),
            upper=float(hp.upper),
            log=bool(hp.log),
            is_uniform=isinstance(hp, UniformIntegerHyperparameter),
            default=float(hp.default_value),
        )
    raise SpaceError(
        f"The hyper-parameter {name!r} of type {type(hp).__name__} cannot be encoded. Use a float, integer, "
        "categorical, ordinal or constant hyper-parameter.",
        item=hp,
    )
