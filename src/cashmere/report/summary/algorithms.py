"""Trials, failures, scores and time of each algorithm."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from cashmere.evaluation.metrics import ScoreScale
from cashmere.report.summary.values import failed, score_of, succeeded
from cashmere.storage.trial_tables import algorithm_name


def algorithms_section(rows: Sequence[Mapping[str, Any]], scale: ScoreScale | None) -> list[dict[str, Any]]:
    """Return trials, failures, scores and time of each algorithm, the best first."""
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[algorithm_name(row["configuration"])].append(row)
    results = []
    for name, group in groups.items():
        losses = [float(row["loss"]) for row in group if succeeded(row)]
        results.append(
            {
                "algorithm": name,
                "trials": len(group),
                "failures": sum(failed(row) for row in group),
                "best_loss": min(losses, default=None),
                "best_score": score_of(scale, min(losses, default=None)),
                "median_score": score_of(scale, statistics.median(losses)) if losses else None,
                "seconds": float(sum(row["duration_seconds"] for row in group)),
                "scores": [score_of(scale, loss) for loss in losses],
            }
        )
    return sorted(results, key=lambda r: (r["best_loss"] is None, r["best_loss"] or 0.0, r["algorithm"]))
