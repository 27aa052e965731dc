"""The bracket of a contest, and the curves of its sub-spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cashmere.charts.bracket import MAX_ROWS, BracketRow, Cell, bracket_chart
from cashmere.charts.lines import Series, line_chart
from cashmere.charts.svg import fitted_name
from cashmere.report.figures.scale import SIZES, score_label, score_name, whisker
from cashmere.report.format import format_number

_CURVES_NAMED = 3
"""Sub-spaces whose curves have colours and names."""


def contest_charts(summary: Mapping[str, Any]) -> list[list[str]]:
    """Draw the bracket of a contest and the best scores of its sub-spaces; each for wide and narrow pages."""
    contest, metric = summary["contest"], summary["metric"]
    if contest is None:
        return []
    name = score_name(metric)
    contenders = [
        BracketRow(
            name=each["name"],
            cells=[
                Cell(loss=cell["loss"], text=format_number(cell["score"]), trials=cell["trials"])
                for cell in each["cells"]
            ],
            reason=each["reason"],
        )
        for each in contest["subspaces"]
    ]
    bracket = [
        bracket_chart(
            contenders,
            rounds=[stage["label"] for stage in contest["stages"]],
            title=f"sub-spaces over the rounds of the contest, with their best {name} and number of trials",
            description=contest["sentence"],
            names_above=css == "narrow",
            width=width,
            css=css,
        )
        for width, _, css in SIZES
    ]
    curves = [
        line_chart(
            _contest_curves(contest),
            title=f"best {name} of each sub-space by trial number",
            x_label="trial",
            whole_x=True,
            y_label=score_label(metric),
            y_range=_curves_range(contest, -1.0 if metric["greater_is_better"] else 1.0),
            width=width,
            height=height,
            css=css,
        )
        for width, height, css in SIZES
    ]
    return [bracket, curves]


def _contest_curves(contest: Mapping[str, Any]) -> list[Series]:
    """Return a curve for every sub-space, ending where it left; the first ones have colours and names."""
    curves = []
    for k, each in enumerate(contest["subspaces"][:MAX_ROWS]):
        named = k < _CURVES_NAMED
        x, y = _steps(each["curve"])
        label = fitted_name(each["name"]) if named else "the others" if k == _CURVES_NAMED else ""
        curves.append(Series(label=label, x=x, y=y, kind="line", css=("s1", "s2", "s4")[k] if named else "s3"))
    ends = [stage["end"] - 1 for stage in contest["stages"] if stage["dropped"]]
    return [*([Series(label="some leave", x=ends, kind="rug", css="bad")] if ends else []), *curves[::-1]]


def _steps(points: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    """Return the corners of a curve that holds each value until the next one."""
    x, y = [], []
    for (trials, score), before in zip(points, [None, *points], strict=False):
        if before is not None:
            x.append(trials)
            y.append(before[1])
        x.append(trials)
        y.append(score)
    return x, y


def _curves_range(contest: Mapping[str, Any], sign: float) -> tuple[float, float] | None:
    """Return the range of scores to show: the last ones of the sub-spaces, and all of the first; no outliers."""
    curves = [[sign * score for _, score in each["curve"]] for each in contest["subspaces"] if each["curve"]]
    if not curves:
        return None
    shown = []
    for losses in (sorted(curve[-1] for curve in curves), sorted(curves[0])):
        limit = whisker(losses)
        shown += [loss for loss in losses if loss <= limit]
    ends = sign * min(shown), sign * max(shown)
    return min(ends), max(ends)
