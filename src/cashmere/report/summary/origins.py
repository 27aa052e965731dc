"""Where the configurations of the trials came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from cashmere.records.origin import Origin, OriginKind
from cashmere.report.summary.values import one_line

_ORIGINS_SHOWN = 8
"""Largest number of origins to name; the rest are counted together."""


def count_origins(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count the origins of the configurations, the rarest together."""
    counts = Counter(_kind(row["origin"]) for row in rows)
    kept = {origin for origin, _ in counts.most_common(_ORIGINS_SHOWN)}
    shown = {origin: n for origin, n in counts.items() if origin in kept}
    others = counts.total() - sum(shown.values())
    return shown | {"other origins": others} if others else shown


def _kind(origin: Origin) -> str:
    """Return the kind of an origin, without rounds and sub-spaces: contests have their own section."""
    if origin.kind is OriginKind.OTHER:
        return one_line(origin.detail) or "not known"
    return origin.kind.value
