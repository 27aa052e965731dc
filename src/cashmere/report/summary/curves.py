"""Scores over the trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cashmere.evaluation.metrics import ScoreScale
from cashmere.report.summary.values import finite_number, one_line, score_of, succeeded
from cashmere.storage.facts import CurvePoint, RunFacts


def curves_section(rows: Sequence[Mapping[str, Any]], facts: RunFacts, scale: ScoreScale | None) -> dict[str, Any]:
    """Return the score of every trial, the best so far and that of the ensemble, in the order of trials."""
    trials, best = [], None
    for row in rows:
        loss = float(row["loss"]) if succeeded(row) else None
        if loss is not None and (best is None or loss < best):
            best = loss
        trials.append(
            {
                "trial": int(row["number"]),
                "seconds": row["finished_at"],
                "status": one_line(row["status"]),
                "score": score_of(scale, loss),
                "best_score": score_of(scale, best),
            }
        )
    ensemble = [
        {
            "trial": p["trials"] - 1,
            "seconds": finite_number(p["seconds"]),
            "score": score_of(scale, p["ensemble_loss"]),
        }
        for p in ensemble_curve(facts)
        if p["trials"] >= 1
    ]
    final = score_of(scale, facts.ensemble_loss)
    if final is not None and trials:
        ensemble.append({"trial": trials[-1]["trial"], "seconds": trials[-1]["seconds"], "score": final})
    return {"trials": trials, "ensemble": ensemble, "baseline_score": score_of(scale, facts.baseline_loss)}


def ensemble_curve(facts: RunFacts) -> list[CurvePoint]:
    """Return the recorded points of the ensemble while it grew, those with a finite loss."""
    return [point for point in facts.curve or () if finite_number(point["ensemble_loss"]) is not None]
