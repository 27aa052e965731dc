"""Where the trials are in the latent space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cashmere.analysis.latent_map import LATENT_MAP_FACT, summarise_latent_map
from cashmere.evaluation.metrics import Metric
from cashmere.report.summary.values import dictionary


def latent_map_section(facts: Mapping[str, Any], metric: Metric | None) -> dict[str, Any] | None:
    """Return what `summarise_latent_map` finds; None where there was no latent space, or no map that can be read."""
    fact = dictionary(facts[LATENT_MAP_FACT])
    if not fact:
        return None
    try:
        return summarise_latent_map(fact, metric)
    except ValueError:
        return None
