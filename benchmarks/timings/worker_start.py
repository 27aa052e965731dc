"""Seconds until workers are ready and their memory: forked, as on Linux, and each with imports of its own.

    python -m benchmarks.timings.worker_start --out benchmarks/results/worker_start.csv

Forked workers are measured twice: with the start of the fork server, and when it already runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.runs.code_version import commit
from benchmarks.runs.row_file import RowFile
from cashmere.execution.fork_server import fork_server, worker_environment
from cashmere.execution.messages import read_message, unpack
from cashmere.execution.worker_start import ForkedWorker, SpawnedWorker, StartedWorker

WORKERS = (1, 2, 4, 8)
REPEATS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStart:
    """One start of workers.

    Attributes
    ----------
    start : str
        How they were started: ``spawned``, ``forked`` with the start of the fork server, or ``forked again``.
    workers : int
        How many.
    repeat : int
        Number of the measurement.
    seconds : float
        Until all were ready.
    memory_mib : float
        Of all processes that were started; pages that several share count once.
    commit : str
        Of the code.
    """

    start: str
    workers: int
    repeat: int
    seconds: float
    memory_mib: float
    commit: str


def measure(n_workers: int, repeat: int) -> list[WorkerStart]:
    """Start workers in each way, one after the other."""
    # A variable of its own lets each repeat start a fork server of its own.
    environment = {**worker_environment(1), "CASHMERE_WORKER_START": f"{n_workers}-{repeat}"}
    rows = []
    for start, make in (("spawned", SpawnedWorker), ("forked", ForkedWorker), ("forked again", ForkedWorker)):
        seconds, memory = _seconds_and_memory(make, environment, n_workers)
        rows.append(
            WorkerStart(
                start=start,
                workers=n_workers,
                repeat=repeat,
                seconds=round(seconds, 3),
                memory_mib=round(memory, 1),
                commit=commit(),
            )
        )
    fork_server(environment).end()
    return rows


def _seconds_and_memory(
    make: Callable[[Mapping[str, str], Path | None], StartedWorker], environment: Mapping[str, str], n_workers: int
) -> tuple[float, float]:
    begin = time.perf_counter()
    workers = [make(environment, None) for _ in range(n_workers)]
    for worker in workers:
        answer = read_message(worker.answers)
        assert answer is not None
        worker.recognise(unpack(answer)[0])
    seconds = time.perf_counter() - begin
    memory = sum(process.memory_full_info().pss for process in psutil.Process().children(recursive=True))
    for worker in workers:
        worker.kill()
        worker.messages.close()
        worker.answers.close()
    return seconds, memory / 2**20


def main() -> None:
    """Measure what the file lacks, and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(".timings/worker_start.csv"), help="rows; grows")
    arguments = parser.parse_args()
    file = RowFile(arguments.out, WorkerStart)
    done = file.keys("workers", "repeat")
    for repeat in range(REPEATS):
        for n_workers in WORKERS:
            if (n_workers, repeat) not in done:
                file.add(measure(n_workers, repeat))
    print(file.frame().groupby(["start", "workers"])[["seconds", "memory_mib"]].median().to_string())


if __name__ == "__main__":
    main()
