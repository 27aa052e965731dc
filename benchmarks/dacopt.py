"""The experiments of the DACOpt paper: contests and their baselines, beside the published numbers.

    python -m benchmarks dacopt1 --data ../shared/data --tables pima glass1 --trials 500 --repeats 3

Experiment 1 maximises the geometric mean of the recalls over 5 stratified folds on the space `imbalance`; what is
reported is the best value found, averaged over the repeats (other folds for each). Experiment 2 maximises accuracy over
4 folds of 70 % of the rows on the space `autosklearn6`, and reports the accuracy of the best configuration, fitted on
all of these, on the other 30 %. A finished run is kept in `--work`; the same command goes on where it was stopped, and
`--workers 0` shows what is there.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape

from benchmarks.interruption import until_interrupted
from benchmarks.method_statistics import signed_rank_test
from benchmarks.report_table import Table
from benchmarks.suite_runs import (
    Protocol,
    SuiteFailure,
    SuiteFile,
    SuiteKey,
    SuiteRun,
    make_key,
    run_suite,
    search,
)
from benchmarks.tables import BenchmarkTable, add_data_argument, find_tables
from cashmere.budget import Budget
from cashmere.data.task import TaskProfile
from cashmere.exceptions import CashmereError
from cashmere.space.spaces import make_space
from cashmere.strategies import make_strategy

PUBLISHED = Path(__file__).parent / "published"
PAPER_NAMES = {
    "dac_hb": "DAC-HB",
    "dac_hh": "DAC-HH",
    "dac_sb": "DAC-SB",
    "dac_sh": "DAC-SH",
    "bo4ml": "BO4ML",
    "tpe:density=independent": "Hyperopt",
}
"""Our strategies, and what the paper calls them; `random` is not in its tables."""

EXPERIMENT_1 = Protocol(name="dacopt1", space="imbalance", metric="g_mean", resampling="5fold")
EXPERIMENT_2 = Protocol(
    name="dacopt2", space="autosklearn6", metric="accuracy", resampling="4fold", test_share=0.3, trial_seconds=120.0
)
TABLES_1 = ("glass1", "pima", "vehicle1", "ecoli2", "yeast-2_vs_4", "yeast-1_vs_7")
TABLES_2 = ("blood-transfusion-service-center", "cmc", "credit-g", "eucalyptus", "vehicle", "kr-vs-kp")
LEVEL = 0.05


def published_means(experiment: Protocol, tables: Sequence[BenchmarkTable]) -> pd.DataFrame:
    """Return the published scores: rows tables (our names), columns the paper's methods."""
    frame = pd.read_csv(PUBLISHED / f"{experiment.name}.csv")
    if "openml_id" in frame:  # names are cut short in the paper; of two tasks on one data set the first counts
        frame["table"] = frame["openml_id"].map({table.openml_id: table.name for table in tables})
    else:
        frame["table"] = frame["table"].replace({"haberman": "haberman_keel"})
    return frame.pivot_table(index="table", columns="method", values="mean", aggfunc="first")


def collect_scores(runs: Sequence[SuiteRun], protocol: Protocol) -> pd.DataFrame:
    """Return the scores of runs, more is better: columns table, strategy, seed and score."""
    losses = [run.test if protocol.test_share else run.curve[-1] for run in runs]
    return pd.DataFrame(
        {
            "table": [run.key.table for run in runs],
            "strategy": [run.key.strategy for run in runs],
            "seed": [run.key.seed for run in runs],
            "score": [0.0 if loss is None else 1.0 - loss for loss in losses],
        }
    )


def not_worse(scores: pd.DataFrame) -> dict[str, bool]:
    """Return, for the scores of one table, whether a strategy is the best or not significantly worse than it.

    The best has the highest mean; the others are tested against it by the two-sided Wilcoxon signed-rank test over
    seeds.

    Parameters
    ----------
    scores : frame
        Rows seeds, columns strategies.
    """
    best = scores.mean().idxmax()
    return {
        name: name == best or signed_rank_test((scores[best] - scores[name]).dropna().to_numpy())[0] > LEVEL
        for name in scores
    }


def score_table(scores: pd.DataFrame, published: pd.DataFrame, strategies: Sequence[str]) -> Table:
    """Return means over repeats with the published ones in brackets: rows tables, columns strategies."""
    rows, best = [], set()
    for i, (name, part) in enumerate(scores.groupby("table", sort=False)):
        by_strategy = part.pivot_table(index="seed", columns="strategy", values="score")
        good = not_worse(by_strategy)
        cells = []
        for j, strategy in enumerate(strategies):
            if strategy not in by_strategy:
                cells.append("-")
                continue
            said = _published(published, str(name), strategy)
            cells.append(f"{by_strategy[strategy].mean():.4f}" + ("" if np.isnan(said) else f" ({said:.4f})"))
            if good[strategy]:
                best.add((i, j + 1))
        rows.append((str(name), *cells))
    repeats = scores.groupby(["table", "strategy"]).size()
    note = (
        f"Means over {repeats.min()} to {repeats.max()} repeats, in brackets the paper's over 10. Bold: our best, "
        f"and what is not significantly worse (Wilcoxon signed-rank test over repeats, p > {LEVEL}; with fewer than 6 "
        "repeats that is everything)."
    )
    return Table(title="Scores", columns=("table", *strategies), rows=tuple(rows), note=note, best=frozenset(best))


def difference_table(scores: pd.DataFrame, published: pd.DataFrame, strategies: Sequence[str]) -> Table:
    """Return how far our means are from the published ones, per strategy."""
    means = scores.groupby(["strategy", "table"])["score"].mean()
    rows = []
    for strategy in strategies:
        if strategy not in PAPER_NAMES or strategy not in means:
            continue
        differences = np.array([m - _published(published, str(t), strategy) for t, m in means[strategy].items()])
        differences = differences[~np.isnan(differences)]
        if len(differences):
            cells = (f"{differences.mean():+.4f}", f"{differences.min():+.4f}", f"{differences.max():+.4f}")
            rows.append((strategy, *cells, f"{np.sum(differences >= -0.01)} of {len(differences)}"))
    columns = ("strategy", "mean", "lowest", "highest", "within 0.01 or better")
    return Table(title="Ours minus published", columns=columns, rows=tuple(rows))


def rank_table(scores: pd.DataFrame, strategies: Sequence[str]) -> Table:
    """Return average ranks of the means over tables (1 is best), and wins, ties and losses against the first named."""
    means = scores.pivot_table(index="table", columns="strategy", values="score").dropna(axis=1)
    shown = [strategy for strategy in strategies if strategy in means]
    ranks = means[shown].round(6).rank(axis=1, ascending=False)
    rows = []
    for strategy in shown:
        difference = (means[strategy] - means[shown[0]]).round(6)
        counts = "/".join(str(int(np.sum(np.sign(difference) == sign))) for sign in (1, 0, -1))
        rows.append((strategy, f"{ranks[strategy].mean():.2f}", "-" if strategy == shown[0] else counts))
    columns = ("strategy", "average rank", f"better/same/worse than {shown[0] if shown else '-'}")
    return Table(title="Ranks", columns=columns, rows=tuple(rows), note="Of the means over repeats, on each table.")


def cost_table(runs: Sequence[SuiteRun], strategies: Sequence[str]) -> Table:
    """Return where the time went."""
    rows = []
    for strategy in strategies:
        mine = [run for run in runs if run.key.strategy == strategy]
        if mine:
            trials = sum(len(run.curve) for run in mine)
            rows.append(
                (
                    strategy,
                    str(len(mine)),
                    f"{100 * sum(run.failed for run in mine) / trials:.1f} %",
                    f"{1000 * sum(run.suggest_seconds for run in mine) / trials:.1f}",
                    f"{1000 * sum(run.fit_seconds for run in mine) / trials:.0f}",
                    f"{sum(run.seconds for run in mine) / len(mine):.0f}",
                )
            )
    columns = ("strategy", "runs", "failed trials", "ms deciding", "ms per trial", "seconds per run")
    return Table(title="Cost", columns=columns, rows=tuple(rows))


def _published(published: pd.DataFrame, table: str, strategy: str) -> float:
    method = PAPER_NAMES.get(strategy)
    if method not in published or table not in published.index:
        return float("nan")
    return float(published.loc[table, method])


def add_arguments(parser: argparse.ArgumentParser, *, tables: Sequence[str], budget: str) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(tables))
    parser.add_argument("--strategies", nargs="+", default=[*PAPER_NAMES, "random"])
    parser.add_argument("--budget", help=f"of a run, such as 500trials or 1h (default {budget})", default=budget)
    parser.add_argument("--trials", type=int, help="the same as --budget Ntrials")
    parser.add_argument("--repeats", type=int, default=10, help="seeds from 0 on")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="runs at a time; 0: show what is there")
    parser.add_argument("--work", type=Path, default=Path(".suites"), help="finished runs")
    parser.add_argument("--out", type=Path, help="folder for summary.md and results.csv")


def add_arguments_1(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, tables=TABLES_1, budget="500trials")


def add_arguments_2(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, tables=TABLES_2, budget="1h")


def main_1(arguments: argparse.Namespace) -> None:
    run_experiment(EXPERIMENT_1, arguments)


def main_2(arguments: argparse.Namespace) -> None:
    run_experiment(EXPERIMENT_2, arguments)


def run_experiment(protocol: Protocol, arguments: argparse.Namespace) -> None:
    """Make the missing runs of an experiment and show all."""
    tables = find_tables(arguments.data, arguments.tables)
    strategies = list(dict.fromkeys(arguments.strategies))
    try:
        budget = Budget(trials=arguments.trials) if arguments.trials is not None else Budget.parse(arguments.budget)
        _check_strategies(protocol, tables[0], strategies)
    except CashmereError as error:
        raise SystemExit(str(error)) from error
    file = SuiteFile(arguments.work / f"{protocol.name}.jsonl", SuiteRun)
    keys = [
        make_key(protocol, table.name, strategy, seed, budget)
        for seed in range(arguments.repeats)
        for table in tables
        for strategy in strategies
    ]
    console = Console()
    failures = _run_missing(protocol, tables, keys, file, arguments.workers, console)
    runs = [run for key in keys if (run := file.find(key)) is not None]
    if not runs:
        raise SystemExit(f"There is no finished run of {protocol.name} with these settings in {arguments.work}.")
    shown = make_tables(runs, protocol, published_means(protocol, tables), strategies)
    for table in shown:
        console.print(f"\n{escape(table.title)}", style="bold")
        console.print(table.to_rich())
        if table.note:
            console.print(escape(table.note), style="dim")
    if arguments.out is not None:
        write_results(arguments.out, protocol, runs, shown)
    if failures:
        raise SystemExit(f"{failures} runs failed; their errors are above.")


def make_tables(
    runs: Sequence[SuiteRun], protocol: Protocol, published: pd.DataFrame, strategies: Sequence[str]
) -> list[Table]:
    """Return all tables of an experiment."""
    scores = collect_scores(runs, protocol)
    return [
        score_table(scores, published, strategies),
        difference_table(scores, published, strategies),
        rank_table(scores, strategies),
        cost_table(runs, strategies),
    ]


def write_results(folder: Path, protocol: Protocol, runs: Sequence[SuiteRun], tables: Sequence[Table]) -> None:
    """Write ``summary.md`` and ``results.csv``, a row per run."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.md").write_text("\n".join(table.to_markdown() for table in tables), encoding="utf-8")
    rows: list[Mapping[str, object]] = [
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
        }
        for run in runs
    ]
    pd.DataFrame(rows).to_csv(folder / "results.csv", index=False)


def _check_strategies(protocol: Protocol, table: BenchmarkTable, strategies: Sequence[str]) -> None:
    X, target = table.read()
    profile = TaskProfile(
        task_type=table.task_type, n_rows=len(X), n_columns=X.shape[1], n_classes=target.nunique()
    )  # fmt: skip
    space = make_space(protocol.space, profile).configuration_space
    for strategy in strategies:
        make_strategy(strategy, space)


def _run_missing(
    protocol: Protocol,
    tables: Sequence[BenchmarkTable],
    keys: Sequence[SuiteKey],
    file: SuiteFile[SuiteRun],
    n_workers: int,
    console: Console,
) -> int:
    """Make the runs that are not there; return how many failed."""
    missing = [key for key in keys if file.find(key) is None]
    console.print(f"{len(keys) - len(missing)} of {len(keys)} runs are there")
    failures = 0

    def report(result: SuiteRun | SuiteFailure) -> None:
        nonlocal failures
        name = f"{result.key.table}, {result.key.strategy}, seed {result.key.seed}"
        if isinstance(result, SuiteFailure):
            failures += 1
            console.print(f"{name} failed:\n{result.error}", markup=False)
            return
        file.add(result)
        loss = result.test if protocol.test_share else result.curve[-1]
        score = "no success" if loss is None else f"{1 - loss:.4f}"
        console.print(f"{name}: {score} after {len(result.curve)} trials, {result.seconds:.0f} s", markup=False)

    if missing and n_workers:
        by_name = {table.name: table for table in tables}
        work = [(protocol, by_name[key.table], key) for key in missing]
        with until_interrupted(console):
            run_suite(work, search, n_workers=n_workers, report=report)
    return failures
