"""What algorithms cost relative to each other, known before the first trial: tables made from other runs."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

RELATIVE_COSTS = Path(__file__).with_name("relative_costs.json")
"""The tables, with their provenance; `python -m benchmarks costs --write` makes them.

The part ``added`` holds algorithms that were measured apart from the others of ``default``, relative to their mean.
"""

FOLLOWED, SEARCHED = "followed", "searched"
"""Names of the tables: trials that follow rounds, trees, epochs and penalties; spaces that search them."""

SEARCHED_SPACES = frozenset({"classic", "volcano", "sklearn12", "imbalance", "autosklearn6"})
"""Names of the spaces without paths: there, the configuration of a booster sets its rounds."""


@dataclass(frozen=True, kw_only=True)
class RelativeCosts:
    """What algorithms and their choices cost relative to each other.

    Attributes
    ----------
    logs : mapping of str to float
        Logarithm of the relative cost with two classes or values; 0 is the mean of the algorithms. By algorithm, with
        the defaults of its choices; by ``algorithm:hyper-parameter=value`` what another choice adds.
    exponents : mapping of str to float
        By algorithm, the power of the number of outputs with which its cost grows, relative to the mean of the others.
        With more than two classes, many boosters grow one tree for each of them in every round, while a network only
        has a wider last layer.
    """

    logs: Mapping[str, float]
    exponents: Mapping[str, float] = field(default_factory=dict)

    def with_classes(self, n_classes: int) -> dict[str, float]:
        """Return the logarithms of the relative costs on a table with some number of classes, 1 for values.

        Examples
        --------
        >>> costs = RelativeCosts(logs={"knn": -1.0, "lightgbm": 1.0}, exponents={"knn": -0.5, "lightgbm": 0.5})
        >>> costs.with_classes(2)
        {'knn': -1.0, 'lightgbm': 1.0}
        >>> {name: round(log, 1) for name, log in costs.with_classes(10).items()}
        {'knn': -2.2, 'lightgbm': 2.2}
        """
        log_outputs = log_number_of_outputs(n_classes)
        return {name: log + self.exponents.get(name, 0.0) * log_outputs for name, log in self.logs.items()}

    def to_json(self) -> dict[str, Any]:
        """Return plain data, as the file of the package holds it: costs, not their logarithms."""
        return {
            "relative_costs": {name: round(math.exp(self.logs[name]), 3) for name in sorted(self.logs)},
            "exponents": {name: round(self.exponents[name], 3) for name in sorted(self.exponents)},
        }


def log_number_of_outputs(n_classes: int) -> float:
    """Return the logarithm of the number of values that a learner predicts per row; two classes need one."""
    return math.log(n_classes) if n_classes > 2 else 0.0


@functools.cache
def log_relative_costs(space: str | None = None, n_classes: int = 1) -> Mapping[str, float]:
    """Return the logarithm of the relative cost of each known algorithm and choice, see `RelativeCosts`.

    Parameters
    ----------
    space : str, optional
        Name of the space; by default, and for custom ones, the costs are those of ``default``.
    n_classes : int
        Number of classes; 1 for regression.

    Returns
    -------
    mapping of str to float
        By algorithm and choice.
    """
    table = SEARCHED if space in SEARCHED_SPACES else FOLLOWED
    tables = json.loads(RELATIVE_COSTS.read_text(encoding="utf-8"))
    costs = tables[table]["relative_costs"]
    if table == FOLLOWED:
        costs |= tables["added"]["relative_costs"]
    known = RelativeCosts(
        logs={name: math.log(cost) for name, cost in costs.items()}, exponents=tables[table].get("exponents", {})
    )
    return MappingProxyType(known.with_classes(n_classes))


def choice_name(hyperparameter: str, value: object) -> str:
    """Return the name of a choice in the tables.

    Examples
    --------
    >>> choice_name("svm:scaling", "quantile")
    'svm:scaling=quantile'
    """
    return f"{hyperparameter}={value}"
