"""What algorithms cost relative to each other, before a run has seen any of them: tables made from other runs."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

RELATIVE_COSTS = Path(__file__).with_name("relative_costs.json")
"""The tables, with their provenance; `python -m benchmarks costs --write` makes them.

What was added to the costs of ``default`` is of algorithms that are not among their rows; 0 is the mean of the others.
"""

FOLLOWED, SEARCHED = "followed", "searched"
"""Which table: of trials that follow rounds, trees, epochs and penalties, or of spaces that search them."""

SEARCHED_SPACES = frozenset({"classic", "volcano", "sklearn12", "imbalance", "autosklearn6"})
"""Names of the spaces without paths: there, a trial of a booster has the rounds of its configuration."""


@functools.cache
def log_relative_costs(space: str | None = None) -> Mapping[str, float]:
    """Return the logarithm of the relative cost of each known algorithm; 0 is their geometric mean.

    Parameters
    ----------
    space : str, optional
        Name of the space; by default, and for custom ones, the costs are those of ``default``.

    Returns
    -------
    mapping of str to float
        By algorithm, with the defaults of its choices; by ``algorithm:hyper-parameter=value`` what another choice adds.
    """
    table = SEARCHED if space in SEARCHED_SPACES else FOLLOWED
    tables = json.loads(RELATIVE_COSTS.read_text(encoding="utf-8"))
    costs = tables[table]["relative_costs"]
    if table == FOLLOWED:
        costs |= tables["added"]["relative_costs"]
    return MappingProxyType({name: math.log(cost) for name, cost in costs.items()})


def choice_name(hyperparameter: str, value: object) -> str:
    """Return the name of a choice in the tables.

    Examples
    --------
    >>> choice_name("svm:scaling", "quantile")
    'svm:scaling=quantile'
    """
    return f"{hyperparameter}={value}"
