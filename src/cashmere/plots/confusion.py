"""Confusion of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cashmere.plots.canvas import axes_or_new, part, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COUNTED = 6
"""Largest number of classes with which cells also show their number of rows."""


def plot_confusion_matrix(summary: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Plot which classes are confused with which, on rows that the models have not seen.

    A cell shows the share of the rows of its true class and, with few classes, their number. With more than ten
    classes, the smallest are merged.

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
    sklearn.metrics.ConfusionMatrixDisplay : the same for your own rows.
    """
    found = part(summary, "diagnostics", "classes")["confusion"]
    counts = np.array(found["counts"])
    ax = axes_or_new(ax, height=1.4 + 0.45 * max(5, len(counts)))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    # No share reaches the darkest third of the map, so black text is legible everywhere.
    ax.imshow(shares, cmap="GnBu", vmin=0, vmax=1.5, aspect="auto")
    for (i, j), share in np.ndenumerate(shares):
        if counts[i, j] > 0:
            number = f"\n{counts[i, j]:,.0f}" if len(counts) <= _COUNTED else ""
            cell = f"{100 * share:.0f} %{number}" if share >= 0.005 else f"<1 %{number}"
            ax.text(j, i, cell, ha="center", va="center", color="black", fontsize="small")
    labels = [text(label) for label in found["labels"]]
    fits = sum(map(len, labels)) <= 50
    ax.set_xticks(range(len(labels)), labels, rotation=0 if fits else 90)
    ax.set_yticks(range(len(labels)), labels)
    ax.set(xlabel="predicted", ylabel="true")
    return ax
