"""Reliability of probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cashmere.plots.canvas import FIRST, GREY, axes_or_new, part, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_calibration(summary: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Plot predicted probabilities against observed shares of the event, on rows that the models have not seen.

    The event is the second of two classes; with more classes, that the most probable class is the true one.

    Parameters
    ----------
    summary : dict
        From `cashmere.report.summarise_run`.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Raises
    ------
    UsageError
        If the model is a regressor, or the run has no out-of-fold predictions to show.

    See Also
    --------
    sklearn.calibration.CalibrationDisplay : the same for your own rows.
    """
    found = part(summary, "diagnostics", "classes")["reliability"]
    ax = axes_or_new(ax)
    bins = found["bins"]
    predicted, observed = ([each[name] for each in bins] for name in ("predicted", "observed"))
    # With row weights, rounding can put a share just outside its interval.
    reach = [
        [max(0.0, each["observed"] - each["lower"]) for each in bins],
        [max(0.0, each["upper"] - each["observed"]) for each in bins],
    ]
    ends = [min(predicted), max(predicted)]
    ax.plot(ends, ends, color=GREY, linestyle="--", linewidth=1.2, label="perfect")
    ax.errorbar(
        predicted, observed, yerr=reach, color=FIRST, fmt="o-", markersize=5, elinewidth=1.4, linewidth=1.0,
        label="observed, with 90 % intervals",
    )  # fmt: skip
    event = "the most probable class" if found["of"] is None else text(found["of"])
    ax.set(xlabel=f"predicted probability of {event}", ylabel="observed share")
    ax.legend()
    return ax
