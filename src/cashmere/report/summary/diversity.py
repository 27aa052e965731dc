"""How much trials and members differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cashmere.analysis.summary import summarise_diversity
from cashmere.evaluation.metrics import Metric, ScoreScale
from cashmere.report.summary.values import finite_number, score_of
from cashmere.storage.trial_tables import algorithm_name


def diversity_section(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    weights: Mapping[int, float],
    settings: Mapping[str, Any],
    metric: Metric | None,
    scale: ScoreScale | None,
) -> dict[str, Any]:
    """Return the result of `summarise_diversity`, with scores instead of losses and the names of members."""
    size = finite_number(settings.get("ensemble_size")) or 25
    members = sorted((n for n in weights if n >= 0), key=lambda n: (-weights[n], n))
    found = summarise_diversity(folder, rows, metric=metric, members=members, size=int(size))
    course = found["course"]
    if course is not None:
        course["member_scores"] = [[trial, score_of(scale, loss)] for trial, loss in course.pop("member")]
    names = {row["number"]: algorithm_name(row["configuration"]) for row in rows}
    found["n_members"] = len(members)
    found["members"] = [{"trial": number, "algorithm": names[number]} for number in found["members"]]
    found["selection"] = settings.get("ensemble", "selection") == "selection"
    return found
