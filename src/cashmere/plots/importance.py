"""Importances of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cashmere.plots.canvas import FIRST, GREY, axes_or_new, part, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_importance(summary: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Plot the permutation importances of the columns on unseen rows, with 90 % intervals.

    Each bar shows by how much the loss of the ensemble rises when a column is permuted. Correlated columns are permuted
    together and share a bar. At most 20 bars are shown.

    Parameters
    ----------
    summary : dict
        From `cashmere.report.summarise_run`, of a run that `cashmere.explain` has explained.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Raises
    ------
    UsageError
        If the ensemble has not been explained.

    See Also
    --------
    cashmere.explain : computes the importances.
    """
    found = part(summary, "explanation")
    bars = found["importances"]
    ax = axes_or_new(ax, height=1.1 + 0.28 * len(bars))
    places = range(len(bars))
    means = [each["mean"] for each in bars]
    reach = [
        [max(0.0, each["mean"] - each["lower"]) for each in bars],
        [max(0.0, each["upper"] - each["mean"]) for each in bars],
    ]
    ink = ax.spines["left"].get_edgecolor()
    ax.axvline(0.0, color=GREY, linewidth=1.0)
    ax.barh(places, means, xerr=reach, color=FIRST, height=0.7, ecolor=ink, error_kw={"elinewidth": 1.6, "capsize": 2})
    names = [
        text(each["columns"][0]) + (f" + {len(each['columns']) - 1} more" if len(each["columns"]) > 1 else "")
        for each in bars
    ]
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.margins(y=0.02)
    ax.set_xlabel(f"{'fall' if found['greater_is_better'] else 'rise'} of {text(found['metric'])}")
    return ax
