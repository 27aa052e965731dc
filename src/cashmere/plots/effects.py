"""How predictions depend on a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cashmere.exceptions import UnknownNameError, UsageError
from cashmere.plots.canvas import FIRST, GREY, SECOND, THIRD, axes_or_new, part, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_partial_dependence(summary: Mapping[str, Any], column: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Plot how the predictions of the ensemble depend on the values of a column.

    Solid lines show partial dependence, dashed lines accumulated local effects, which are better suited to correlated
    columns. Categorical columns have partial dependence only. With two classes the probability is that of the second;
    with more, each of the three largest classes has its own colour.

    Parameters
    ----------
    summary : dict
        From `cashmere.report.summarise_run`, of a run that `cashmere.explain` has explained.
    column : str, optional
        By default the most important one that is not a text column.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Raises
    ------
    UsageError
        If the ensemble has not been explained, or the explanation contains no effects.
    UnknownNameError
        If the effects of this column were not computed; see `effects` in `cashmere.explain`.

    See Also
    --------
    sklearn.inspection.PartialDependenceDisplay : the same for your own rows.
    """
    found = part(summary, "explanation")
    effects = {each["column"]: each for each in found["effects"]}
    if not effects:
        raise UsageError("There is nothing to plot: no effects were computed. Ask `cashmere.explain` for some.")
    if column is None:
        column = next(iter(effects))
    if column not in effects:
        raise UnknownNameError("column with effects", column, effects)
    effect = effects[column]
    ax = axes_or_new(ax)
    (_levels if effect["ale"] is None else _curves)(effect, found["outputs"], ax)
    label = "predicted value" if summary["task"] == "regression" else "predicted probability"
    if len(found["outputs"]) == 1 and summary["task"] != "regression":
        label += f" of {text(found['outputs'][0])}"
    name = text(column) + (" (year)" if effect["kind"] == "date" else "")
    if effect["ale"] is None:
        ax.set(xlabel=label, ylabel=name)
    else:
        ax.set(xlabel=name, ylabel=label)
    if effect["ale"] is not None or len(found["outputs"]) > 1:
        ax.legend()
    return ax


def _curves(effect: Mapping[str, Any], outputs: list[str], ax: Axes) -> None:
    several = len(outputs) > 1
    for k, (output, colour) in enumerate(zip(outputs, (FIRST, SECOND, THIRD), strict=False)):
        dependence, local = ([row[k] for row in effect[name]] for name in ("partial_dependence", "ale"))
        ax.plot(effect["points"], dependence, color=colour, label=text(output) if several else "partial dependence")
        ax.plot(
            effect["points"], local, color=colour if several else SECOND, linestyle="--",
            label=None if several else "accumulated local effects",
        )  # fmt: skip
    if several:
        ax.plot([], [], color=GREY, linestyle="--", label="accumulated local effects")
    # Marks at the points, which are quantiles: about equally many rows lie between any two.
    ax.plot(effect["points"], [0.015] * len(effect["points"]), "|", color=GREY, transform=ax.get_xaxis_transform())


def _levels(effect: Mapping[str, Any], outputs: list[str], ax: Axes) -> None:
    places = range(len(effect["points"]))
    for k, (output, colour) in enumerate(zip(outputs, (FIRST, SECOND, THIRD), strict=False)):
        ax.scatter([row[k] for row in effect["partial_dependence"]], places, color=colour, label=text(output))
    ax.set_yticks(places, [text(point) for point in effect["points"]])
    ax.invert_yaxis()
    ax.grid(axis="y", alpha=0.3)
