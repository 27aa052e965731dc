"""What all plots share: axes to draw on, colours, and the error for a figure without data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cashmere.base.text import clean_text
from cashmere.exceptions import InvalidParameterError, MissingDependencyError, UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIRST, SECOND, THIRD = "#1b8a83", "#c76a0c", "#8a6fd1"
"""Colours of series: at least 3:1 against white and against the dark grey of notebooks (WCAG 1.4.11)."""

GREY = "#8a8378"

_NAME_LENGTH = 30


def axes_or_new(ax: Axes | None, *, height: float = 3.8) -> Axes:
    """Return the axes, or those of a new figure of this height in inches.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    """
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError("matplotlib", "A plot", "plot") from error
    return plt.subplots(figsize=(6.2, height), layout="constrained")[1]


def part(summary: Mapping[str, Any], section: str, name: str | None = None) -> Any:
    """Return a section of a summary, or a part of it.

    Raises
    ------
    InvalidParameterError
        If it is no summary.
    UsageError
        If there is nothing to draw, with the reason that the report gives.
    """
    if not isinstance(summary, Mapping) or section not in summary:
        found = f"a {type(summary).__name__}"
        raise InvalidParameterError("summary", found, "what cashmere.report.summarise_run(folder) returns")
    found = summary[section]
    if found.get("why_not") is not None:
        advice = " Call cashmere.explain(folder) first." if section == "explanation" else ""
        raise UsageError(f"There is nothing to plot. {found['why_not']}{advice}")
    if name is None:
        return found
    if found[name] is None:
        kinds = {
            "classes": "classifiers, but this model is a regressor",
            "values": "regressors, but this model is a classifier",
        }
        raise UsageError(f"This plot is for {kinds[name]}.")
    return found[name]


def text(name: object) -> str:
    r"""Shorten a name from a table, and escape it: matplotlib would read ``$`` as mathematics.

    Examples
    --------
    >>> print(text("price in $ or $US"))
    price in \$ or \$US
    """
    return clean_text(name, _NAME_LENGTH).replace("$", r"\$")
