"""How the ensemble decides between classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cashmere.report.summary.values import dictionary, finite_number, one_line, shown_name
from cashmere.storage.facts import RunFacts


def decision_section(facts: RunFacts, target: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the thresholds that decide between classes, of two the positive last; None if none were requested."""
    decision = dictionary(facts.decision)
    if not decision:
        return None
    classes = list(target.get("classes") or [])
    thresholds = [finite_number(value) for value in decision.get("thresholds") or ()]
    of_classes = list(zip(classes, thresholds, strict=False))
    if target.get("positive") == 0:
        of_classes.reverse()
    gain = finite_number(decision.get("gain"))
    return {
        "metric": one_line(decision.get("metric")),
        "direction": "raised" if (decision.get("greater_is_better") is True) == ((gain or 0) >= 0) else "lowered",
        "gain": gain,
        "size": None if gain is None else abs(gain),
        "tuned": decision.get("tuned") is True,
        "wanted": one_line(decision.get("wanted")),
        "thresholds": [{"label": shown_name(label), "threshold": threshold} for label, threshold in of_classes],
    }
