"""The numbers of how trials are run: predicted seconds, costs, racing of folds, and when more trials do harm."""

from __future__ import annotations

import json
from collections.abc import Iterator

from benchmarks.experiments import fold_racing, patience
from benchmarks.experiments.costs.timed_study import compare
from benchmarks.pages.kept_rows import Frame, kept
from benchmarks.pages.statement import Body, Statement, row, signed
from cashmere.costs.relative import RELATIVE_COSTS

MANY_CLASSES = (
    "vowel", "letter", "pendigits", "texture", "LED-display-domain-7digit", "mfeat-morphological", "flags", "glass",
)  # fmt: skip
"""Tables of `first-seconds` with 6 to 26 classes."""

PRIORS = {
    "none": "none",
    "recordings": "recordings",
    "algorithms": "algorithms",
    "choices": "algorithms and choices",
    "classes": "algorithms, choices and classes",
}


def parts() -> Iterator[Statement | Body]:
    """Yield the parts of the page of benchmarks."""
    yield _predicted_seconds()
    yield _predicted_seconds_of_default()
    yield _classes()
    yield _costs()
    yield _suggested_costs()
    yield from _cooling()
    yield _fold_racing()
    yield _patience()


def _predicted_seconds() -> Body:
    means = kept("costs").groupby(["trials", "prior"])[["error", "factor", "below"]].mean()
    lines = []
    for n in (1, 5, 20, 50, 200):
        for prior in ("recordings", "none"):
            lines.append(row(str(n) if prior == "recordings" else "", prior, *_errors(means.loc[(n, prior)])))
    return Body(
        header="| trials seen | prior | error of the logarithm (RMSE) | median factor | below the 90 % quantile |",
        lines=tuple(lines),
    )


def _errors(means: Frame) -> list[str]:
    return [f"{means[name]:.2f}" for name in ("error", "factor", "below")]


def _predicted_seconds_of_default() -> Body:
    rows = kept("costs_default")
    means = rows.groupby(["trials", "prior"])[["error", "factor", "below"]].mean()
    many = rows[rows["recording"].isin(MANY_CLASSES)].groupby(["trials", "prior"])["factor"].mean()
    lines = []
    for n in (1, 5, 20):
        for prior, text in PRIORS.items():
            of_many = f"{many[n, prior]:.2f}" if (n, prior) in many else ""
            lines.append(row(str(n) if prior == "none" else "", text, *_errors(means.loc[(n, prior)]), of_many))
    return Body(
        header="| trials seen | prior | error of the logarithm (RMSE) | median factor | below the 90 % quantile "
        "| factor, 6 to 26 classes |",
        lines=tuple(lines),
    )


def _classes() -> Statement:
    exponents = json.loads(RELATIVE_COSTS.read_text(encoding="utf-8"))["followed"]["exponents"]
    return Statement(
        text="CatBoost {catboost:.2f}, LightGBM {lightgbm:.2f}, XGBoost {xgboost:.2f}, histogram boosting "
        "{hist_gradient_boosting:.2f}, logistic regression {logistic_regression:.2f}, nearest neighbours {knn:.2f}, "
        "support vectors {svm:.2f}, random forest {random_forest:.2f}, extra trees {extra_trees:.2f}, MLP {mlp:.2f}.",
        values=exponents,
    )


def _costs() -> Body:
    rows = kept("costs_replay")
    lines = [
        row(f"{share:g} `{rule}`", *cells)
        for share in sorted(rows["share"].unique())
        for rule, *cells in compare(rows, "bo", share).rows
    ]
    return Body(
        header="| budget, rule | trials | validation, area | test, area | validation, end | test, end |",
        lines=tuple(lines),
    )


def _suggested_costs() -> Body:
    """Return the table of how cheap the suggestions of each rule are."""
    rows = kept("suggested_costs")
    tables = list(dict.fromkeys(rows["table"]))
    cheaper = 100 * rows.groupby(["rule", "table"])["cheaper"].mean()
    lines = [
        row(f"`{rule}`", *(f"{cheaper[rule, table]:.0f} %" for table in tables)) for rule in dict.fromkeys(rows["rule"])
    ]
    return Body(header=row("rule", *tables), lines=tuple(lines))


def _cooling() -> Iterator[Statement]:
    """Yield what the discount adds to the order of the first trials, with time for 60 configurations."""
    rows = kept("costs_replay").query("strategy == 'bo' and share == 0.1")
    means = rows.groupby(["rule", "recording"])[["validation_end", "test_end"]].mean()
    change = {
        part: {rule: 100 * (means[part]["cooled"] / means[part][rule] - 1) for rule in ("none", "order")}
        for part in ("validation_end", "test_end")
    }
    yield Statement(
        text="the discount takes another {more:.1f} % off the final validation loss",
        values={"more": -change["validation_end"]["order"].mean()},
    )
    hard = "cardiotocography-volcano"
    yield Statement(
        text="by {median:.1f} % in the median over recordings, but {worst:+.0f} % on cardiotocography, where the "
        "validation loss falls by {falls:.0f} %",
        values={
            "median": change["test_end"]["none"].median(),
            "worst": change["test_end"]["none"][hard],
            "falls": -change["validation_end"]["none"][hard],
        },
    )


def _fold_racing() -> Body:
    found = fold_racing.summary(kept("fold_racing")).set_index(["table", "rule"])
    lines = []
    for table in found.index.get_level_values("table").unique():
        cells = []
        for rule in ("forgiving", "aggressive"):
            of = found.loc[(table, rule)]
            cells += [f"{of['trials']:.2f}", f"{of['stopped']:.2f}", signed(of["ensemble"], 1), f"{of['worse']:.2f}"]
        lines.append(row(str(table), *cells))
    return Body(
        header="| recording | forgiving: trials | stopped | ensemble | worse | aggressive: trials | stopped | ensemble "
        "| worse |",
        lines=tuple(lines),
    )


def _patience() -> Body:
    found = patience.summarise(kept("patience")).set_index(["rows", "rule"])
    lines = []
    for n in sorted(found.index.get_level_values("rows").unique()):
        cells = []
        for rule in ("40 at most", "80 at most", "40, then 2 x"):
            of = found.loc[(n, rule)]
            cells.append(f"{of['mean %']:+.1f}, {of['median %']:+.1f}, {of['best %']:+.0f} to {of['worst %']:+.0f} %")
        lines.append(row(f"{n:g}", *cells, f"{found.loc[(n, '40, then 2 x')]['end']:.0f}"))
    return Body(
        header="| validation rows | 40 at most: mean, median, range | 80 at most | 2 x | stops at |",
        lines=tuple(lines),
    )
