"""The main numbers, at the top of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cashmere.evaluation.metrics import ScoreScale
from cashmere.report.summary.curves import ensemble_curve
from cashmere.report.summary.values import failed, finite_number, one_line, score_of
from cashmere.storage.facts import RunFacts


def headline_section(
    rows: Sequence[Mapping[str, Any]],
    facts: RunFacts,
    board: Sequence[Mapping[str, Any]],
    scale: ScoreScale | None,
) -> dict[str, Any]:
    """Return scores of ensemble, best trial and constant prediction, and how the run ended."""
    best = board[0] if board else None
    seconds = [row["finished_at"] for row in rows]
    curve = ensemble_curve(facts)
    ensemble_loss = finite_number(facts.ensemble_loss)
    if ensemble_loss is None and curve:
        ensemble_loss = curve[-1]["ensemble_loss"]
    single, constant = best and best["loss"], finite_number(facts.baseline_loss)
    joined = facts.joined_losses
    if joined is not None and best is not None and joined["trial"] == best["trial"]:
        single, constant = finite_number(joined["single"]), finite_number(joined["constant"])
        constant_cross_fitted = finite_number(joined["constant_cross_fitted"])
    else:
        joined, constant_cross_fitted = None, constant
    return {
        "ensemble_loss": ensemble_loss,
        "ensemble_score": score_of(scale, ensemble_loss),
        "cross_fitted_loss": finite_number(facts.cross_fitted_loss),
        "cross_fitted_score": score_of(scale, facts.cross_fitted_loss),
        "baseline_loss": constant,
        "baseline_score": score_of(scale, constant),
        "baseline_cross_fitted_loss": constant_cross_fitted,
        "baseline_cross_fitted_score": score_of(scale, constant_cross_fitted),
        "best_loss": single,
        "best_score": score_of(scale, single),
        "is_joined": joined is not None,
        "best_trial": best and best["trial"],
        "best_algorithm": best and best["algorithm"],
        "trials": len(rows),
        "failures": sum(failed(row) for row in rows),
        "stopped": sum(row["status"] == "stopped" for row in rows),
        "seconds": max([*seconds, finite_number(facts.elapsed_seconds) or 0.0]),
        "stop_reason": one_line(facts.stop_reason, None),
        "finished": facts.stop_reason is not None,
    }
