"""The warnings at the top of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cashmere.storage.trial_tables import perfection_text

_CLEARLY = 0.1
"""Share of the gain over the constant prediction above which the selection score is clearly too optimistic."""


def warnings_of(summary: Mapping[str, Any]) -> list[str]:
    """Return the warnings for a summary, as sentences."""
    head = summary["headline"]
    trials, failures = head["trials"], head["failures"]
    ensemble, cross_fitted, baseline = head["ensemble_loss"], head["cross_fitted_loss"], head["baseline_loss"]
    baseline_cross_fitted = head["baseline_cross_fitted_loss"]
    found = []
    if not head["finished"]:
        found.append(
            "This run has not finished: it is still working, or it was killed. The numbers are those of the trials "
            "stored so far; cashmere resume continues it."
        )
    if trials == 0:
        found.append("No trial has finished yet. Until one does, the model is the constant prediction.")
    elif failures == trials:
        who = "The only trial" if trials == 1 else f"All {trials} trials"
        found.append(
            f"{who} failed, so the model is the constant prediction. See Failures for the causes and what to try."
        )
    elif 2 * failures > trials:
        found.append(
            f"More than half of the trials failed ({failures} of {trials}). The search has seen little of its space; "
            "see Failures for the causes and what to try."
        )
    if ensemble is not None and baseline is not None and ensemble >= baseline and trials > failures:
        found.append(
            "The ensemble is not better than the constant prediction. The columns may contain no information about the "
            "target, the budget may be too small, or rows and target may no longer match. Do not rely on this model."
        )
    elif (
        cross_fitted is not None
        and ensemble is not None
        and baseline_cross_fitted is not None
        and cross_fitted >= baseline_cross_fitted
    ):
        found.append(
            "On rows that did not choose it, the ensemble is not better than the constant prediction: its advantage "
            "comes from choosing among many models on few rows. Do not rely on this model without more data."
        )
    elif cross_fitted is not None and ensemble is not None:
        gain = abs(ensemble) if baseline is None else baseline - ensemble
        harder = 0.0 if baseline is None or baseline_cross_fitted is None else baseline_cross_fitted - baseline
        lost = cross_fitted - ensemble - harder  # in time, other rows are cross-fitted than those that choose
        if lost > _CLEARLY * gain:
            share = f"{lost / gain:.0%}" if gain > 0 else "most"
            of = "its loss" if baseline is None else "its gain over the constant prediction"
            found.append(
                f"The cross-fitted score is clearly worse than the selection score: {share} of {of} comes from "
                "choosing and judging the ensemble on the same rows. Expect the cross-fitted score on new data."
            )
    if (doubt := perfection_text(ensemble if cross_fitted is None else cross_fitted, baseline)) is not None:
        found.append(doubt)
    return found
