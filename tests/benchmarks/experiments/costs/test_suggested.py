"""How cheap suggestions are, by the rule that weighs costs."""

from __future__ import annotations

import pytest

from benchmarks.experiments.costs.suggested import RULES, run
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.tables.manifest import find_tables


@pytest.mark.slow
def test_crediting_what_is_cheap_suggests_the_cheapest(one_table):
    (table,) = find_tables(one_table, ["small"])
    found = {each.rule: each for each in run(table, RunKey("small", "5fold", 0, 12.0, 225))}
    assert list(found) == list(RULES) and len({each.trials for each in found.values()}) == 1
    assert 0 <= found["credited"].cheaper < found["order"].cheaper <= 1
