"""Hit runs at random instants, continue them to their end, and compare them with runs that were left alone.

    python -m benchmarks faults kills --times 1000 --seed 0

A case is one run. It is hit one to ten times, by one kind of fault: while it fits, and while it is resumed. After each
fault the store must open and hold all it held before, and no process may be left. At the end trials, digest and
predictions must be those of the run without faults, and no temporary file may be left. Runs that follow paths for a
time are never the same twice: there every trial, cut short or not, must be whole, and the model must predict. Every
fault is a row, added when its case is finished; the same command continues an interrupted one.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from benchmarks.faults.case import CaseKey, InjectedFault, Reference, make_reference, run_case
from benchmarks.faults.kinds import FAULTS
from benchmarks.faults.orphans import adopting_orphans
from benchmarks.faults.outcome import end_with_failures
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.row_file import RowFile


def next_cases(file: RowFile[InjectedFault], *, times: int, seed: int, kinds: list[str]) -> Iterator[CaseKey]:
    """Yield cases until there are `times` faults, each of the kind that is furthest behind its share."""
    tried = Counter(dict.fromkeys(kinds, 0))
    while kinds:  # none may be possible here
        rows = [row for row in file.read() if int(row["seed"]) == seed]
        done = Counter(row["kind"] for row in rows)
        if sum(done[kind] for kind in kinds) >= times:
            return
        kind = min(kinds, key=lambda kind: done[kind] / FAULTS[kind].share)
        known = [int(row["case"]) + 1 for row in rows if row["kind"] == kind]
        case = max([tried[kind], *known])  # a case that ended before its first fault has no row
        tried[kind] = case + 1
        yield CaseKey(kind, seed, case)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=1000, help="faults in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=list(FAULTS), default=list(FAULTS), metavar="KIND")
    parser.add_argument("--out", type=Path, default=Path(".faults/faults_kills.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console = Console()
    kinds = []
    for kind in arguments.kinds:
        if reason := FAULTS[kind].make.missing():
            console.print(f"{kind}: left out, {reason}")
        else:
            kinds.append(kind)
    file = RowFile(arguments.out, InjectedFault)
    references: dict[tuple[str, bool], Reference] = {}
    with until_interrupted(console), adopting_orphans() as orphans:
        for key in next_cases(file, times=arguments.times, seed=arguments.seed, kinds=kinds):
            fault = FAULTS[key.kind].make
            strategy = fault.strategies[key.case % len(fault.strategies)]
            if (strategy, fault.follows_paths) not in references:
                references[strategy, fault.follows_paths] = make_reference(strategy, follows_paths=fault.follows_paths)
            rows = run_case(key, references[strategy, fault.follows_paths], orphans)
            file.add(rows)
            for row in rows:
                console.print(
                    f"{row.kind} {row.case}.{row.step} at {row.seconds:.1f} s of {row.command}: {row.outcome}"
                )
    end_with_failures(file.read())
