"""Errors of predicted values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cashmere.plots.canvas import FIRST, GREY, SECOND, axes_or_new, part

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_residuals(summary: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Plot residuals (truth minus prediction) against predictions, on rows that the models have not seen.

    Lines show the median of the residuals, and the range that contains the middle 90 % of them.

    Parameters
    ----------
    summary : dict
        From `cashmere.report.summarise_run`.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Raises
    ------
    UsageError
        If the model is a classifier, or the run has no out-of-fold predictions to show.

    See Also
    --------
    sklearn.metrics.PredictionErrorDisplay : the same for your own rows.
    """
    found = part(summary, "diagnostics", "values")
    ax = axes_or_new(ax)
    predicted = [prediction for prediction, _ in found["points"]]
    residuals = [truth - prediction for prediction, truth in found["points"]]
    ax.scatter(predicted, residuals, s=10, color=GREY, label="a row")
    ax.axhline(0.0, color=GREY, linestyle="--", linewidth=1.2)
    along = [each["predicted"] for each in found["bands"]]
    ax.plot(along, [each["median"] for each in found["bands"]], color=FIRST, linewidth=2, label="median")
    ax.plot(along, [each["lower"] for each in found["bands"]], color=SECOND, label="nine of ten rows")
    ax.plot(along, [each["upper"] for each in found["bands"]], color=SECOND)
    ax.set(xlabel="predicted value", ylabel="residual (truth - prediction)")
    ax.legend()
    return ax
