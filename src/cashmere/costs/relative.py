"""What algorithms cost relative to each other, before a run has seen any of them: a table made from recordings."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

RELATIVE_COSTS = Path(__file__).with_name("relative_costs.json")
"""The table, with its provenance; `python -m benchmarks costs --write` makes it from the recordings."""


@functools.cache
def log_relative_costs() -> Mapping[str, float]:
    """Return the logarithm of the relative cost of each known algorithm; 0 is their geometric mean."""
    table = json.loads(RELATIVE_COSTS.read_text(encoding="utf-8"))
    return MappingProxyType({name: math.log(cost) for name, cost in table["relative_costs"].items()})
