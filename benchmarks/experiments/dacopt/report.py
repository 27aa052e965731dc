"""The report of an experiment of DACOpt."""

from __future__ import annotations

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.experiments.dacopt.results import Results, checkpoints, published_mean
from benchmarks.experiments.dacopt.tables import make_tables, ranked_losses
from benchmarks.reporting.charts import loss_panels, small_multiples
from benchmarks.reporting.ranks import rank_diagram
from benchmarks.reporting.report import Chart, Report
from benchmarks.reporting.table import print_tables
from benchmarks.runs.circumstances import count_circumstances

N_DRAWN = 100
"""Number of points of a curve."""

TITLES = {"dacopt1": "DACOpt, experiment 1: imbalanced classes", "dacopt2": "DACOpt, experiment 2: accuracy"}


def describe(results: Results) -> str:
    """Return one line about what was compared."""
    first = results.runs[0].key
    n_tables = len({run.key.table for run in results.runs})
    n_repeats = len({run.key.seed for run in results.runs})
    counts = ((n_tables, "table"), (len(results.strategies), "strategy"), (n_repeats, "repeat"))
    texts = [f"{n} {_plural(noun, n)}" for n, noun in counts]
    rows = "all rows" if results.rows is None else f"at most {results.rows} rows"
    return f"{', '.join(texts)} at most, {first.budget}, {rows}; {results.protocol.metric} on {results.protocol.space}"


def print_report(console: Console, results: Results) -> None:
    """Print all tables."""
    console.print(f"\n{_title(results)}: {describe(results)}\n", highlight=False, markup=False)
    print_tables(console, make_tables(results))


def make_report(results: Results) -> Report:
    """Return the report.

    ``results.csv`` has a row per run, ``published.csv`` our means beside the printed ones, and ``circumstances.csv``
    says where, when and with what the runs were made.
    """
    tables = make_tables(results)
    return Report(
        title=_title(results),
        heading=describe(results),
        rows={
            "results": to_rows(results),
            "published": published_rows(results),
            "circumstances": to_circumstances(results),
        },
        sections=[*tables, *_charts(results)],
        summary=tables,
    )


def to_rows(results: Results) -> pd.DataFrame:
    """Return a row per run."""
    return pd.DataFrame(
        [
            {
                "table": run.key.table,
                "strategy": run.key.strategy,
                "seed": run.key.seed,
                "budget": run.key.budget,
                "trials": len(run.curve),
                "failed": run.failed,
                "validation": None if run.curve[-1] is None else round(1 - run.curve[-1], 6),
                "test": None if run.test is None else round(1 - run.test, 6),
                "seconds": run.seconds,
                "suggest_seconds": run.suggest_seconds,
                "cpu_seconds": run.cpu_seconds,
                "memory_mib": max(run.memory_mib.values(), default=None),
            }
            for run in results.runs
        ]
    )


def published_rows(results: Results) -> pd.DataFrame:
    """Return a row per table and strategy: repeats, our mean score and the printed one."""
    grouped = results.scores.groupby(["table", "strategy"], sort=False)["score"]
    frame = grouped.agg(repeats="size", score="mean", score_std="std").reset_index()
    said = [published_mean(results.published, t, s) for t, s in zip(frame["table"], frame["strategy"], strict=True)]
    return frame.assign(published=np.array(said))


def to_circumstances(results: Results) -> pd.DataFrame:
    """Return where, when and with what the runs were made: a row per distinct case, and how many runs it has."""
    return count_circumstances(run.circumstances for run in results.runs)


def _charts(results: Results) -> list[Chart]:
    charts = []
    losses = ranked_losses(results)
    if losses is not None:
        diagram = rank_diagram(losses, title=f"Average ranks of the {results.part} losses")
        caption = f"Average ranks of the {results.part} losses. Bars join what Nemenyi's test cannot distinguish."
        charts.append(Chart(caption=caption, svg=diagram))
    at = np.unique(results.frame["trials"])
    if len(at) > 1:
        drawn = at[checkpoints(len(at), N_DRAWN) - 1]
        frame = results.frame[results.frame["trials"].isin(drawn)]
        chart = small_multiples(loss_panels(frame, "validation"), title="Lowest validation loss over trials")
        caption = "Mean over repeats of the lowest validation loss so far (1 - score), one standard error."
        charts.append(Chart(caption=caption, svg=chart))
    return charts


def _title(results: Results) -> str:
    return TITLES.get(results.protocol.name, results.protocol.name)


def _plural(noun: str, n: int) -> str:
    if n == 1:
        return noun
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
