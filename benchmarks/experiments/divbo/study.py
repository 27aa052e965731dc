"""The experiments of the papers on DivBO and OptDivBO: searches for ensembles, beside the published numbers.

    python -m benchmarks divbo --data DIR --tables quake cpu_act --trials 60 --repeats 3 --out divbo

Every table is split into 60 % training, 20 % validation and 20 % test rows; one strategy searches the space `volcano`
for the lowest validation error (or `--metric` for regression), trial after trial, and every form that the papers report
is judged on the test rows. `optdivbo` adds five regressions. Both share their runs: a finished one is kept in `--work`,
the same command continues where it was stopped, and `--workers 0` only shows finished runs. `--recorded` replays
recordings instead, all or those of `--tables`, whatever their space. Methods are named as in the papers;
`label=strategy:options` adds custom ones.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.experiments.divbo import runs as ensemble_runs
from benchmarks.experiments.divbo.methods import SENSITIVITY, SUITES, Method, Suite, choose_methods
from benchmarks.experiments.divbo.replays import replay_key, report_replay
from benchmarks.experiments.divbo.report import make_report, print_report
from benchmarks.experiments.divbo.results import by_metric
from benchmarks.experiments.divbo.runs import EnsembleRun, protocol_of
from benchmarks.recordings.recorded_history import RECORDED
from benchmarks.recordings.replay_runs import Recording, Run, RunFiles, RunKey, code_digest, run_missing
from benchmarks.recordings.replay_study import LabelledStrategy, add_missing, check_strategies
from benchmarks.reporting.report import write_report
from benchmarks.runs.code_digest import package_digest
from benchmarks.runs.different_code import tell_different_code
from benchmarks.runs.finished_runs import Failure, FinishedRuns
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.parallel import make_runs
from benchmarks.runs.scheduler import add_scheduler_argument
from benchmarks.runs.suite_runs import Protocol, SuiteKey, make_key
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables, read_manifest
from benchmarks.tables.search_table import SearchTable
from cashmere.evaluation.metrics import get_metric
from cashmere.exceptions import CashmereError
from cashmere.records.budget import Budget
from cashmere.study import Study

SPACE = "volcano"
Runs = dict[Method, list[EnsembleRun]]


class Reporter:
    """Keep results as they arrive, and report progress."""

    def __init__(self, console: Console, file: FinishedRuns[SuiteKey, EnsembleRun], n_runs: int) -> None:
        self._console, self._file, self._n_runs = console, file, n_runs
        self._start, self._done, self.n_failed = time.monotonic(), 0, 0

    def __call__(self, result: EnsembleRun | Failure[SuiteKey]) -> None:
        """Keep a run, or say why it failed."""
        self._done += 1
        key = result.key
        left = (time.monotonic() - self._start) / self._done * (self._n_runs - self._done)
        text = f"{self._done} of {self._n_runs}, about {left / 60:.0f} min left: {key.table}, {key.strategy}, "
        text += f"seed {key.seed}"
        if isinstance(result, Failure):
            self.n_failed += 1
            text += f" failed\n{result.error}"
        else:
            self._file.add(result)
        self._console.print(text, markup=False, highlight=False)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", "--datasets", nargs="+", help="default: all of the paper that the folder holds")
    parser.add_argument("--methods", nargs="+", default=[], help="labels of the paper or label=strategy; default: all")
    parser.add_argument("--sensitivity", action="store_true", help="DivBO with 16 pairs of beta and tau, its figure 7")
    parser.add_argument("--trials", type=int, default=250)
    parser.add_argument("--repeats", type=int, help="number of seeds (default 10; 20 with --recorded)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="most rows of a table; the papers take all")
    parser.add_argument("--limit", type=float, default=60.0, help="limit of a trial in CPU seconds")
    parser.add_argument("--metric", choices=("mse", "mae"), default="mse", help="for regression")
    parser.add_argument("--paper", action="store_true", help="use the papers' options instead of our defaults")
    parser.add_argument("--recorded", action="store_true", help="replay recordings instead of training")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="runs at a time; 0: show finished runs")
    add_scheduler_argument(parser)
    parser.add_argument("--work", type=Path, default=Path(".suites"), help="finished runs")
    parser.add_argument("--replays", type=Path, default=Path(".replay"), help="finished replays")
    parser.add_argument("--out", type=Path, help="folder for results.csv, summary.md and index.html")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of these runs and repeat them")


def main_divbo(arguments: argparse.Namespace) -> None:
    run_experiments(SUITES["divbo"], arguments)


def main_optdivbo(arguments: argparse.Namespace) -> None:
    run_experiments(SUITES["optdivbo"], arguments)


def run_experiments(suite: Suite, arguments: argparse.Namespace) -> None:
    """Make the missing runs of a suite and show all runs."""
    console = Console(width=None if sys.stdout.isatty() else 160)
    methods = choose_methods(suite, arguments.methods)
    if arguments.sensitivity:
        methods = [*(methods if arguments.methods else ()), *SENSITIVITY.values()]
    if arguments.trials < ensemble_runs.N_COMMON:
        raise SystemExit(f"--trials {arguments.trials}: at least {ensemble_runs.N_COMMON}, all strategies begin so.")
    collect = _from_recordings if arguments.recorded else _from_tables
    runs, n_failed = collect(suite, methods, arguments, console)
    found = {id(run): run for part in runs.values() for run in part}.values()
    if not found:
        raise SystemExit(f"There is no finished run with these settings in {arguments.work}.")
    tell_different_code(
        console,
        (run.code for run in found),
        {code_digest() if arguments.recorded else package_digest()},
        advice="--fresh repeats them",
    )
    results = by_metric(suite, runs, recorded=arguments.recorded)
    print_report(console, results)
    if arguments.out is not None:
        console.print(f"Tables and charts: {write_report(arguments.out, make_report(results))}")
    if n_failed:
        raise SystemExit(f"{n_failed} runs failed; their errors are above.")


def _from_tables(
    suite: Suite, methods: Sequence[Method], arguments: argparse.Namespace, console: Console
) -> tuple[Runs, int]:
    """Return the runs on tables and how many failed, after making the missing ones."""
    tables = _find_tables(suite, arguments, console)
    protocols = {
        table.name: protocol_of(
            table.task_type, metric=arguments.metric, rows=arguments.rows, trial_seconds=arguments.limit
        )
        for table in tables
    }
    wanted = [
        (method, protocol, table, make_key(protocol, table.name, strategy, seed, Budget(trials=arguments.trials)))
        for seed in range(_repeats(arguments))
        for table in tables
        for method in methods
        for protocol in [protocols[table.name]]
        for strategy in [_strategy(method, table.is_classification, arguments)]
        if _fits(suite, method, protocol.metric)
    ]
    _check_strategies({(table.task_type, key.strategy): (p, table, key) for _, p, table, key in wanted}.values())
    file = FinishedRuns(arguments.work / "ensembles.jsonl", EnsembleRun, SuiteKey)
    if arguments.fresh:
        console.print(f"{file.forget(key for *_, key in wanted)} runs forgotten")
    missing = {key: (protocol, table, key) for _, protocol, table, key in wanted if file.find(key) is None}
    n_keys = len({key for *_, key in wanted})
    console.print(f"{n_keys - len(missing)} of {n_keys} runs are finished")
    reporter = Reporter(console, file, len(missing))
    if missing and arguments.workers:
        with until_interrupted(console):
            make_runs(
                list(missing.values()),
                ensemble_runs.search,
                n_workers=arguments.workers,
                scheduler=arguments.scheduler,
                report=reporter,
            )
    return _by_method((method, file.find(key)) for method, _, _, key in wanted), reporter.n_failed


def _from_recordings(
    suite: Suite, methods: Sequence[Method], arguments: argparse.Namespace, console: Console
) -> tuple[Runs, int]:
    """Return the reports of replays and how many failed, after making the missing ones."""
    recordings = _find_recordings(suite, arguments)
    wanted: list[tuple[Method, Recording, RunKey]] = []
    for seed in range(_repeats(arguments)):
        for recording in recordings:
            is_classification = recording.task_type.is_classification
            metric = "accuracy" if is_classification else arguments.metric
            for method in methods:
                strategy = _strategy(method, is_classification, arguments)
                key = RunKey(
                    recording=recording.name, digest=recording.digest, metric=metric, strategy=strategy, seed=seed
                )
                if _fits(suite, method, metric):
                    wanted.append((method, recording, key))
    for metric in {key.metric for *_, key in wanted}:
        mine = [(recording, key) for _, recording, key in wanted if key.metric == metric]
        strategies = {key.strategy: LabelledStrategy(label=key.strategy, strategy=key.strategy) for _, key in mine}
        check_strategies(list(strategies.values()), [(mine[0][0], metric)])
    replays = RunFiles(arguments.replays)
    replays.load((key.recording, key.metric) for *_, key in wanted)
    if arguments.fresh:
        console.print(f"{replays.forget(key for *_, key in wanted)} replays forgotten")
    n_failed = _replay_missing(wanted, replays, arguments, console)

    file = FinishedRuns(arguments.work / "replays.jsonl", EnsembleRun, SuiteKey)
    reports: list[tuple[Method, SuiteKey]] = []
    missing: dict[SuiteKey, tuple[Path, Run, SuiteKey]] = {}
    for method, recording, run_key in wanted:
        if (run := replays.find(run_key, arguments.trials)) is not None:
            report_key = replay_key(recording, run, arguments.trials)
            reports.append((method, report_key))
            known = file.find(report_key)
            if known is None or known.code != run.code:  # other code may have chosen the same
                missing[report_key] = (recording.path.absolute(), run, report_key)
    reporter = Reporter(console, file, len(missing))
    if missing and arguments.workers:
        console.print(f"{len(missing)} replays remain to be judged")
        with until_interrupted(console):
            make_runs(
                list(missing.values()),
                report_replay,
                n_workers=arguments.workers,
                scheduler=arguments.scheduler,
                report=reporter,
            )
    return _by_method((method, file.find(key)) for method, key in reports), n_failed + reporter.n_failed


def _replay_missing(
    wanted: Sequence[tuple[Method, Recording, RunKey]],
    replays: RunFiles,
    arguments: argparse.Namespace,
    console: Console,
) -> int:
    """Make the missing replays; return how many failed."""
    missing = {key: recording for _, recording, key in wanted if replays.find(key, arguments.trials) is None}
    n_keys = len({key for *_, key in wanted})
    console.print(f"{n_keys - len(missing)} of {n_keys} replays are finished")
    if not missing or not arguments.workers:
        return 0
    tasks = [(recording, key) for key, recording in missing.items()]
    return add_missing(
        replays, len(missing), console=console,
        make=lambda keep: run_missing(
            tasks, n_trials=arguments.trials, n_workers=arguments.workers, scheduler=arguments.scheduler, report=keep
        ),
    )  # fmt: skip


def _find_tables(suite: Suite, arguments: argparse.Namespace, console: Console) -> list[BenchmarkTable]:
    """Return the requested tables, or all of the paper that the folder holds."""
    if arguments.tables:
        tables = find_tables(arguments.data, arguments.tables)
        if suite.name == "divbo" and (others := [t.name for t in tables if not t.is_classification]):
            raise SystemExit(f"--tables {', '.join(others)}: regressions belong to optdivbo.")
        return tables
    known = read_manifest(arguments.data)
    if absent := [name for name in suite.tables if name not in known]:
        console.print(f"Left out, because {arguments.data} lacks them: {', '.join(absent)}", markup=False)
    if len(absent) == len(suite.tables):
        raise SystemExit(f"{arguments.data} holds no data set of the paper. Name others with --tables.")
    return [known[name] for name in suite.tables if name in known]


def _find_recordings(suite: Suite, arguments: argparse.Namespace) -> list[Recording]:
    """Return the recordings of the requested tables, or all that the suite has a metric for."""
    paths = {path.stem.rpartition("-")[0]: path for path in sorted(RECORDED.glob("*.zip"), key=_in_own_space)}
    if unknown := [name for name in arguments.tables or () if name not in paths]:
        raise SystemExit(f"--tables: {', '.join(unknown)} not recorded in {RECORDED}; there are {', '.join(paths)}.")
    recordings = [Recording.of(paths[name]) for name in arguments.tables or sorted(paths)]
    recordings = [each for each in recordings if suite.name != "divbo" or each.task_type.is_classification]
    if short := [each for each in recordings if each.n_configurations < arguments.trials]:
        raise SystemExit(f"{short[0].name} holds {short[0].n_configurations} configurations, fewer than --trials.")
    if not recordings:
        raise SystemExit(f"No recording in {RECORDED} is one for {suite.name}; name tables with --tables.")
    return recordings


def _in_own_space(path: Path) -> tuple[bool, str]:
    """Sort recordings in the papers' space after others of the same table, so that they are the ones kept."""
    return path.stem.endswith(f"-{SPACE}"), path.name


def _check_strategies(cases: Iterable[tuple[Protocol, BenchmarkTable, SuiteKey]]) -> None:
    """Make every strategy once, so that a wrong option is found at the start."""
    for protocol, table, key in cases:
        data = SearchTable.read(table)
        space = data.make_space(protocol.space, len(data.y)).configuration_space
        try:
            Study(space, key.strategy, metric=get_metric(protocol.metric, data.task_type))
        except CashmereError as error:
            raise SystemExit(f"--methods: {key.strategy}: {error}") from error


def _fits(suite: Suite, method: Method, metric: str) -> bool:
    """Return whether the paper has a method for a metric; custom methods are shown for all."""
    printed = {label for table in suite.printed for label in table.methods}
    of_metric = {label for table in suite.printed if table.metric == metric for label in table.methods}
    return method.label in of_metric or method.label not in printed


def _strategy(method: Method, is_classification: bool, arguments: argparse.Namespace) -> str:
    return method.strategy_for(is_classification=is_classification, as_published=arguments.paper)


def _repeats(arguments: argparse.Namespace) -> int:
    default = 20 if arguments.recorded else 10
    return default if arguments.repeats is None else int(arguments.repeats)


def _by_method(found: Iterable[tuple[Method, EnsembleRun | None]]) -> Runs:
    runs: Runs = {}
    for method, run in found:
        if run is not None:
            runs.setdefault(method, []).append(run)
    return runs
