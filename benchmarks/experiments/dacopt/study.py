"""The experiments of the DACOpt paper: contests and their baselines, beside the published numbers.

    python -m benchmarks dacopt1 --data DIR --tables pima glass1 --trials 500 --repeats 3

Experiment 1 maximises the geometric mean of the recalls over 5 stratified folds on the space `imbalance`; what is
reported is the best value found, averaged over the repeats (other folds for each). Experiment 2 maximises accuracy over
4 folds of 70 % of the rows on the space `autosklearn6`, and reports the accuracy of the best configuration, fitted on
all of these, on the other 30 %. Contests have our defaults, with `--paper` the options of the paper's runs; only these
stand beside its numbers. A trial may take 30 and 120 seconds (`--limit`; in the paper, 600 in experiment 2).

A finished run is kept in `--work`; the same command continues where it was stopped, and `--workers 0` only shows
finished runs. `--tables all` takes every table of the paper in the folder. The others are tested against the first
strategy.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.experiments.dacopt.report import make_report, print_report
from benchmarks.experiments.dacopt.results import (
    HYPEROPT,
    INSIDE,
    PAPER_NAMES,
    Results,
    published_means,
    published_tables,
    reported_loss,
)
from benchmarks.reporting.report import write_report
from benchmarks.runs.code_digest import package_digest
from benchmarks.runs.different_code import tell_different_code
from benchmarks.runs.finished_runs import Failure, FinishedRuns
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.parallel import make_runs
from benchmarks.runs.scheduler import add_scheduler_argument
from benchmarks.runs.suite_runs import (
    Protocol,
    SuiteKey,
    SuiteRun,
    make_key,
    search,
)
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables, read_manifest
from cashmere.data.task import TaskProfile
from cashmere.exceptions import CashmereError
from cashmere.records.budget import Budget
from cashmere.space.named.registry import make_space
from cashmere.strategies import make_strategy

EXPERIMENT_1 = Protocol(name="dacopt1", space="imbalance", metric="g_mean", resampling="5fold")
EXPERIMENT_2 = Protocol(
    name="dacopt2", space="autosklearn6", metric="accuracy", resampling="4fold", test_share=0.3, trial_seconds=120.0
)
TABLES_1 = ("glass1", "pima", "vehicle1", "ecoli2", "yeast-2_vs_4", "yeast-1_vs_7")
TABLES_2 = ("blood-transfusion-service-center", "cmc", "credit-g", "eucalyptus", "vehicle", "kr-vs-kp")
ALL = ["all"]


def add_arguments(parser: argparse.ArgumentParser, *, tables: Sequence[str], budget: str) -> None:
    add_data_argument(parser)
    parser.add_argument(
        "--tables", "--datasets", nargs="+", default=list(tables),
        help=f"tables of the data folder; all: those of the paper that it holds (default {' '.join(tables)})",
    )  # fmt: skip
    parser.add_argument("--strategies", nargs="+", default=[*INSIDE, "bo4ml", HYPEROPT, "random"])
    parser.add_argument("--paper", action="store_true", help="use the paper's options for contests named without any")
    parser.add_argument("--limit", type=float, help="seconds of a trial (default 30; experiment 2: 120, the paper 600)")
    parser.add_argument("--budget", help=f"budget of a run, such as 500trials or 1h (default {budget})", default=budget)
    parser.add_argument("--trials", type=int, help="the same as --budget Ntrials")
    parser.add_argument("--repeats", type=int, default=10, help="number of seeds, starting at 0")
    parser.add_argument("--rows", type=int, help="most rows of a table, a stratified draw (default all)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="runs at a time; 0: show finished runs")
    add_scheduler_argument(parser)
    parser.add_argument("--work", type=Path, default=Path(".suites"), help="finished runs")
    parser.add_argument("--out", type=Path, help="folder for CSV files, summary.md and index.html")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of these runs and repeat them")


def add_arguments_1(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, tables=TABLES_1, budget="500trials")


def add_arguments_2(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, tables=TABLES_2, budget="1h")


def main_1(arguments: argparse.Namespace) -> None:
    run_experiment(EXPERIMENT_1, arguments)


def main_2(arguments: argparse.Namespace) -> None:
    run_experiment(EXPERIMENT_2, arguments)


def run_experiment(protocol: Protocol, arguments: argparse.Namespace) -> None:
    """Make the missing runs of an experiment and show all runs."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    tables = _find_tables(protocol, arguments, console)
    if arguments.limit is not None:
        protocol = replace(protocol, trial_seconds=arguments.limit)
    strategies = list(dict.fromkeys(arguments.strategies))
    if arguments.paper:
        published = {text.partition(":")[0]: text for text in PAPER_NAMES if text.partition(":")[0] in INSIDE}
        strategies = [published.get(strategy, strategy) for strategy in strategies]
    try:
        budget = Budget(trials=arguments.trials) if arguments.trials is not None else Budget.parse(arguments.budget)
        _check_strategies(protocol, tables[0], strategies)
    except CashmereError as error:
        raise SystemExit(str(error)) from error
    file = FinishedRuns(arguments.work / f"{protocol.name}.jsonl", SuiteRun, SuiteKey)
    protocols = {table.name: limit_rows(protocol, table, arguments.rows) for table in tables}
    wanted = [
        (protocols[table.name], table, make_key(protocols[table.name], table.name, strategy, seed, budget))
        for seed in range(arguments.repeats)
        for table in tables
        for strategy in strategies
    ]
    if arguments.fresh:
        console.print(f"{file.forget(key for *_, key in wanted)} runs forgotten")
    failures = _run_missing(wanted, file, console, n_workers=arguments.workers, scheduler=arguments.scheduler)
    runs = [run for *_, key in wanted if (run := file.find(key)) is not None]
    if not runs:
        raise SystemExit(f"There is no finished run of {protocol.name} with these settings in {arguments.work}.")
    tell_different_code(console, (run.code for run in runs), {package_digest()}, advice="--fresh repeats them")
    results = Results(
        protocol=protocol,
        runs=runs,
        published=published_means(protocol, tables),
        wanted=tuple(strategies),
        rows=arguments.rows,
    )
    print_report(console, results)
    if arguments.out is not None:
        console.print(f"Tables and charts: {write_report(arguments.out, make_report(results))}")
    if failures:
        raise SystemExit(f"{failures} runs failed; their errors are above.")


def limit_rows(protocol: Protocol, table: BenchmarkTable, rows: int | None) -> Protocol:
    """Return the protocol with a limit of rows for one table.

    If the table does not reach the limit, the protocol is returned unchanged, so that its runs count as the same.

    Parameters
    ----------
    protocol : Protocol
        Protocol of the experiment.
    table : BenchmarkTable
        Its number of rows is looked up.
    rows : int or None
        At most; None for all.
    """
    n_rows = _count_rows(table)
    limit = n_rows if rows is None else min(rows, n_rows)
    return protocol if limit == n_rows <= protocol.rows else replace(protocol, rows=limit)


def _count_rows(table: BenchmarkTable) -> int:
    """Return the number of rows without reading them."""
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(table.path).num_rows)
    except (OSError, ValueError) as error:
        raise SystemExit(f"{table.path}, named by the manifest, cannot be read ({error}).") from error


def _find_tables(protocol: Protocol, arguments: argparse.Namespace, console: Console) -> list[BenchmarkTable]:
    """Return the requested tables, or all of the paper that the folder holds."""
    if arguments.tables != ALL:
        return find_tables(arguments.data, arguments.tables)
    tables, absent = published_tables(protocol, read_manifest(arguments.data))
    if absent:
        console.print(f"Left out, because {arguments.data} lacks them: {', '.join(absent)}", markup=False)
    if not tables:
        raise SystemExit(f"{arguments.data} holds no table of the paper. Name others with --tables.")
    return tables


def _check_strategies(protocol: Protocol, table: BenchmarkTable, strategies: Sequence[str]) -> None:
    X, target = table.read()
    profile = TaskProfile(
        task_type=table.task_type, n_rows=len(X), n_columns=X.shape[1], n_classes=target.nunique()
    )  # fmt: skip
    space = make_space(protocol.space, profile).configuration_space
    for strategy in strategies:
        make_strategy(strategy, space)


def _run_missing(
    wanted: Sequence[tuple[Protocol, BenchmarkTable, SuiteKey]],
    file: FinishedRuns[SuiteKey, SuiteRun],
    console: Console,
    *,
    n_workers: int,
    scheduler: str | None,
) -> int:
    """Make the missing runs; return how many failed."""
    missing = [(protocol, table, key) for protocol, table, key in wanted if file.find(key) is None]
    protocols = {key: protocol for protocol, _, key in missing}
    console.print(f"{len(wanted) - len(missing)} of {len(wanted)} runs are finished")
    failures = 0

    def report(result: SuiteRun | Failure[SuiteKey]) -> None:
        nonlocal failures
        name = f"{result.key.table}, {result.key.strategy}, seed {result.key.seed}"
        if isinstance(result, Failure):
            failures += 1
            console.print(f"{name} failed:\n{result.error}", markup=False)
            return
        file.add(result)
        loss = reported_loss(result, protocols[result.key])
        score = "no success" if loss is None else f"{1 - loss:.4f}"
        console.print(f"{name}: {score} after {len(result.curve)} trials, {result.seconds:.0f} s", markup=False)

    if missing and n_workers:
        with until_interrupted(console):
            make_runs(missing, search, n_workers=n_workers, scheduler=scheduler, report=report)
    return failures
