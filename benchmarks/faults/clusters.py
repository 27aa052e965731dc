"""Hit runs whose trials are on a Dask cluster, continue them to their end, and compare them with runs on one machine.

    python -m benchmarks faults clusters --minutes 10 --kinds mixed

A case is one run on a cluster of its own: a scheduler and two workers with nannies, all on this machine. It is hit
up to eight times. After each fault that ends the command, the store must hold all it held before, and no process of a
trial may be left. At the end trials, digest and predictions must be those of a run on one machine without faults, and
on the cluster no task, process or file of the run may be left. Every fault is a row, added when its case is finished;
the same command goes on with further cases.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.faults.case import CaseKey, InjectedFault, Reference, make_reference, run_case
from benchmarks.faults.cluster_kinds import CLUSTER_FAULTS
from benchmarks.faults.orphans import adopting_orphans
from benchmarks.faults.outcome import end_with_failures
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile


def hit_runs(kinds: Sequence[str], *, seconds: float, seed: int, first_case: int = 0) -> Iterator[list[InjectedFault]]:
    """Yield the results of the faults of one run after the other, of each kind in turn, until the time is over.

    Parameters
    ----------
    kinds : sequence of str
        Names of `CLUSTER_FAULTS`.
    seconds : float
        No further run begins after this time.
    seed, first_case : int
        What the random choices depend on.
    """
    references: dict[str, Reference] = {}
    end = time.monotonic() + seconds
    with adopting_orphans() as orphans:
        for case in itertools.count(first_case) if kinds else ():
            for kind in kinds:
                strategies = CLUSTER_FAULTS[kind].make.strategies
                strategy = strategies[case % len(strategies)]
                if strategy not in references:
                    references[strategy] = make_reference(strategy)
                yield run_case(CaseKey(kind, seed, case), references[strategy], orphans, CLUSTER_FAULTS)
                if time.monotonic() > end:
                    return


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=60.0, help="no further run begins after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--kinds", nargs="+", choices=list(CLUSTER_FAULTS), default=list(CLUSTER_FAULTS), metavar="KIND"
    )
    parser.add_argument("--out", type=Path, default=Path(".faults/faults_clusters.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console = Console()
    kinds = []
    for kind in arguments.kinds:
        if reason := CLUSTER_FAULTS[kind].make.missing():
            console.print(f"{kind}: left out, {reason}")
        else:
            kinds.append(kind)
    file = RowFile(arguments.out, InjectedFault)
    first_case = max([int(row["case"]) + 1 for row in file.read() if int(row["seed"]) == arguments.seed], default=0)
    with until_interrupted(console):
        for rows in hit_runs(kinds, seconds=60 * arguments.minutes, seed=arguments.seed, first_case=first_case):
            file.add(rows)
            for row in rows:
                console.print(
                    f"{row.kind} {row.case}.{row.step} at {row.seconds:.1f} s of {row.command}, {row.what}: "
                    f"{row.outcome}"
                )
    end_with_failures(file.read())
