"""The budget of a run and the resources it used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cashmere.exceptions import InvalidParameterError
from cashmere.records.budget import Budget
from cashmere.report.format import format_count, format_seconds
from cashmere.report.summary.values import dictionary, finite_number, one_line
from cashmere.storage.facts import RunFacts


def budget_text(settings: Mapping[str, Any], facts: RunFacts) -> str | None:
    """Return the budget of the first call, and that of all calls together if it is larger."""
    if not settings.get("budget"):
        return None
    first: str = one_line(settings["budget"])
    goal = dictionary(facts.goal)
    trials, seconds = finite_number(goal.get("trials")), finite_number(goal.get("seconds"))
    parts = [] if seconds is None else [format_seconds(seconds)]
    parts += [] if trials is None else [f"{format_count(trials)} trials"]
    try:
        asked = Budget.parse(settings["budget"])
    except InvalidParameterError:
        return first
    same = (asked.trials, asked.seconds) == (trials, seconds)
    return first if same or not parts else f"{first} at first, {' and '.join(parts)} in total"


def resources_section(rows: Sequence[Mapping[str, Any]], facts: RunFacts) -> dict[str, Any]:
    """Return durations, memory and speed."""
    latency = dictionary(facts.latency)
    memory = [row["memory_mib"] for row in rows if finite_number(row["memory_mib"]) is not None]
    busy = finite_number(facts.busy_seconds)
    return {
        "suggest_seconds": finite_number(facts.suggest_seconds),
        "ensemble_seconds": finite_number(facts.ensemble_seconds),
        "trial_seconds": float(sum(row["duration_seconds"] for row in rows)) if busy is None else busy,
        "fit_seconds": float(sum(row["fit_seconds"] for row in rows)),
        "predict_seconds": float(sum(row["predict_seconds"] for row in rows)),
        "utilisation": finite_number(facts.utilisation),
        "single_row_ms": finite_number(latency.get("single_row_ms")),
        "batch_rows_per_second": finite_number(latency.get("batch_rows_per_second")),
        "model_bytes": finite_number(facts.model_bytes),
        "peak_memory_mib": max(memory, default=None),
    }
