"""The report of a comparison with peers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.peers.environments import OURS
from benchmarks.peers.runs import MEASURES, PeerRun
from benchmarks.reporting.report import Report
from benchmarks.reporting.table import Table, print_tables
from benchmarks.statistics import ranks_and_tests as statistics
from cashmere.base.text import counted
from cashmere.records.budget import parse_seconds

NAMES = {"log_loss": "Log loss", "error": "Error", "roc_auc": "ROC AUC", "rmse": "RMSE", "r2": "R2"}


def to_frame(runs: Sequence[PeerRun]) -> pd.DataFrame:
    """Return a row per run, with everything known about it.

    Peers are ranked by ``loss``: log loss for classes, RMSE for values. ``overrun`` is seconds divided by budget,
    ``seconds_per_1000`` what 1,000 of the test rows take when all are predicted at once.
    """
    rows = []
    for run in runs:
        versions = run.facts.get("versions", {})
        rows.append(
            {
                "table": run.key.table,
                "peer": run.key.strategy,
                "seed": run.key.seed,
                "budget": run.key.budget,
                "loss": run.measures.get("log_loss", run.measures.get("rmse", np.nan)),
                **{name: run.measures.get(name, np.nan) for name in MEASURES},
                "seconds": run.seconds,
                "overrun": run.seconds / parse_seconds(run.key.budget, "budget"),
                "peak_mib": np.nan if run.peak_mib is None else run.peak_mib,
                "fit_seconds": run.facts.get("fit_seconds", np.nan),
                "seconds_per_1000": run.facts.get("seconds_per_1000", np.nan),
                "model_mib": run.facts.get("model_mib", np.nan),
                "models": run.facts.get("models", np.nan),
                "failure": run.failure or "",
                "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
                "code": run.code,
                **run.circumstances,
            }
        )
    return pd.DataFrame(rows)


def make_tables(runs: pd.DataFrame) -> list[Table]:
    """Return every table for the rows of `to_frame`."""
    measured = [name for name in MEASURES if runs[name].notna().any()]
    tables = [rank_table(runs)]
    if OURS in set(runs["peer"]) and runs["peer"].nunique() > 1:
        tables.append(pair_table(runs))
    tables += [measure_table(runs, name) for name in measured]
    failures = failure_table(runs)
    return [*tables, failures] if failures.rows else tables


def rank_table(runs: pd.DataFrame) -> Table:
    """Return ranks, wins, time and failures of every peer.

    Ranks and wins are of means over seeds; a data set counts when every peer has the same seeds on it.
    """
    means = _compared(runs)
    tables = len(means)
    ranks = statistics.rank_methods(means) if tables else np.empty((0, means.shape[1]))
    average = ranks.mean(axis=0) if tables else np.full(means.shape[1], np.nan)
    distances = improvability(means)
    wins = means.eq(means.min(axis=1), axis=0).sum()
    rng = np.random.default_rng(0)
    rows = []
    for i, peer in enumerate(means.columns):
        part = runs[runs["peer"] == peer]
        low, high = statistics.bootstrap_interval(ranks[:, i], rng)
        rows.append(
            (
                peer,
                f"{average[i]:.2f}" if tables else "-",
                f"{low:.2f} to {high:.2f}" if np.isfinite(low) else "-",
                str(wins[peer]),
                f"{distances[peer].mean():.1f}" if tables else "-",
                f"{part['overrun'].mean():.2f}",
                f"{part['overrun'].max():.2f}",
                _mean(part["peak_mib"]),
                _mean(part["model_mib"], ".1f"),
                _mean(part["seconds_per_1000"], ".3f"),
                _mean(part["models"]),
                f"{(part['failure'] != '').sum()} of {len(part)}",
            )
        )
    best = {(i, 1) for i in range(len(rows)) if tables and average[i] == average.min()}
    return Table(
        title="Ranks",
        columns=(
            "peer",
            "average rank",
            "95 % interval",
            "wins",
            "improvability, %",
            "seconds / budget",
            "largest",
            "peak MiB",
            "model MiB",
            "seconds per 1,000 rows",
            "models",
            "failures",
        ),
        rows=tuple(rows),
        note=f"Ranks of mean losses (log loss, RMSE) on the {tables} data sets on which every peer has run with the "
        "same seeds; a peer that failed there with any seed comes last and does not win. Intervals: bootstrap over "
        "data sets. Improvability: how far the lowest loss of all peers is below the peer's, in per cent of the "
        "peer's, on average; 100 for a failure. `seconds`: of the whole process, including start and prediction.",
        best=frozenset(best),
    )


def improvability(means: pd.DataFrame) -> pd.DataFrame:
    """Return how far the lowest loss is below each loss, in per cent of that loss.

    Parameters
    ----------
    means : DataFrame
        Losses, at least 0: rows data sets, columns peers; NaN where a peer failed, which makes 100.

    References
    ----------
    Erickson et al. (2025), TabArena: a living benchmark for machine learning on tabular data, arXiv:2506.16791.
    """
    lowest = means.min(axis=1)
    shares = 1 - means.rdiv(lowest, axis=0)
    return 100 * shares.where(means > 0, 0.0).where(means.notna(), 1.0)


def pair_table(runs: pd.DataFrame) -> Table:
    """Return how cashmere compares with each of the others, and with the best of them on each data set."""
    means = _compared(runs)
    others = [peer for peer in means.columns if peer != OURS]
    pairs = {peer: means[peer] for peer in others} | {"the best other": means[others].min(axis=1)}
    rng = np.random.default_rng(0)
    rows = []
    for name, theirs in pairs.items():
        ours, theirs = means[OURS].fillna(np.inf), theirs.fillna(np.inf)
        both = np.isfinite(ours) & np.isfinite(theirs) & (ours > 0) & (theirs > 0)
        logs = np.log(ours[both].to_numpy() / theirs[both].to_numpy())
        low, high = np.exp(statistics.bootstrap_interval(logs, rng))
        rows.append(
            (
                name,
                f"{(ours < theirs).sum()}",
                f"{(ours == theirs).sum()}",
                f"{(ours > theirs).sum()}",
                f"{np.exp(logs.mean()):.3f}" if len(logs) else "-",
                f"{low:.3f} to {high:.3f}" if np.isfinite(low) else "-",
                f"{100 * np.expm1(np.median(logs)):+.1f}" if len(logs) else "-",
            )
        )
    return Table(
        title=f"{OURS} and each of the others",
        columns=("other", "better", "same", "worse", "ratio of losses", "95 % interval", "median difference, %"),
        rows=tuple(rows),
        note=f"Data sets on which the mean loss of {OURS} is lower, the same and higher. Ratio: geometric mean of its "
        "losses divided by the other's, where both succeeded; below 1 is better. Intervals: bootstrap over data sets.",
    )


def measure_table(runs: pd.DataFrame, measure: str) -> Table:
    """Return means and standard errors of a measure: rows data sets, columns peers."""
    tables = runs.loc[runs[measure].notna(), "table"].drop_duplicates().tolist()
    peers = runs["peer"].drop_duplicates().tolist()
    rows, best = [], set()
    for i, table in enumerate(tables):
        part = runs[runs["table"] == table].groupby("peer")[measure]
        means = MEASURES[measure] * part.agg(lambda values: values.mean(skipna=False))
        cells = []
        for j, peer in enumerate(peers):
            values = part.get_group(peer) if peer in part.groups else pd.Series(dtype=float)
            cells.append(_cell(values))
            if len(values) and means[peer] == means.min():
                best.add((i, j + 1))
        rows.append((str(table), *cells))
    return Table(
        title=NAMES[measure],
        columns=("data set", *peers),
        rows=tuple(rows),
        note="Mean and standard error over seeds, on the test rows; "
        f"{'smaller' if MEASURES[measure] > 0 else 'larger'} is better. `failed`: with at least one seed.",
        best=frozenset(best),
    )


def failure_table(runs: pd.DataFrame) -> Table:
    """Return the failed runs and their causes."""
    failed = runs[runs["failure"] != ""]
    return Table(
        title="Failures",
        columns=("peer", "data set", "seed", "seconds", "failure"),
        rows=tuple(
            (row["peer"], row["table"], str(row["seed"]), f"{row['seconds']:.0f}", row["failure"])
            for row in failed.to_dict("records")
        ),
    )


def describe(runs: pd.DataFrame) -> str:
    """Return what was compared, and under which circumstances."""
    budgets, machines, dates = (sorted(runs[name].unique()) for name in ("budget", "machine", "date"))
    told = runs[runs["versions"] != ""]
    versions = dict.fromkeys(f"{name}: {text}" for name, text in zip(told["peer"], told["versions"], strict=True))
    threads = sorted(runs["threads"].unique())
    return (
        f"{counted(runs['table'].nunique(), 'data set')}, {counted(runs['seed'].nunique(), 'seed')}, "
        f"{', '.join(budgets)} and "
        f"{', '.join(map(str, threads))} threads per run; {', '.join(machines)}, load before a run "
        f"{runs['load'].min():g} to {runs['load'].max():g}; {', '.join(dict.fromkeys((dates[0], dates[-1])))}.\n\n"
        + "\n".join(f"- {line}" for line in versions)
    )


def print_report(console: Console, runs: pd.DataFrame) -> None:
    """Print all tables."""
    console.print(f"\n{describe(runs)}\n", highlight=False, markup=False)
    print_tables(console, make_tables(runs))


def make_report(runs: pd.DataFrame) -> Report:
    """Return the report; ``results.csv`` has a row per run."""
    tables = make_tables(runs)
    return Report(
        title="Comparison with other systems",
        heading=describe(runs),
        rows={"results": runs},
        sections=tables,
        summary=tables,
    )


def _compared(runs: pd.DataFrame) -> pd.DataFrame:
    """Return mean losses of the data sets that all peers share: rows data sets, columns peers."""
    peers = runs["peer"].drop_duplicates().tolist()
    seeds = runs.groupby(["table", "peer"])["seed"].agg(frozenset).unstack().reindex(columns=peers)
    shared = [table for table, row in seeds.iterrows() if row.notna().all() and row.nunique() == 1]
    means = runs.groupby(["table", "peer"])["loss"].agg(lambda values: values.mean(skipna=False)).unstack()
    return means.reindex(index=shared, columns=peers)


def _cell(values: pd.Series) -> str:
    if values.empty:
        return ""
    if values.isna().any():
        return "failed"
    return f"{values.mean():.4f}" + (f" ± {values.sem():.4f}" if len(values) > 1 else "")


def _mean(values: pd.Series, form: str = ".0f") -> str:
    return format(values.mean(), form) if values.notna().any() else "-"
