"""What the papers on DivBO and OptDivBO compare: methods, data sets, and the tables they print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from benchmarks.published import PUBLISHED
from benchmarks.published.data_sets import TABLES_OF
from benchmarks.recordings.replay_study import LabelledStrategy
from cashmere.strategies.making import split_options

_OPENBOX = "cap_losses=False,random_fraction=0,variance=between,failures=worst_seen,local=climbs"

AS_PUBLISHED = {
    "bo": _OPENBOX,
    "ensemble_optimisation": _OPENBOX,
    "rising_bandit": f"slope=authors,inner=(bo:{_OPENBOX})",
    "kbo": f"inner=(bo:{_OPENBOX})",
    "divbo": f"surrogate=pairwise_openbox,{_OPENBOX}",
    "divbo_fixed": f"surrogate=pairwise_openbox,{_OPENBOX}",
    "optdivbo": f"surrogate=pairwise_openbox,{_OPENBOX}",
}
"""Options of the papers where our defaults differ; a method's own come first. NES and random search have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A row of the papers' tables.

    Attributes
    ----------
    label : str
        The papers' name; ours differ.
    strategy : str
        The search, with its options.
    form : str
        What is reported, one of `benchmarks.experiments.divbo.report_forms.FORMS`.
    regression : str
        The strategy for regression, if it differs.
    """

    label: str
    strategy: str
    form: str = "selection"
    regression: str = ""

    def strategy_for(self, *, is_classification: bool, as_published: bool = False) -> str:
        """Return the strategy with its options."""
        strategy = self.strategy if is_classification or not self.regression else self.regression
        name, _, options = strategy.partition(":")
        own = split_options(options) if options else []
        named = {option.partition("=")[0].strip() for option in own}
        theirs = split_options(AS_PUBLISHED[name]) if as_published and name in AS_PUBLISHED else []
        joined = ",".join([option for option in theirs if option.partition("=")[0] not in named] + own)
        return f"{name}:{joined}" if joined else name


DIVBO = Method(label="DivBO", strategy="divbo", regression="divbo:beta=0.01")
OPTDIVBO = Method(label="OptDivBO", strategy="optdivbo")
BASELINES = (
    Method(label="RS", strategy="random", form="best"),
    Method(label="BO", strategy="bo", form="best"),
    Method(label="RB", strategy="rising_bandit", form="best"),
    Method(label="EO", strategy="ensemble_optimisation", form="members"),
    Method(label="NES", strategy="nes"),
    Method(label="RS-ES", strategy="random"),
    Method(label="BO-ES", strategy="bo"),
    Method(label="RB-ES", strategy="rising_bandit"),
)
VARIANTS = (
    Method(label="DivBO-", strategy="divbo", form="best", regression="divbo:beta=0.01"),
    Method(label="Bagging", strategy="divbo", form="bagging", regression="divbo:beta=0.01"),
    Method(label="Bagging, equal", strategy="divbo", form="bagging_uniform", regression="divbo:beta=0.01"),
    Method(label="Stacking", strategy="divbo", form="stacking", regression="divbo:beta=0.01"),
    Method(label="BO-ES 100", strategy="bo", form="selection100"),
    Method(label="DivBO (fixed)", strategy="divbo_fixed"),
    Method(label="kBO-ES", strategy="kbo"),
)
OURS = Method(label="ensemble_gain", strategy="ensemble_gain")
RISING = Method(label="RB-OptDivBO", strategy="rising_bandit:inner=optdivbo")
STRONG = Method(label="DivBO (beta = 0.05)", strategy="divbo:beta=0.05")

SENSITIVITY = {
    (beta, tau): Method(label=f"DivBO (beta = {beta:g}, tau = {tau:g})", strategy=f"divbo:beta={beta:g},tau={tau:g}")
    for beta in (0.025, 0.05, 0.1, 0.2)
    for tau in (0.05, 0.1, 0.2, 0.4)
}
"""Searches of DivBO's figure 7, by the largest weight and the speed at which it grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTable:
    """A table of losses that a paper prints.

    Attributes
    ----------
    number : str
        As printed.
    title : str
        In our words.
    metric : str
        Metric of the runs it shows.
    methods : tuple of str
        Labels of its rows.
    """

    number: str
    title: str
    metric: str
    methods: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The experiments of a paper.

    Attributes
    ----------
    name, paper : str
        On the command line, and in words.
    proposed : str
        Label of the paper's own method.
    tables : tuple of str
        The data sets.
    methods : tuple of Method
        All that can be shown.
    baselines : tuple of str
        Labels of the methods that the proposed one is compared with, also in speed.
    printed : tuple of PaperTable
        Tables compared with the paper; the first of each metric has the ranks.
    """

    name: str
    paper: str
    proposed: str
    tables: tuple[str, ...]
    methods: tuple[Method, ...]
    baselines: tuple[str, ...]
    printed: tuple[PaperTable, ...]

    def ranked(self, metric: str) -> tuple[str, ...]:
        """Return the labels of the methods that the paper ranks."""
        return next((table.methods for table in self.printed if table.metric == metric), ())


_TEN = (*(method.label for method in BASELINES), "DivBO")

SUITES = {
    "divbo": Suite(
        name="divbo",
        paper="DivBO (Shen et al., NeurIPS 2022)",
        proposed="DivBO",
        tables=TABLES_OF["divbo"],
        methods=(*BASELINES, DIVBO, *VARIANTS, OURS),
        baselines=("RS-ES", "BO-ES", "RB-ES"),
        printed=(
            PaperTable(number="1", title="test error", metric="accuracy", methods=_TEN),
            PaperTable(
                number="8", title="constant weight of diversity", metric="accuracy", methods=("DivBO (fixed)", "DivBO")
            ),
            PaperTable(
                number="9",
                title="ensembles made of the trials of DivBO",
                metric="accuracy",
                methods=("Bagging", "Bagging, equal", "Stacking", "DivBO"),
            ),
            PaperTable(number="10", title="size of the ensemble", metric="accuracy", methods=("BO-ES 100", "BO-ES")),
            PaperTable(
                number="11",
                title="separate searches of the algorithms",
                metric="accuracy",
                methods=("RS-ES", "kBO-ES", "DivBO"),
            ),
        ),
    ),
    "optdivbo": Suite(
        name="optdivbo",
        paper="OptDivBO (Poduval et al., KDD 2024)",
        proposed="OptDivBO",
        tables=TABLES_OF["optdivbo"],
        methods=(*BASELINES, DIVBO, OPTDIVBO, STRONG, RISING, OURS),
        baselines=("RS-ES", "RB-ES", "DivBO"),
        printed=(
            PaperTable(number="1", title="test error", metric="accuracy", methods=(*_TEN, "OptDivBO")),
            PaperTable(number="3", title="mean squared error", metric="mse", methods=(*_TEN, "OptDivBO")),
            PaperTable(
                number="5",
                title="mean absolute error",
                metric="mae",
                methods=("BO-ES", "DivBO (beta = 0.05)", "DivBO", "OptDivBO"),
            ),
        ),
    ),
}


def choose_methods(suite: Suite, wanted: Sequence[str]) -> list[Method]:
    """Return methods by label, or ``label=strategy`` for custom ones with ensemble selection; all by default."""
    known = {method.label: method for method in suite.methods}
    chosen = []
    for text in wanted or known:
        if text in known:
            chosen.append(known[text])
            continue
        own = LabelledStrategy.of_search(text)
        is_labelled = text.startswith(f"{own.label}=")
        if not is_labelled or own.label in known:
            there = ", ".join(map(repr, known))
            raise SystemExit(f"--methods {text!r}: expected one of {there}, or new_label=strategy:options.")
        chosen.append(Method(label=own.label, strategy=own.strategy))
    labels = [method.label for method in chosen]
    if twice := {label for label in labels if labels.count(label) > 1}:
        raise SystemExit(f"--methods: labels must differ; {', '.join(sorted(twice))} occurs twice.")
    return chosen


def display_unit(table: str, metric: str) -> float:
    """Return the unit in which losses are printed: per cent, or the unit the paper must have used."""
    if metric == "accuracy":
        return 0.01
    return 1e-6 if (table, metric) == ("delta_elevators", "mse") else 1.0


def published_values(suite: Suite) -> pd.DataFrame:
    """Return the printed numbers of a paper: columns table (its number), measure, dataset, method, mean and std."""
    frame = pd.read_csv(PUBLISHED / f"{suite.name}.csv", dtype={"table": str}, keep_default_na=False)
    return frame.assign(mean=pd.to_numeric(frame["mean"]), std=pd.to_numeric(frame["std"]))


def published_counts(suite: Suite) -> pd.DataFrame:
    """Return how often the proposed method was better, the same and worse than baselines, by task."""
    frame = pd.read_csv(PUBLISHED / "wilcoxon_counts.csv")
    return frame[frame["suite"] == suite.name]
