"""Test the tables that the papers on DivBO and OptDivBO print, from their means and standard deviations.

    python -m benchmarks printed

The papers count data sets on which their method is better, the same and worse by Wilcoxon's test over ten repeats. The
repeats are not published; from the means and standard deviations alone, Welch's test says how often two methods differ.
It does not know which repeats share a split, so where these move all methods together it finds less.
"""

from __future__ import annotations

import argparse
import sys

import pandas as pd
from rich.console import Console

from benchmarks.experiments.divbo.methods import SUITES, Suite, published_counts, published_values
from benchmarks.reporting.table import Table, print_tables
from benchmarks.statistics.ranks_and_tests import LEVEL

N_REPEATS = 10
"""Number of repeats of every mean that the papers print."""

_COUNTED = {"1": "classification", "3": "regression"}
"""Tables of means from whose repeats the papers count verdicts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=list(SUITES))


def main(arguments: argparse.Namespace) -> None:
    console = Console(width=None if sys.stdout.isatty() else 140)
    print_tables(console, [printed_tests_table(SUITES[name]) for name in arguments.suites])


def printed_tests_table(suite: Suite) -> Table:
    """Return how often a paper's method is better, the same and worse than others in each of its tables."""
    found = compare_printed_means(published_values(suite), suite.proposed)
    counted = {
        (str(row.task), str(row.baseline)): f"{row.better}/{row.same}/{row.worse}"
        for row in published_counts(suite).itertuples()
    }
    rows = []
    for (number, method), part in found.groupby(["table", "against"], sort=False):
        counts = part["verdict"].value_counts()
        rows.append(
            (
                str(number),
                str(method),
                str(len(part)),
                str((part["difference"] < 0).sum()),
                "/".join(str(counts.get(name, 0)) for name in ("better", "same", "worse")),
                counted.get((_COUNTED.get(str(number), ""), str(method)), "-"),
            )
        )
    return Table(
        title=f"{suite.paper}: {suite.proposed} against others by the printed means",
        columns=("table", "against", "data sets", "lower mean on", "Welch: better/same/worse", "printed"),
        rows=tuple(rows),
        note=f"Two-sided test of Welch from the printed means and standard deviations, {N_REPEATS} repeats each, "
        f"p <= {LEVEL}; not corrected for the number of tests. Printed: Wilcoxon's test over repeats.",
    )


def compare_printed_means(values: pd.DataFrame, proposed: str) -> pd.DataFrame:
    """Compare the proposed method with all others of the same table and data set.

    Parameters
    ----------
    values : DataFrame
        From `benchmarks.experiments.divbo.methods.published_values`; rows without a standard deviation are left out.
    proposed : str
        Label of the method; a label that begins with it and names a space counts where the label alone is missing.

    Returns
    -------
    DataFrame
        Columns table, dataset, against, difference (of the means, negative is better), p_value, and verdict: better,
        same or worse.
    """
    from scipy.stats import ttest_ind_from_stats

    values = values[(values["measure"] == "test") & values["std"].notna()].astype({"mean": float, "std": float})
    rows = []
    for (number, dataset), part in values.groupby(["table", "dataset"], sort=False):
        by_method = part.set_index("method")[["mean", "std"]]
        own = next((label for label in by_method.index if label == proposed), None)
        own = own or next((label for label in by_method.index if label.startswith(f"{proposed} in ")), None)
        if own is None:
            continue
        for other in by_method.index.drop(own):
            (mean, std), (other_mean, other_std) = by_method.loc[own], by_method.loc[other]
            p = ttest_ind_from_stats(mean, std, N_REPEATS, other_mean, other_std, N_REPEATS, equal_var=False).pvalue
            verdict = "same" if p > LEVEL else ("better" if mean < other_mean else "worse")
            rows.append((number, dataset, other, mean - other_mean, float(p), verdict))
    return pd.DataFrame(rows, columns=["table", "dataset", "against", "difference", "p_value", "verdict"])
