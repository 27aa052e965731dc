"""The contest of sub-spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cashmere.analysis.contest import recorded_contest
from cashmere.analysis.contest_summary import summarise_contest
from cashmere.evaluation.metrics import ScoreScale
from cashmere.report.summary.values import dictionary
from cashmere.storage.facts import RunFacts


def contest_section(
    facts: RunFacts, rows: Sequence[Mapping[str, Any]], scale: ScoreScale | None
) -> dict[str, Any] | None:
    """Return the result of `summarise_contest`; None if there was no contest, or it cannot be read."""
    fact = dictionary(facts.contest)
    if not fact:
        return None
    try:
        return summarise_contest(recorded_contest(fact, rows, scale))
    except ValueError:
        return None
