"""Reliability, confusion and ranking curves of probabilities; residuals of values. One size serves all pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cashmere.charts.confusion import confusion_chart
from cashmere.charts.lines import Series, line_chart
from cashmere.report.format import format_number, format_percent

_WIDTH, _HEIGHT = 420, 330
_COLOURS = ("s1", "s2", "s4", "s5")
_NAME_LENGTH = 22


def diagnostic_charts(summary: Mapping[str, Any]) -> list[str]:
    """Draw four charts for classes, two for values; none if nothing is known."""
    found = summary["diagnostics"]
    if found["classes"] is not None:
        classes = found["classes"]
        charts = [_reliability(classes["reliability"]), _confusion(classes["confusion"])]
        return charts + (_ranking(classes["curves"]) if classes["curves"] else [])
    if found["values"] is not None:
        return _values(found["values"])
    return []


def _reliability(found: Mapping[str, Any]) -> str:
    bins = found["bins"]
    event = "the most probable class is right" if found["of"] is None else f"class {found['of']}"
    ends = [each["upper"] for each in bins] + [each["predicted"] for each in bins]
    starts = [each["lower"] for each in bins] + [each["predicted"] for each in bins]
    diagonal = [min(starts), max(ends)]
    whiskers = [(each["predicted"], each[end]) for each in bins for end in ("lower", "upper")]
    predicted, observed = ([each[name] for each in bins] for name in ("predicted", "observed"))
    return line_chart(
        [
            Series(label="perfect", x=diagonal, y=diagonal, kind="line", css="s3 dashed"),
            Series(label="", x=[x for x, _ in whiskers], y=[y for _, y in whiskers], kind="segments", css="s1"),
            Series(label="", x=predicted, y=observed, kind="line", css="s1 pale"),
            Series(label="observed, with 90 % intervals", x=predicted, y=observed, kind="dots", css="s1", radius=3.4),
        ],
        title=f"reliability: predicted probability that {event}, and how often it was so",
        x_label="predicted probability",
        y_label="observed share",
        width=_WIDTH,
        height=_HEIGHT,
    )


def _confusion(found: Mapping[str, Any]) -> str:
    counts, labels = found["counts"], found["labels"]
    total, right = sum(map(sum, counts)), sum(row[i] for i, row in enumerate(counts))
    errors = [(n, labels[i], labels[j]) for i, row in enumerate(counts) for j, n in enumerate(row) if i != j and n > 0]
    description = f"{format_percent(right / total if total else None)} of the rows are on the diagonal."
    if errors:
        n, true, predicted = max(errors, key=lambda error: error[0])
        description += f" The most frequent error: {n:,.0f} rows of class {true} are predicted as {predicted}."
    return confusion_chart(
        counts,
        labels=labels,
        title="confusion matrix: share and number of the rows of each true class by predicted class",
        description=description,
        width=_WIDTH,
        height=_HEIGHT,
    )


def _ranking(curves: Sequence[Mapping[str, Any]]) -> list[str]:
    several = len(curves) > 1

    def named(curve: Mapping[str, Any], number: float, what: str) -> str:
        label = str(curve["label"])
        label = label if len(label) <= _NAME_LENGTH else label[: _NAME_LENGTH - 1] + "…"
        return f"{label}, {format_number(number)}" if several else f"{what} {format_number(number)}"

    roc, precision_recall = (
        [
            Series(
                label=named(curve, curve[number], what),
                x=[x for x, _ in curve[points]],
                y=[y for _, y in curve[points]],
                kind="line",
                css=colour,
            )
            for curve, colour in zip(curves, _COLOURS, strict=False)
        ]
        for points, number, what in (
            ("roc", "area", "area"),
            ("precision_recall", "average_precision", "average precision"),
        )
    )
    chance = [Series(label="chance", x=[0, 1], y=[0, 1], kind="line", css="s3 dashed")]
    no_skill = []
    if not several:
        (curve,) = curves
        no_skill = [Series(label="chance", x=[0, 1], y=2 * [curve["share"]], kind="line", css="s3 dashed")]
        decision = curve["decision"]
        if decision is not None:
            place: dict[str, Any] = {"kind": "dots", "css": "best", "radius": 5.0, "label": "decision of the model"}
            roc.append(Series(x=[decision["false_positive_rate"]], y=[decision["recall"]], **place))
            if decision["precision"] is not None:
                precision_recall.append(Series(x=[decision["recall"]], y=[decision["precision"]], **place))
    of = f"class {curves[0]['label']}" if not several else "each class against the rest"
    return [
        line_chart(
            chance + roc,
            title=f"ROC curve of {of}: share of its rows found, by share of other rows mistaken for it",
            x_label="false positive rate",
            y_label="recall (true positive rate)",
            width=_WIDTH,
            height=_HEIGHT,
        ),
        line_chart(
            no_skill + precision_recall,
            title=f"precision-recall curve of {of}: share of correct predictions, by share of rows found",
            x_label="recall",
            y_label="precision",
            y_range=(0, 1),
            width=_WIDTH,
            height=_HEIGHT,
        ),
    ]


def _values(found: Mapping[str, Any]) -> list[str]:
    points, bands = found["points"], found["bands"]
    predicted, truth = [x for x, _ in points], [y for _, y in points]
    residuals = [y - x for x, y in points]
    ends = [min(predicted), max(predicted)]
    along = [each["predicted"] for each in bands]
    return [
        line_chart(
            [
                Series(label="a row", x=predicted, y=truth, kind="dots", css="s0"),
                Series(label="truth = prediction", x=ends, y=ends, kind="line", css="s1"),
            ],
            title="true value of each row by predicted value",
            x_label="predicted value",
            y_label="true value",
            width=_WIDTH,
            height=_HEIGHT,
        ),
        line_chart(
            [
                Series(label="a row", x=predicted, y=residuals, kind="dots", css="s0"),
                Series(label="none", y=[0.0], kind="constant", css="s3"),
                Series(label="median", x=along, y=[each["median"] for each in bands], kind="line", css="s1"),
                Series(label="nine of ten rows", x=along, y=[each["lower"] for each in bands], kind="line", css="s4"),
                Series(label="", x=along, y=[each["upper"] for each in bands], kind="line", css="s4"),
            ],
            title="residual of each row, truth minus prediction, by predicted value",
            x_label="predicted value",
            y_label="residual (truth - prediction)",
            width=_WIDTH,
            height=_HEIGHT,
        ),
    ]
