"""Where the configurations of the trials came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from cashmere.report.summary.values import one_line

_ORIGINS_SHOWN = 8
"""Origins named at most; the rest are counted together."""


def count_origins(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count where the configurations of the trials came from; the rarest together."""
    # A contest says "round 1 · svm | under · model": rounds and sub-spaces have a section of their own.
    kinds = ((one_line(row.get("origin")) or "not known").rpartition(" · ")[2].partition(":")[0] for row in rows)
    counts = Counter(kinds)
    kept = {origin for origin, _ in counts.most_common(_ORIGINS_SHOWN)}
    shown = {origin: n for origin, n in counts.items() if origin in kept}
    others = counts.total() - sum(shown.values())
    return shown | {"of other origin": others} if others else shown
