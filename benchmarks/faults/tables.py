"""Show what came of all faults so far, as the tables in docs/faults.md.

python -m benchmarks faults tables --rows benchmarks/results
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.faults.cluster_kinds import CLUSTER_FAULTS
from benchmarks.faults.fits import COUNTS, WARM_UP
from benchmarks.faults.kinds import FAULTS
from benchmarks.faults.outcome import FaultOutcome
from benchmarks.faults.pairs import PAIRS
from benchmarks.reporting.table import Table
from benchmarks.runs.row_file import read_rows

Row = Mapping[str, str]


def make_tables(folder: Path) -> list[Table]:
    """Return the tables of all files of rows in a folder; those without rows are left out."""
    makers = {
        "kills": kills_table,
        "trials": trials_table,
        "fits": fits_table,
        "pairs": pairs_table,
        "clusters": clusters_table,
    }
    found = {name: read_rows(folder / f"faults_{name}.csv") for name in makers}
    return [maker(found[name]) for name, maker in makers.items() if found[name]]


def kills_table(rows: Sequence[Row]) -> Table:
    """Return a line for each kind of fault."""
    return _faults_table("Faults", rows, FAULTS)


def clusters_table(rows: Sequence[Row]) -> Table:
    """Return a line for each kind of fault that strikes runs on a cluster."""
    return _faults_table("Runs on a cluster", rows, CLUSTER_FAULTS)


def _faults_table(title: str, rows: Sequence[Row], kinds: Iterable[str]) -> Table:
    lines = []
    for kind in [*kinds, "all"]:
        of_kind = [row for row in rows if kind in (row["kind"], "all")]
        seconds = [float(row["resume_seconds"]) for row in of_kind if row["resume_seconds"]]
        lines.append(
            (
                kind,
                str(len(of_kind)),
                str(sum(row["command"] == "resume" for row in of_kind)),
                *_counts(of_kind, FaultOutcome),
                f"{median(seconds):.1f}" if seconds else "",
            )
        )
    cases = len({(row["kind"], row["seed"], row["case"]) for row in rows})
    return Table(
        title=title,
        columns=("fault", "times", "during `resume`", *FaultOutcome, "seconds to the end"),
        rows=tuple(lines),
        note=f"{len(rows)} faults in {cases} runs. Seconds to the end: median duration of the command that brought the "
        "run to its end after the last fault.",
    )


def trials_table(rows: Sequence[Row]) -> Table:
    """Return a line for each hostile trial."""
    lines: list[tuple[str, ...]] = []
    for attack in dict.fromkeys(sorted(row["attack"] for row in rows)):
        of_attack = [row for row in rows if row["attack"] == attack]
        ended = [row for row in of_attack if row["status"] == row["expected"]]
        lines.append(
            (
                attack.replace("_", " "),
                of_attack[0]["expected"],
                str(len(of_attack)),
                str(len(ended)),
                str(sum(row["status"] == "coordinator killed" for row in of_attack)),
                str(sum(FaultOutcome(row["outcome"]).is_failure for row in of_attack)),
            )
        )
    lines.append(("all", "", *(str(sum(int(line[i]) for line in lines)) for i in range(2, 6))))
    left = sum(row["outcome"] == FaultOutcome.ORPHAN for row in rows)
    return Table(
        title="Hostile trials",
        columns=("what the trial does", "must end as", "times", "did", "coordinator killed before", "failed"),
        rows=tuple(lines),
        note=f"In {len({(row['seed'], row['batch']) for row in rows})} batches, of which {left} left a process behind.",
    )


def fits_table(rows: Sequence[Row]) -> Table:
    """Return a line for each kind of thing that a process holds."""
    rest = rows[WARM_UP:]
    slope = float(np.polyfit([int(row["fit"]) for row in rest], [float(row["mib"]) for row in rest], 1)[0])
    lines = [("memory, MiB", f"{float(rest[0]['mib']):.0f}", f"{float(rest[-1]['mib']):.0f}", f"{slope:.3f}")]
    for name in COUNTS:
        first, last = rest[0][name], rest[-1][name]
        lines.append((name.replace("_", " "), first, last, f"{(int(last) - int(first)) / (len(rest) - 1):g}"))
    return Table(
        title="Fits in one process",
        columns=("held", f"after fit {WARM_UP + 1}", f"after fit {len(rows)}", "growth per fit"),
        rows=tuple(lines),
        note="Growth of memory: the slope of a line through all fits but the first ten.",
    )


def pairs_table(rows: Sequence[Row]) -> Table:
    """Return a line for each pair of commands."""
    lines = []
    for pair in PAIRS:
        of_pair = [row for row in rows if row["pair"] == pair]
        lines.append((pair, str(len(of_pair)), *_counts(of_pair, FaultOutcome)))
    return Table(
        title="Two commands on one run directory",
        columns=("commands", "times", *FaultOutcome),
        rows=tuple(lines),
        note="ok: both did their work, one after the other. typed error: one of them was refused.",
    )


def _counts(rows: Iterable[Row], outcomes: Iterable[FaultOutcome]) -> list[str]:
    found = Counter(row["outcome"] for row in rows)
    return [str(found[outcome]) for outcome in outcomes]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rows", type=Path, default=Path("benchmarks/results"), help="folder with faults_kills.csv, ..."
    )


def main(arguments: argparse.Namespace) -> None:
    for table in make_tables(arguments.rows):
        print(table.to_markdown())
