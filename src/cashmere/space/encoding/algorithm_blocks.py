"""A space as a set of algorithms, each with a vector of its hyper-parameters.

====================  =====================  ======================================================================
symbol                shape                  meaning
====================  =====================  ======================================================================
M                     scalar                 algorithms ("tasks")
rows                  ``(n, d)``             encoded configurations of the whole space, see `SpaceEncoder`
vectors               ``(n, width)``         numbers in [0, 1] of the algorithm's coordinates, followed by zeros
====================  =====================  ======================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, NotEqualsCondition, OrConjunction
from ConfigSpace.conditions import ConditionLike, Conjunction
from ConfigSpace.hyperparameters import Hyperparameter, IntegerHyperparameter

from cashmere.base.arrays import Float64, FloatArray, IntArray
from cashmere.space.encoding.encoder import SpaceEncoder
from cashmere.space.space import ALGORITHM


class AlgorithmBlocks:
    """Describe configurations by their algorithm and a vector of all parameters that can matter under it.

    A number is its encoded value; a categorical with k choices is k numbers, one of them 1. A number that is inactive
    under its algorithm has its default value, an inactive categorical is all zeros. Parameters of operators join the
    vector of every algorithm under which they can be active. Two configurations of an algorithm have equal vectors if
    and only if they are equal.

    Parameters
    ----------
    encoder : SpaceEncoder
        The space. Without an unconditional categorical ``algorithm`` the whole space is one algorithm, ``"all"``.

    Attributes
    ----------
    encoder : SpaceEncoder
        The space.
    algorithms : tuple of M values
        The choices, in the order of their codes.
    names : tuple of M str
        The choices as text.
    coordinates : tuple of M tuples of str
        Meaning of the numbers of each algorithm's vector: ``"knn:n_neighbors"``, ``"knn:weights=uniform"``.
    n_dims : (M,) int array
        Length of each algorithm's vector.
    width : int
        The largest length.

    Examples
    --------
    >>> from ConfigSpace import Configuration, EqualsCondition
    >>> space = ConfigurationSpace({"algorithm": ["knn", "tree"], "k": (1, 10), "weights": ["u", "d"], "depth": (1, 4)})
    >>> space.add(EqualsCondition(space[name], space["algorithm"], "knn") for name in ("k", "weights"))
    >>> space.add(EqualsCondition(space["depth"], space["algorithm"], "tree"))
    >>> blocks = AlgorithmBlocks(SpaceEncoder(space))
    >>> blocks.coordinates
    (('k', 'weights=u', 'weights=d'), ('depth',))
    >>> row = blocks.encoder.encode([Configuration(space, {"algorithm": "knn", "k": 3, "weights": "d"})])
    >>> blocks.tasks(row), blocks.vectors(row)
    (array([0]), array([[0.25, 0.  , 1.  ]]))
    """

    def __init__(self, encoder: SpaceEncoder) -> None:
        self.encoder = encoder
        self._reachable = _reachable_names(encoder.space)
        self.algorithms: tuple[Any, ...] = tuple(self._reachable)
        self.names: tuple[str, ...] = tuple(map(str, self.algorithms))
        self._column = encoder.names.index(ALGORITHM) if _choice_of(encoder.space) is not None else None

        # The column and code of each coordinate; those of a categorical are adjacent.
        columns, codes, names = [], [], []
        for column, name in enumerate(encoder.names):
            values = _values_of(encoder.space[name]) if encoder.is_categorical[column] else ()
            columns += [column] * max(len(values), 1)
            codes += list(range(len(values))) or [-1]
            names += [f"{name}={value}" for value in values] or [name]
        self._columns, self._codes = np.array(columns, dtype=np.int64), np.array(codes, dtype=np.int64)
        self._defaults = encoder.default_row()[self._columns]

        places = [
            [place for place, column in enumerate(columns) if column != self._column and encoder.names[column] in known]
            for known in self._reachable.values()
        ]
        self.coordinates: tuple[tuple[str, ...], ...] = tuple(tuple(names[place] for place in own) for own in places)
        self.n_dims: IntArray = np.array([len(own) for own in places], dtype=np.int64)
        self.width = int(self.n_dims.max())
        # A column of zeros follows each algorithm's own coordinates.
        self._places = np.array([own + [len(columns)] * (self.width - len(own)) for own in places], dtype=np.int64)

    @property
    def drawable(self) -> IntArray:
        """Positions in `names` of the algorithms that the prior draws."""
        return np.zeros(1, dtype=np.int64) if self._column is None else self.encoder.choices(ALGORITHM)

    def fixed(self, task: int) -> dict[str, int]:
        """Return the codes that restrict draws from the prior to one algorithm, see `SpaceEncoder.sample`."""
        return {} if self._column is None else {ALGORITHM: int(task)}

    def tasks(self, rows: FloatArray) -> IntArray:
        """Return the position in `names` of the algorithm of encoded rows ``(n, d)``, shape ``(n,)``."""
        rows = np.asarray(rows, dtype=np.float64)
        if self._column is None:
            return np.zeros(len(rows), dtype=np.int64)
        return rows[:, self._column].astype(np.int64)

    def vectors(self, rows: FloatArray) -> Float64:
        """Return the vectors of encoded rows ``(n, d)``, shape ``(n, width)``, padded with zeros."""
        rows = np.asarray(rows, dtype=np.float64)
        chosen = rows[:, self._columns]
        numbers = np.where(chosen < 0, self._defaults, chosen)
        wide = np.where(self._codes < 0, numbers, chosen == self._codes)
        wide = np.hstack([wide, np.zeros((len(rows), 1))])
        vectors: Float64 = np.take_along_axis(wide, self._places[self.tasks(rows)], axis=1)
        return vectors

    def signature(self) -> dict[str, Any]:
        """Return, as plain data for JSON, what must be equal in another space for vectors to have the same meaning.

        Returns
        -------
        dict
            Algorithm -> hyper-parameter -> its range: ``kind``, and ``values`` of categoricals and ordinals, ``lower``,
            ``upper`` and ``log`` of numbers. Priors, defaults and conditions are not included.
        """
        return {
            algorithm: {
                name: _range_of(self.encoder.space[name])
                for column, name in enumerate(self.encoder.names)
                if name in known and column != self._column
            }
            for algorithm, known in zip(self.names, self._reachable.values(), strict=True)
        }


def _choice_of(space: ConfigurationSpace) -> CategoricalHyperparameter | None:
    """Return the hyper-parameter that chooses the algorithm, if there is one and it is always active."""
    choice = space.get(ALGORITHM)
    if isinstance(choice, CategoricalHyperparameter) and not space.parents_of[ALGORITHM]:
        return choice
    return None


def _reachable_names(space: ConfigurationSpace) -> dict[Any, set[str]]:
    """Return the hyper-parameters that can be active under each algorithm, considering each literal alone."""
    choice = _choice_of(space)
    if choice is None:
        return {"all": set(space)}
    reachable: dict[Any, set[str]] = {}
    for algorithm in choice.choices:
        found: set[str] = set()
        for name in space:  # parents come before their children
            if all(_can_hold(condition, algorithm, found) for condition in space.parent_conditions_of[name]):
                found.add(name)
        reachable[algorithm] = found
    return reachable


def _can_hold(condition: ConditionLike, algorithm: Any, reachable: set[str]) -> bool:
    if isinstance(condition, Conjunction):
        parts = [_can_hold(part, algorithm, reachable) for part in condition.components]
        return any(parts) if isinstance(condition, OrConjunction) else all(parts)
    if condition.parent.name == ALGORITHM:
        return bool(condition.satisfied_by_value({ALGORITHM: algorithm}))
    return condition.parent.name in reachable or isinstance(condition, NotEqualsCondition)


def _values_of(hyperparameter: Hyperparameter[Any, Any]) -> list[Any]:
    """Return the values of a categorical or an ordinal as plain data for JSON; empty for others."""
    values = getattr(hyperparameter, "choices", getattr(hyperparameter, "sequence", ()))
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    return [value if isinstance(value, str | int | float | None) else str(value) for value in plain]


def _range_of(hyperparameter: Hyperparameter[Any, Any]) -> dict[str, Any]:
    values = _values_of(hyperparameter)
    if values:
        kind = "categorical" if isinstance(hyperparameter, CategoricalHyperparameter) else "ordinal"
        return {"kind": kind, "values": values}
    number: Any = hyperparameter
    is_integer = isinstance(hyperparameter, IntegerHyperparameter)
    as_kind = int if is_integer else float
    return {
        "kind": "integer" if is_integer else "float",
        "lower": as_kind(number.lower),
        "upper": as_kind(number.upper),
        "log": bool(number.log),
    }
