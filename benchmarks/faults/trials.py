"""Run hostile trials, and look for processes that outlive them.

    python -m benchmarks faults trials --times 500 --seed 0

Trials come in batches, in random order, in the two workers of a process of its own, under limits of time and memory. In
every third batch this process is killed at a random instant. After each batch nothing that was started may be left.
Every trial is a row, added when its batch is finished; the same command continues an interrupted one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from rich.console import Console

from benchmarks.faults.commands import HANG_SECONDS, Command
from benchmarks.faults.hostile_batch import LIMIT_MIB, LIMIT_SECONDS
from benchmarks.faults.hostile_trials import ATTACKS, LOSSES, name_of
from benchmarks.faults.orphans import Orphans, adopting_orphans
from benchmarks.faults.outcome import FaultOutcome, end_with_failures
from benchmarks.runs.code_version import commit
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.place import temporary_place
from benchmarks.runs.row_file import RowFile
from cashmere.protocols import Objective
from cashmere.records.trial import TrialStatus

_BATCH = 16
_KILLED = "coordinator killed"
_ORPHAN_SECONDS = 5.0
_KILL_WITHIN_SECONDS = 6.0
_MOST_SECONDS = LIMIT_SECONDS + 5.0
"""Longest time of a trial on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileTrial:
    """One hostile trial, and its outcome.

    Attributes
    ----------
    seed, batch, number : int
        Which trial.
    attack : str
        Name of the function that ran.
    expected, status : str
        How it had to end, and how it ended: a `TrialStatus`, "success, cut short" if its last checkpoint counts, or
        "coordinator killed" if nobody was left to say so.
    seconds, mib : float
        Its duration, and the resident memory of the worker and all it had started.
    outcome : str
        Value of `FaultOutcome`. What a batch leaves behind counts for its last trial.
    detail : str
        The cause of its end; for failures, what was found.
    commit : str
        Version of the code.
    """

    seed: int
    batch: int
    number: int
    attack: str
    expected: str
    status: str
    seconds: float
    mib: float
    outcome: str
    detail: str
    commit: str


def run_batch(seed: int, batch: int, orphans: Orphans) -> list[HostileTrial]:
    """Run some hostile trials, kill their coordinator in every third batch, and look for what is left."""
    rng = Random(f"{seed} {batch}")
    attacks = rng.choices(list(ATTACKS), k=_BATCH)
    kill_after = rng.uniform(0.0, _KILL_WITHIN_SECONDS) if batch % 3 == 2 else None
    return run_trials(attacks, orphans, kill_after=kill_after, seed=seed, batch=batch)


def run_trials(
    attacks: Sequence[Objective],
    orphans: Orphans,
    *,
    kill_after: float | None = None,
    seed: int = 0,
    batch: int = 0,
) -> list[HostileTrial]:
    """Run hostile trials in a separate process, and look for what they leave behind.

    Parameters
    ----------
    attacks : sequence
        Some of `ATTACKS`.
    orphans : Orphans
        Knows the processes left behind.
    kill_after : float, optional
        Kill the process this many seconds after the first outcome.
    seed, batch : int
        Written into the rows.
    """
    names = [name_of(attack) for attack in attacks]
    with temporary_place() as place:
        command = Command(
            [sys.executable, "-m", "benchmarks.faults.hostile_batch", *names], output=place / "output.txt"
        )
        if kill_after is not None:
            command.wait_for_text("[", HANG_SECONDS)  # the first outcome
            command.wait_until(command.elapsed + kill_after)
            command.kill()
        ending = command.end()
    told = {}
    for line in ending.output.splitlines():
        if line.startswith("[") and line.endswith("]"):
            number, *rest = json.loads(line)
            told[number] = rest
    rows = []
    for number, attack in enumerate(attacks):
        status, loss, seconds, mib, cause = told.get(number, (_KILLED, None, 0.0, 0.0, ""))
        row = HostileTrial(
            seed=seed,
            batch=batch,
            number=number,
            attack=names[number],
            expected=ATTACKS[attack],
            status=status,
            seconds=round(seconds, 3),
            mib=round(mib, 1),
            outcome=FaultOutcome.OK,
            detail=cause.partition("\n")[0][:300],
            commit=commit(),
        )
        rows.append(_judged(row, loss, killed=kill_after is not None))
    if ending.status is None:
        rows[-1] = replace(rows[-1], outcome=FaultOutcome.HANG)
    if left := orphans.wait(_ORPHAN_SECONDS):
        rows[-1] = replace(rows[-1], outcome=FaultOutcome.ORPHAN, detail="; ".join(left))
    return rows


def _judged(row: HostileTrial, loss: float | None, *, killed: bool) -> HostileTrial:
    if row.status == _KILLED:
        return row if killed else replace(row, outcome=FaultOutcome.LOST)
    too_long = row.seconds > _MOST_SECONDS
    too_large = row.expected == TrialStatus.MEMORY and row.mib > 2 * LIMIT_MIB
    if row.status != row.expected or loss != LOSSES.get(row.status) or too_large:
        return replace(row, outcome=FaultOutcome.CORRUPT)
    return replace(row, outcome=FaultOutcome.HANG) if too_long else row


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=500, help="trials in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(".faults/faults_trials.csv"), help="rows; grows")


def main(arguments: argparse.Namespace) -> None:
    console = Console()
    file = RowFile(arguments.out, HostileTrial)
    with until_interrupted(console), adopting_orphans() as orphans:
        while True:
            known = [int(row["batch"]) for row in file.read() if int(row["seed"]) == arguments.seed]
            if len(known) >= arguments.times:
                break
            rows = run_batch(arguments.seed, max(known, default=-1) + 1, orphans)
            file.add(rows)
            for row in rows:
                if FaultOutcome(row.outcome).is_failure:
                    console.print(f"{row.batch}.{row.number} {row.attack}: {row.outcome} ({row.status}) {row.detail}")
            console.print(f"batch {rows[0].batch}: {len(rows)} trials")
    end_with_failures(file.read())
