"""Importances of columns, and how predictions follow the first of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cashmere.charts.interval_bars import IntervalBar, interval_bars
from cashmere.charts.lines import Series, line_chart
from cashmere.charts.svg import fitted_name
from cashmere.report.figures.scale import SIZES
from cashmere.report.format import format_number

_WIDTH, _HEIGHT = 420, 270
_COLOURS = ("s1", "s2", "s4")


def importance_charts(summary: Mapping[str, Any]) -> list[str]:
    """Draw the importances of columns, for wide and for narrow pages."""
    found = summary["explanation"]
    if not found["importances"]:
        return []
    direction = "fall of" if found["greater_is_better"] else "rise of"
    bars = [
        IntervalBar(label=_group(each["columns"]), values=[each["mean"]], interval=(each["lower"], each["upper"]))
        for each in found["importances"]
    ]
    first = bars[0]
    return [
        interval_bars(
            bars,
            title=f"{direction} {found['metric']} when a column tells nothing any more, with 90 % intervals",
            description=f"The most important is {first.label}, {format_number(first.values[0])}.",
            x_label=f"{direction} {found['metric']}",
            labels_above=css == "narrow",
            width=width,
            css=css,
        )
        for width, _, css in SIZES
    ]


def _group(columns: Sequence[str]) -> str:
    """Return the name of a group of columns; all of them are listed below the chart.

    Examples
    --------
    >>> _group(["age"]), _group(["length", "width", "height"])
    ('age', 'length + 2 more')
    """
    return columns[0] if len(columns) == 1 else f"{columns[0]} + {len(columns) - 1} more"


def effect_charts(summary: Mapping[str, Any]) -> list[str]:
    """Draw how predictions follow each column, in one size for all pages."""
    found = summary["explanation"]
    outputs = found.get("outputs", ())
    label = "predicted value" if summary["task"] == "regression" else "predicted probability"
    return [
        (_levels if each["ale"] is None else _curve)(each, outputs=outputs, label=label) for each in found["effects"]
    ]


def word_charts(summary: Mapping[str, Any]) -> list[str]:
    """Draw what words add to predictions, for each text column, in one size for all pages."""
    found = summary["explanation"]
    return [_words(each, task=summary["task"]) for each in found["words"]]


def _words(found: Mapping[str, Any], *, task: str) -> str:
    added = "value" if task == "regression" else "probability"
    bars = []
    for word, changes in zip(found["words"], found["change"], strict=True):
        k = max(range(len(changes)), key=lambda i: abs(changes[i]))
        label = word if len(changes) == 1 else f"{word} \u2192 {found['outputs'][k]}"
        bars.append(IntervalBar(label=label, values=[changes[k]]))
    first = bars[0]
    return interval_bars(
        bars,
        title=f"What words of {found['column']} add to the predicted {added}",
        description=f"The most effective is {first.label}, {format_number(first.values[0])}.",
        x_label=f"added to the predicted {added}",
        width=_WIDTH,
    )


def _curve(effect: Mapping[str, Any], *, outputs: Sequence[str], label: str) -> str:
    several = len(outputs) > 1
    series = []
    for k, (output, colour) in enumerate(zip(outputs, _COLOURS, strict=False)):
        dependence = [row[k] for row in effect["partial_dependence"]]
        series.append(
            Series(
                label=output if several else "partial dependence",
                x=effect["points"], y=dependence, kind="line", css=colour,
            )
        )  # fmt: skip
        local = [row[k] for row in effect["ale"]]
        css = f"{colour if several else 's4'} dashed"
        series.append(
            Series(label="" if several else "local effects", x=effect["points"], y=local, kind="line", css=css)
        )
    series.append(Series(label="", x=effect["points"], kind="rug", css="s3"))
    return line_chart(
        series,
        title=f"{label} by {effect['column']}: partial dependence and accumulated local effects",
        x_label=fitted_name(effect["column"]) + (" (year)" if effect["kind"] == "date" else ""),
        y_label=label,
        width=_WIDTH,
        height=_HEIGHT,
    )


def _levels(effect: Mapping[str, Any], *, outputs: Sequence[str], label: str) -> str:
    several, share = len(outputs) > 1, effect["share"]
    first = [row[0] for row in effect["partial_dependence"]]
    mean = sum(a * b for a, b in zip(first, share, strict=True)) / (sum(share) or 1)
    highest = max(range(len(first)), key=lambda i: first[i])
    return interval_bars(
        [
            IntervalBar(label=point, values=row[: len(_COLOURS)])
            for point, row in zip(effect["points"], effect["partial_dependence"], strict=True)
        ],
        title=f"{label} by {effect['column']}: partial dependence, the most frequent levels first",
        description=f"Highest for {effect['points'][highest]}, {format_number(first[highest])}.",
        x_label=label,
        origin=mean,
        series=outputs if several else (),
        width=_WIDTH,
    )
