"""What the ensemble relies on, if the run has been explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cashmere.exceptions import CashmereError
from cashmere.explanations import Explanation, read_explanation
from cashmere.report.summary.values import finite_number, one_line, shown_name
from cashmere.storage.directory import EXPLANATION

GROUPS_SHOWN = 20
"""Largest number of columns, or groups of them, whose importances the page shows."""

_EFFECTS_SHOWN = 12


def explanation_section(folder: Path, digest: str | None) -> dict[str, Any]:
    """Return importances and effects; never make a report fail.

    Returns
    -------
    dict
        ``why_not``: None, or the text to show instead of the rest; else ``metric``, ``greater_is_better``, ``rows``,
        ``validation_rows``, ``repeats``, ``columns``, ``measured`` columns, ``n_groups``, ``outputs``,
        ``importances``, ``effects`` and ``words``.
    """
    nothing: dict[str, Any] = {"importances": [], "effects": [], "words": []}
    if not (folder / EXPLANATION).exists():
        return nothing | {"why_not": "The importance of columns has not been measured."}
    try:
        found = read_explanation(folder)
    except (CashmereError, OSError, ValueError, TypeError, LookupError):
        return nothing | {"why_not": "The explanation in the run directory cannot be read."}
    if found.digest != digest:
        return nothing | {"why_not": "The run has continued since its ensemble was explained."}
    return {"why_not": None, **_shown(found)}


def _shown(found: Explanation) -> dict[str, Any]:
    return {
        "metric": one_line(found.metric),
        "greater_is_better": found.greater_is_better,
        "rows": found.n_rows,
        "validation_rows": found.n_validation_rows,
        "repeats": found.repeats,
        "columns": found.n_columns,
        "measured": sum(len(each.columns) for each in found.importances),
        "n_groups": len(found.importances),
        "outputs": [shown_name(output) for output in found.outputs],
        "importances": [
            {
                "columns": [shown_name(name) for name in each.columns],
                "mean": finite_number(each.mean),
                "lower": finite_number(each.lower),
                "upper": finite_number(each.upper),
            }
            for each in found.importances[:GROUPS_SHOWN]
        ],
        "effects": [
            {
                "column": shown_name(each.column),
                "kind": each.kind.value,
                "points": [shown_name(point) if isinstance(point, str) else point for point in each.points],
                "partial_dependence": each.partial_dependence.tolist(),
                "ale": None if each.ale is None else each.ale.tolist(),
                "share": each.share.tolist(),
            }
            for each in found.effects[:_EFFECTS_SHOWN]
        ],
        "words": [
            {
                "column": shown_name(each.column),
                "words": [shown_name(word) for word in each.words],
                "outputs": [shown_name(output) for output in each.outputs],
                "change": each.change.tolist(),
                "share": each.share.tolist(),
            }
            for each in found.words[:_EFFECTS_SHOWN]
        ],
    }
