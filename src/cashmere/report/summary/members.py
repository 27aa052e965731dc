"""The members of the ensemble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cashmere.base.text import clean_text, redact
from cashmere.evaluation.metrics import ScoreScale
from cashmere.report.summary.values import dictionary, finite_number, one_line, score_of
from cashmere.storage.facts import RunFacts
from cashmere.storage.trial_tables import (
    BASELINE_NAME,
    algorithm_name,
    calibration_text,
    predict_with_all_rows,
    repeats_text,
)


def ensemble_section(
    rows: Sequence[Mapping[str, Any]], weights: Mapping[int, float], facts: RunFacts, scale: ScoreScale | None
) -> dict[str, Any]:
    """Return the members by weight, the largest first, on how many splits they were fitted, and the calibration."""
    by_number = {row["number"]: row for row in rows}
    members = []
    for number, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
        row = by_number.get(number)
        baseline = facts.baseline_loss if number < 0 else None
        members.append(
            {
                "trial": number,
                "algorithm": BASELINE_NAME
                if number < 0
                else "?"
                if row is None
                else algorithm_name(row["configuration"]),
                "weight": finite_number(weight),
                "score": score_of(scale, baseline if row is None else row["loss"]),
                "configuration": {} if row is None else configuration_summary(row["configuration"]),
            }
        )
    return {
        "kind": one_line(dictionary(facts.ensemble).get("kind"), None),
        "members": members,
        "repeats": repeats_text(facts, weights),
        "predict_with_all_rows": predict_with_all_rows(facts, weights),
        "calibration": calibration_text(facts),
    }


def configuration_summary(configuration: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a stored configuration as short texts, without the name of the algorithm in front.

    Examples
    --------
    >>> configuration_summary({"algorithm": "knn", "knn:n_neighbors": 5, "knn:p": 1.2345678})
    {'n_neighbors': '5', 'p': '1.235'}
    """
    prefix = f"{configuration.get('algorithm')}:"
    values = {}
    for name, value in sorted(configuration.items()):
        if name != "algorithm":
            text = f"{value:.4g}" if isinstance(value, float) else value
            values[clean_text(str(name)[:1000].removeprefix(prefix), 60)] = redact(clean_text(text, 60))
    return values
