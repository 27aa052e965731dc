"""How much trials differ from the ensemble, and its members from each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cashmere.analysis.summary import MEDIAN_WINDOW
from cashmere.charts.heat_map import heat_map
from cashmere.charts.lines import Series, line_chart
from cashmere.report.figures.scale import SIZES, score_label, score_name, whisker
from cashmere.report.format import format_number


def course_charts(summary: Mapping[str, Any]) -> list[list[str]]:
    """Draw how much each trial differs from the ensemble, and how good its members are; for wide and narrow pages."""
    found, metric = summary["diversity"], summary["metric"]
    course = found["course"]
    if course is None:
        return []
    name = score_name(metric)
    minimum, median, members = (
        ([point[0] for point in points], [point[1] for point in points])
        for points in (course["minimum"], course["median"], course["member_scores"])
    )
    ensemble = [p for p in summary["curves"]["ensemble"] if not members[0] or p["trial"] >= members[0][0]]
    largest = max(minimum[1], default=1.0)
    if found["in_target_units"] and minimum[1]:
        largest = min(largest, max([whisker(sorted(minimum[1])), *median[1]]))
    figures: list[tuple[list[Series], str, str, tuple[float, float] | None]] = [
        (
            [
                Series(label="a trial", x=minimum[0], y=minimum[1], kind="dots", css="s0"),
                Series(label=f"median of the last {MEDIAN_WINDOW}", x=median[0], y=median[1], kind="line", css="s4"),
            ],
            "difference between each trial and the most similar member of the ensemble before it",
            f"difference ({'target units' if found['in_target_units'] else '0 to 1'})",
            (0.0, largest),
        ),
        (
            [
                Series(label="members, on average", x=members[0], y=members[1], css="s4"),
                Series(label="ensemble", x=[p["trial"] for p in ensemble], y=[p["score"] for p in ensemble], css="s1"),
            ],
            f"average {name} of the ensemble's members, each alone, and {name} of the ensemble",
            score_label(metric),
            None,
        ),
    ]
    return [
        [
            line_chart(
                series,
                title=title,
                x_label="trial",
                whole_x=True,
                y_label=label,
                y_range=shown,
                width=width,
                height=height,
                css=css,
            )
            for width, height, css in SIZES
        ]
        for series, title, label, shown in figures
    ]


def heat_maps(summary: Mapping[str, Any]) -> list[str]:
    """Draw how much any two members differ, for wide and for narrow pages."""
    found = summary["diversity"]
    matrix, members = found["matrix"], found["members"]
    if matrix is None:
        return []
    pairs = sorted((value, i, j) for i, row in enumerate(matrix) for j, value in enumerate(row[:i]))
    names = [f"{member['algorithm']} (trial {member['trial']})" for member in members]
    (least, a, b), (most, c, d) = pairs[0], pairs[-1]
    description = (
        f"The most similar pair is {names[a]} and {names[b]}, {format_number(least)}; the least similar is "
        f"{names[c]} and {names[d]}, {format_number(most)}."
    )
    unit = "target units" if found["in_target_units"] else "0 to 1"
    return [
        heat_map(
            matrix,
            names=[member["algorithm"] for member in members],
            keys=[str(member["trial"]) for member in members],
            title="difference between the predictions of each pair of ensemble members",
            description=description,
            legend=f"difference of two members ({unit})",
            width=width,
            css=css,
        )
        for width, _, css in SIZES
    ]
