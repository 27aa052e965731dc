"""The scores of each algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cashmere.charts.strips import Strip, strip_chart
from cashmere.report.figures.scale import score_name, shown_range


def algorithm_charts(summary: Mapping[str, Any]) -> list[str]:
    """Draw the scores of each algorithm, for wide and for narrow pages."""
    metric = summary["metric"]
    name = score_name(metric)
    strips = [
        Strip(label=a["algorithm"], values=a["scores"], marked=a["best_score"])
        for a in summary["algorithms"]
        if a["scores"]
    ]
    y_range = shown_range(summary, constant=False)
    return [
        strip_chart(
            strips,
            title=f"{name} of the trials of each algorithm",
            x_label=name,
            x_range=y_range,
            labels_above=css == "narrow",
            width=width,
            css=css,
        )
        for width, css in ((860, "wide"), (400, "narrow"))
    ]
