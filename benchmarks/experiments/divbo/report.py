"""The report of an experiment on ensembles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.experiments.divbo.report_forms import checkpoints
from benchmarks.experiments.divbo.results import Results, published_rows, to_circumstances, to_rows
from benchmarks.experiments.divbo.runs import EnsembleRun
from benchmarks.experiments.divbo.tables import (
    METRICS,
    cost_table,
    pool_table,
    printed_table,
    sensitivity_table,
    speed_table,
    validation_table,
    verdict_table,
)
from benchmarks.reporting.charts import Curve, Panel, loss_panels, rank_panels, small_multiples
from benchmarks.reporting.ranks import rank_diagram, rank_test_table
from benchmarks.reporting.report import Chart, Report
from benchmarks.reporting.table import Table, print_tables
from benchmarks.statistics import comparison

UNITS = {"accuracy": "error as a share", "mse": "mean squared error", "mae": "mean absolute error"}
"""Units of the charts."""

SMOOTHED = 20
"""Trials averaged for each point of the diversity of suggestions."""


def make_tables(results: Results) -> list[Table]:
    """Return every table for which there are enough runs."""
    printed = [printed_table(results, table) for table in results.suite.printed if table.metric == results.metric]
    others = [make(results) for make in (verdict_table, validation_table, speed_table, pool_table)]
    others.append(sensitivity_table(results))
    return [table for table in (*printed[:1], *others, *printed[1:]) if table is not None]


def describe(results: Sequence[Results]) -> str:
    """Return one line about what was compared."""
    first = results[0]
    kind = "replays of recordings" if first.recorded else "runs on tables"
    seeds = {run.key.seed for part in results for runs in part.runs.values() for run in runs}
    n_tables = sum(len(part.tables) for part in results)
    counts = (("data set", n_tables), ("repeat", len(seeds)), ("trial", first.n_trials))
    return f"{kind}; " + ", ".join(f"{n} {noun}{'s' if n != 1 else ''}" for noun, n in counts)


def print_report(console: Console, results: Sequence[Results]) -> None:
    """Print all tables."""
    console.print(f"\n{results[0].suite.paper}: {describe(results)}\n", highlight=False, markup=False)
    print_tables(console, [*(table for part in results for table in make_tables(part)), cost_table(results)])


def make_report(results: Sequence[Results]) -> Report:
    """Return the report.

    ``results.csv`` has a row per run and form, ``published.csv`` our means beside the printed ones, and
    ``circumstances.csv`` says where, when and with what the runs were made.
    """
    summary: list[Table | str] = []
    sections: list[Table | Chart] = []
    for part in results:
        tables = make_tables(part)
        summary += [f"## {METRICS[part.metric].capitalize()}", "", *tables]
        sections += [*tables[:1], *_rank_sections(part), *tables[1:], *_charts(part)]
    costs = cost_table(results)
    return Report(
        title=results[0].suite.paper,
        heading=describe(results),
        rows={
            "results": to_rows(results),
            "published": published_rows(results),
            "circumstances": to_circumstances(results),
        },
        sections=[*sections, costs],
        summary=[*summary, costs],
    )


def _rank_sections(results: Results) -> list[Table | Chart]:
    """Return whether the ranks of the test losses differ, where there is more than one data set."""
    labels = [label for label in results.suite.ranked(results.metric) if label in results.labels]
    means = comparison.mean_losses(results.final(labels), results.n_trials, "test") if len(labels) > 1 else None
    if means is None or len(means) < 2:
        return []
    reference = results.proposed or labels[0]
    table = rank_test_table({"test": means}, reference, title="Do the average ranks differ?")
    diagram = rank_diagram(means, title="Average ranks of the test losses")
    return [
        table,
        Chart(
            caption="Average ranks of the test losses. Bars join what Nemenyi's test cannot distinguish.", svg=diagram
        ),
    ]


def _charts(results: Results) -> list[Chart]:
    labels = [label for label in results.suite.ranked(results.metric) if label in results.labels]
    labels += [label for label in results.labels if label == "DivBO-"]
    frame = results.frame(labels)
    if frame["trials"].nunique() < 2:
        return []
    unit = UNITS[results.metric]
    charts = [
        (
            "Average rank over trials; ranks within data set and repeat, one standard error: DivBO's figures 3 and 4c.",
            small_multiples(rank_panels(frame), title="Average rank over trials", n_columns=2),
        ),
        (
            f"Lowest validation loss over trials ({unit}), one standard error: DivBO's figures 4a and 4b.",
            small_multiples(loss_panels(frame, "validation"), title="Validation loss over trials"),
        ),
        (
            f"Test loss over trials ({unit}).",
            small_multiples(loss_panels(frame, "test"), title="Test loss over trials"),
        ),
        (
            f"Smallest diversity of a suggestion to the pool before it, mean of {SMOOTHED} trials: figures 1 and 5.",
            small_multiples(_panels(results, _diversity), title="Diversity of suggestions over trials", order=labels),
        ),
    ]
    if results.metric == "accuracy":
        chart = small_multiples(
            _panels(results, _disagreement), title="Disagreement in the pool over trials", order=labels
        )
        charts.append(("Mean disagreement of the pool's members; figure 6 has it pair by pair.", chart))
    return [Chart(caption=caption, svg=chart) for caption, chart in charts]


def _panels(results: Results, curve_of: Callable[[EnsembleRun], pd.Series]) -> list[Panel]:
    """Return a panel per data set with the mean curve of every search."""
    panels = []
    for name in results.tables:
        curves = []
        for method, runs in results.runs.items():
            mine = [curve_of(run) for run in runs if run.key.table == name]
            if method.form != "selection" or not mine:
                continue
            wide = pd.concat(mine, axis=1).astype(float)
            curves.append(
                Curve(
                    label=method.label,
                    x=[float(x) for x in wide.index],
                    y=wide.mean(axis=1).tolist(),
                    error=wide.sem(axis=1).tolist(),
                )
            )
        if curves:
            panels.append(Panel(title=name, curves=curves))
    return panels


def _diversity(run: EnsembleRun) -> pd.Series:
    values = pd.Series([np.nan if x is None else x for x in run.minimum_diversity], dtype=float)
    smooth = values.rolling(SMOOTHED, min_periods=1).mean()
    smooth.index = smooth.index + 1
    return smooth.loc[checkpoints(len(values))]


def _disagreement(run: EnsembleRun) -> pd.Series:
    return pd.Series(run.disagreement, index=checkpoints(len(run.losses)), dtype=float)
