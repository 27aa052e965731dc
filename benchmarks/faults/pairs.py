"""Let two commands work on one run directory at once.

    python -m benchmarks faults pairs --times 60 --seed 0

The second command starts at a random instant of the first. Whoever comes too late must be told so by one of our errors;
the run must end as it does alone. Every pair is a row, added when it is finished; the same command continues an
interrupted one.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from rich.console import Console

from benchmarks.faults.case import Reference, make_reference
from benchmarks.faults.commands import (
    CASHMERE,
    Command,
    Ending,
    fit_command,
    predict,
    resume_command,
    stored_trials,
    write_table,
)
from benchmarks.faults.outcome import FaultOutcome, end_with_failures
from benchmarks.runs.code_version import commit
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.place import temporary_place
from benchmarks.runs.row_file import RowFile

PAIRS = {
    "fit and fit": ("fit", "fit"),
    "fit and resume": ("fit", "resume"),
    "resume and resume": ("resume", "resume"),
    "resume and report": ("resume", "report"),
}
_STRATEGY = "random"
_TOO_LATE = ("RunLockedError", "RunDirectoryError")
"""The second error means that the run exists already, or has not begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOfCommands:
    """Two commands on one run directory, and the outcome.

    Attributes
    ----------
    pair : str
        One of `PAIRS`.
    seed, case : int
        What the instant depends on.
    seconds : float
        How much later the second command started.
    first, second : str
        Exit status, or the name of the error.
    outcome : str
        Value of `FaultOutcome`; `TYPED` if one command was refused, `OK` if both did their work.
    detail : str
        For failures, what was found.
    commit : str
        Version of the code.
    """

    pair: str
    seed: int
    case: int
    seconds: float
    first: str
    second: str
    outcome: str
    detail: str
    commit: str


def run_pair(pair: str, seed: int, case: int, reference: Reference) -> PairOfCommands:
    """Run two commands at once, and compare the run with one that was left alone."""
    rng = Random(f"{seed} {pair} {case}")
    names = PAIRS[pair]
    with temporary_place() as place:
        table, run = place / "table.csv", place / "run"
        write_table(table)
        fit = fit_command(table, run, _STRATEGY)
        commands = {"fit": fit, "resume": resume_command(run), "report": [*CASHMERE, "report", str(run)]}
        whole = reference.fit_seconds
        if names[0] == "resume":  # a run that was killed half-way
            begun = Command(fit, output=place / "begun.txt")
            begun.wait_for_text("searching:", 60.0)
            begun.wait_until(begun.elapsed + rng.uniform(0.0, 0.3 * whole))
            begun.kill()
        seconds = rng.uniform(0.0, whole)
        first = Command(commands[names[0]], output=place / "first.txt")
        first.wait_until(seconds)
        second = Command(commands[names[1]], output=place / "second.txt")
        endings = [first.end(), second.end()]
        outcome, detail = _judge(endings, run, commands["resume"], table, reference)
    return PairOfCommands(
        pair=pair,
        seed=seed,
        case=case,
        seconds=round(seconds, 3),
        first=_short(endings[0]),
        second=_short(endings[1]),
        outcome=outcome,
        detail=detail.replace(f"{place}{os.sep}", ""),
        commit=commit(),
    )


def _judge(
    endings: Sequence[Ending], run: Path, resume: Sequence[str], table: Path, reference: Reference
) -> tuple[FaultOutcome, str]:
    told = "\n".join(ending.output[-1500:] for ending in endings)
    if any(ending.status is None for ending in endings):
        return FaultOutcome.HANG, told
    if any(ending.status and ending.typed_error not in _TOO_LATE for ending in endings):
        return FaultOutcome.TRACEBACK, told
    if all(ending.status for ending in endings):
        return FaultOutcome.CORRUPT, f"both were refused\n{told}"
    again = Command(resume, output=run.with_name("again.txt")).end()
    if again.status != 0 or again.digest != reference.digest or stored_trials(run) != reference.trials:
        return FaultOutcome.CORRUPT, f"{again}, without another command {reference.digest}\n{told}"
    if not np.array_equal(predict(run, table), reference.predictions):
        return FaultOutcome.CORRUPT, "the model predicts otherwise than without another command"
    if left := list(run.rglob(".*")):
        return FaultOutcome.LEFT, ", ".join(path.name for path in left)
    return FaultOutcome.TYPED if any(ending.status for ending in endings) else FaultOutcome.OK, ""


def _short(ending: Ending) -> str:
    return ending.typed_error or f"exit status {ending.status}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=60, help="pairs in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(".faults/faults_pairs.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console = Console()
    file = RowFile(arguments.out, PairOfCommands)
    known = {(row["pair"], int(row["case"])) for row in file.read() if int(row["seed"]) == arguments.seed}
    wanted = list(itertools.islice(((pair, case) for case in itertools.count() for pair in PAIRS), arguments.times))
    with until_interrupted(console):
        reference = make_reference(_STRATEGY)
        for pair, case in wanted:
            if (pair, case) not in known:
                row = run_pair(pair, arguments.seed, case, reference)
                file.add([row])
                console.print(f"{pair} {case} after {row.seconds:.1f} s: {row.first}, {row.second}: {row.outcome}")
    end_with_failures(file.read())
