"""Seconds and memory of a run on large tables until its first trial can start, and after it.

    python -m benchmarks.timings.large_start --data DIR --tables large_200000 large_1000000 --out results.csv

`python -m benchmarks large` makes such a folder. Each table is fitted by the command `cashmere fit`. The peak is the
proportional memory (PSS) of the command and all it has started, looked at ten times a second; pages of mapped files
are part of it, although the system can drop them. `cpu_seconds` are those of the command until the folds are prepared,
about 1.5 of them imports; on a busy machine they mean more than `seconds`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow.parquet as pq

from benchmarks.runs.row_file import RowFile
from benchmarks.tables.manifest import BenchmarkTable, add_data_argument, find_tables

_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeStart:
    """Measurements of a run on a table.

    Attributes
    ----------
    table : str
        Name of the table.
    rows : int
        Number of rows.
    table_mib : float
        Size of its cells, at 4 bytes each.
    budget : str
        As given to the command.
    code : str
        What was measured; free text.
    cpu_seconds, seconds : float
        From the start of the command until the first trial could start.
    start_mib : float
        Peak memory until then.
    first_trial_seconds : float or None
        From the start of the command until a first trial was stored; None if none was.
    peak_mib : float
        Peak memory of the whole command.
    total_seconds : float
        Duration of the command.
    """

    table: str
    rows: int
    table_mib: float
    budget: str
    code: str
    cpu_seconds: float
    seconds: float
    start_mib: float
    first_trial_seconds: float | None
    peak_mib: float
    total_seconds: float


def measure(table: BenchmarkTable, budget: str, *, code: str, workers: int = 2) -> LargeStart:
    """Run `cashmere fit` on a table and watch it."""
    size = pq.read_metadata(table.path)
    with tempfile.TemporaryDirectory(prefix="cashmere-large-") as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "cashmere", "fit", str(table.path), "--target", "target", "--out", str(run)]
        clock = time.perf_counter()
        process = psutil.Popen(
            [*command, "--budget", budget, "--workers", str(workers)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        peak = start_mib = cpu_seconds = seconds = 0.0
        first: float | None = None
        try:
            while process.poll() is None:
                peak = max(peak, _memory(process) / 2**20)
                elapsed = time.perf_counter() - clock
                if not seconds and (run / "prepared" / "prepared.json").exists():
                    seconds, start_mib, cpu_seconds = elapsed, peak, _cpu_seconds(process)
                if first is None and any((run / "predictions").glob("*.npy")):
                    first = round(elapsed, 1)
                time.sleep(_LOOK_SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
        total = time.perf_counter() - clock
    return LargeStart(
        table=table.name,
        rows=size.num_rows,
        table_mib=round(size.num_rows * (size.num_columns - 1) * 4 / 2**20, 1),
        budget=budget,
        code=code,
        cpu_seconds=round(cpu_seconds, 1),
        seconds=round(seconds, 1),
        start_mib=round(start_mib),
        first_trial_seconds=first,
        peak_mib=round(peak),
        total_seconds=round(total, 1),
    )


def _memory(process: psutil.Process) -> int:
    """Return the bytes of a process and all it has started; shared pages count once."""
    total = 0
    try:
        for each in [process, *process.children(recursive=True)]:
            memory = each.memory_full_info()
            total += getattr(memory, "pss", memory.rss)
    except psutil.Error:  # one of them has ended in the meantime
        pass
    return total


def _cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_argument(parser)
    parser.add_argument("--tables", nargs="+", default=["large_200000", "large_1000000"])
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--code", default="", help="what is measured, for the table of results")
    parser.add_argument("--out", type=Path, required=True, help="CSV file; rows are added to it")
    arguments = parser.parse_args()
    file = RowFile(arguments.out, LargeStart)
    for table in find_tables(arguments.data, arguments.tables):
        row = measure(table, arguments.budget, code=arguments.code, workers=arguments.workers)
        file.add([row])
        print(row, flush=True)
    print(f"{psutil.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
