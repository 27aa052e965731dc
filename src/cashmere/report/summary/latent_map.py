"""The places of the trials in the latent space."""

from __future__ import annotations

from typing import Any

from cashmere.analysis.latent_map import summarise_latent_map
from cashmere.evaluation.metrics import ScoreScale
from cashmere.report.summary.values import dictionary
from cashmere.storage.facts import RunFacts


def latent_map_section(facts: RunFacts, scale: ScoreScale | None) -> dict[str, Any] | None:
    """Return the result of `summarise_latent_map`; None if there was no latent space, or the map cannot be read."""
    fact = dictionary(facts.latent_map)
    if not fact:
        return None
    try:
        return summarise_latent_map(fact, scale)
    except ValueError:
        return None
