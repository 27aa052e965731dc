"""Scores over trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cashmere.plots.canvas import FIRST, GREY, SECOND, axes_or_new, part, text
from cashmere.storage.trial_tables import BASELINE_NAME

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_trajectory(summary: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Plot the validation score of each trial, the best so far and the score of the ensemble over the trials.

    Trials that are far worse than the others lie outside the axes, as in the report.

    Parameters
    ----------
    summary : dict
        From `cashmere.report.summarise_run`.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.
    """
    from cashmere.report.figures.scale import score_label, shown_range  # the report is not needed to import estimators

    ax = axes_or_new(ax)
    from matplotlib.ticker import MaxNLocator  # after `axes_or_new`, which explains what to do if it is missing

    curves = part(summary, "curves")
    good = [each for each in curves["trials"] if each["score"] is not None]
    so_far = [each for each in curves["trials"] if each["best_score"] is not None]
    if curves["baseline_score"] is not None:
        ax.axhline(curves["baseline_score"], color=GREY, linestyle="--", linewidth=1.2, label=BASELINE_NAME)
    ax.scatter([t["trial"] for t in good], [t["score"] for t in good], s=14, color=GREY, label="a trial")
    best = [t["best_score"] for t in so_far]
    ax.step([t["trial"] for t in so_far], best, where="post", color=SECOND, label="best single model")
    ensemble = curves["ensemble"]
    scores = [p["score"] for p in ensemble]
    ax.step([p["trial"] for p in ensemble], scores, where="post", color=FIRST, linewidth=2, label="ensemble")
    shown = shown_range(summary, constant=True)
    if shown is not None:
        margin = 0.06 * (shown[1] - shown[0]) or 0.01 * abs(shown[0]) or 1.0
        ax.set_ylim(shown[0] - margin, shown[1] + margin)
    ax.set(xlabel="trial", ylabel=text(score_label(summary["metric"])))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend()
    return ax
