"""Members of the ensemble."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cashmere.exceptions import UsageError
from cashmere.plots.canvas import FIRST, axes_or_new, part, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_members(summary: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Plot the weights of the ensemble members, largest first, with the score of each member on its own.

    Parameters
    ----------
    summary : dict
        From `cashmere.report.summarise_run`.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Raises
    ------
    UsageError
        If the run has no final ensemble yet.
    """
    from cashmere.report.figures.scale import score_name  # the report is not needed to import estimators
    from cashmere.report.format import format_number

    members = part(summary, "ensemble")["members"]
    if not members:
        raise UsageError("There is nothing to plot. The final ensemble has not been built yet.")
    ax = axes_or_new(ax, height=1.1 + 0.28 * len(members))
    names = [text(each["algorithm"]) + (f" #{each['trial']}" if each["trial"] >= 0 else "") for each in members]
    places = range(len(members))
    bars = ax.barh(places, [each["weight"] or 0.0 for each in members], color=FIRST, height=0.7)
    ax.bar_label(bars, [format_number(each["score"]) for each in members], padding=4, fontsize="small")
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.margins(x=0.15, y=0.02)
    ax.set_xlabel(f"weight; the number is the {text(score_name(summary['metric']))} of the member alone")
    return ax
