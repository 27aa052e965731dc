"""Scores over trials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cashmere.charts.lines import Series, line_chart
from cashmere.report.figures.scale import score_label, score_name, shown_range
from cashmere.storage.trial_tables import BASELINE_NAME


def progress_charts(summary: Mapping[str, Any]) -> list[str]:
    """Draw the best scores so far over trials, for wide and for narrow pages."""
    curves, metric = summary["curves"], summary["metric"]
    good = [t for t in curves["trials"] if t["score"] is not None]
    so_far = [t for t in curves["trials"] if t["best_score"] is not None]
    failed = [t["trial"] for t in curves["trials"] if t["score"] is None]
    series = [
        Series(label="a trial", x=[t["trial"] for t in good], y=[t["score"] for t in good], kind="dots", css="s0"),
        Series(
            label="best single model", x=[t["trial"] for t in so_far], y=[t["best_score"] for t in so_far], css="s2"
        ),
        Series(
            label="ensemble",
            x=[p["trial"] for p in curves["ensemble"]],
            y=[p["score"] for p in curves["ensemble"]],
            css="s1",
        ),
    ]
    if failed and good:
        series.insert(0, Series(label="failed trial", x=failed, kind="rug", css="bad"))
    if curves["baseline_score"] is not None:
        series.append(Series(label=BASELINE_NAME, y=[curves["baseline_score"]], kind="constant", css="s3"))
    name = score_name(metric)
    title = f"{name} of each trial, of the best single model and of the ensemble, by trial number"
    y_range = shown_range(summary, constant=True)
    return [
        line_chart(
            series,
            title=title,
            x_label="trial",
            whole_x=True,
            y_label=score_label(metric),
            y_range=y_range,
            width=width,
            height=height,
            css=css,
        )
        for width, height, css in ((860, 340, "wide"), (400, 330, "narrow"))
    ]
