"""Compare cashmere with other systems on the same rows and for the same wall-clock time.

    python -m benchmarks peers --install flaml optuna_lightgbm autogluon h2o
    python -m benchmarks peers --data DIR --tables colic quake --budget 60s --repeats 3 \
        --peers cashmere flaml optuna_lightgbm autogluon h2o --out peers

Every peer has a separate environment below `--environments`. It gets three quarters of the rows and the
features of the rest; it is killed at twice the budget. A finished run is kept in `--work`, failures too, and the same
command continues where it was stopped; a runner that broke off is tried again. `--workers 0` only shows finished runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.peers.environments import OURS, Peer, find_peers, install, peer_names, require_installed
from benchmarks.peers.report import make_report, print_report, to_frame
from benchmarks.peers.runs import PeerProtocol, PeerRun, run_missing
from benchmarks.reporting.report import write_report
from benchmarks.runs.different_code import tell_different_code
from benchmarks.runs.finished_runs import Failure, FinishedRuns
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.suite_runs import SuiteKey
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables
from cashmere.base.cores import available_cores
from cashmere.records.budget import parse_seconds

MATCH = (
    "autos", "liver_disorders", "colic", "cylinder-bands", "profb", "eucalyptus", "vowel", "credit-g", "pc4", "yeast",
    "mfeat-fourier", "waveform-5000", "churn", "first-order-theorem-proving", "wine_quality", "bank32nh",
    "delta_elevators", "PhishingWebsites", "eeg", "bank-marketing",
)  # fmt: skip
"""The tables of the match: 205 to 45,211 rows, 2 to 11 classes or values, some with categories, some with gaps.

Six of them had no part in choosing a default: those named in docs/benchmarks.md.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=list(MATCH))
    parser.add_argument("--peers", nargs="+", default=[OURS], help=f"among {', '.join(peer_names())}")
    parser.add_argument("--budget", default="60s", help="wall time of a run")
    parser.add_argument("--repeats", type=int, default=3, help="number of seeds; each draws other test rows")
    parser.add_argument("--threads", type=int, default=available_cores(), help="threads that each run may use")
    parser.add_argument("--workers", type=int, default=1, help="runs at a time on this machine; 0: show finished runs")
    parser.add_argument(
        "--install", nargs="+", metavar="PEER", help="create environments, replacing existing ones, and exit"
    )
    parser.add_argument("--environments", type=Path, default=Path(".peers"), help="folder of environments")
    parser.add_argument("--work", type=Path, default=Path(".suites"), help="finished runs")
    parser.add_argument("--out", type=Path, help="folder for results.csv, summary.md and index.html")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of these runs and repeat them")


def main(arguments: argparse.Namespace) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    if arguments.install:
        for name in arguments.install:
            console.print(f"{name}: {install(name, arguments.environments)}", highlight=False)
        return
    for name in ("repeats", "threads"):
        if getattr(arguments, name) < 1:
            raise SystemExit(f"--{name} must be at least 1; got {getattr(arguments, name)}.")
    compare(
        find_peers(arguments.peers, arguments.environments),
        find_tables(arguments.data, arguments.tables),
        PeerProtocol(seconds=parse_seconds(arguments.budget, "--budget"), threads=arguments.threads),
        range(arguments.repeats),
        file=FinishedRuns(arguments.work / "peers.jsonl", PeerRun, SuiteKey),
        environments=arguments.environments,
        n_workers=arguments.workers,
        console=console,
        out=arguments.out,
        fresh=arguments.fresh,
    )


def compare(
    peers: Sequence[Peer],
    tables: Sequence[BenchmarkTable],
    protocol: PeerProtocol,
    seeds: Sequence[int],
    *,
    file: FinishedRuns[SuiteKey, PeerRun],
    environments: Path,
    n_workers: int,
    console: Console,
    out: Path | None,
    fresh: bool = False,
) -> None:
    """Make the missing runs and show all runs.

    Parameters
    ----------
    peers, tables, protocol, seeds
        Every peer runs on every table with every seed. All peers of a seed and table come one after the other, so that
        the finished runs can be compared at any time.
    file : FinishedRuns
        Finished runs.
    environments : Path
        Where peers are installed; only those whose runs are missing have to be.
    n_workers : int
        Runs at a time; 0 makes none.
    console : Console
        For progress and the report.
    out : Path or None
        Folder to write the report to.
    fresh : bool
        Whether to forget earlier results of these runs and repeat them.
    """
    wanted = {
        protocol.key(table.name, peer.name, seed): (peer, table, protocol)
        for seed in seeds
        for table in tables
        for peer in peers
    }
    if fresh:
        console.print(f"{file.forget(wanted)} runs forgotten")
    missing = {key: each for key, each in wanted.items() if not ((run := file.find(key)) and run.is_final)}
    console.print(f"{len(wanted) - len(missing)} of {len(wanted)} runs are finished")
    failures = 0
    if missing and n_workers:
        require_installed((key.strategy for key in missing), environments)
        failures = _make_missing(missing, file, n_workers, console)
    found = [run for key in wanted if (run := file.find(key)) is not None]
    if not found:
        raise SystemExit(f"There is no finished run with these settings in {file.path}.")
    tell_different_code(console, (run.code for run in found), {peer.digest for peer in peers})
    frame = to_frame(found)
    print_report(console, frame)
    if out is not None:
        console.print(f"Tables: {write_report(out, make_report(frame))}")
    if failures:
        raise SystemExit(f"{failures} runs failed; their errors are above.")


def _make_missing(
    missing: Mapping[SuiteKey, tuple[Peer, BenchmarkTable, PeerProtocol]],
    file: FinishedRuns[SuiteKey, PeerRun],
    n_workers: int,
    console: Console,
) -> int:
    """Make runs and keep them; return how many failed."""
    failures = 0

    def report(run: PeerRun | Failure[SuiteKey]) -> None:
        nonlocal failures
        name = f"{run.key.table}, {run.key.strategy}, seed {run.key.seed}"
        if isinstance(run, Failure):
            failures += 1
            console.print(f"{name} failed:\n{run.error}", markup=False)
            return
        file.add(run)
        text = run.failure or ", ".join(f"{measure} {value:.4f}" for measure, value in run.measures.items())
        console.print(f"{name}, {run.seconds:.0f} s: {text}", markup=False, highlight=False)

    with until_interrupted(console):
        run_missing([(*each, key) for key, each in missing.items()], n_workers=n_workers, report=report)
    return failures
