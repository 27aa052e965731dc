"""Fit again and again in one process, and watch what it holds.

    python -m benchmarks faults fits --times 50

After each fit: resident memory, descriptors, threads, child processes, files in the folder for temporary files and in
the current folder, both empty at the start. Every third fit runs its trials in this process, the others in two workers.
The first `WARM_UP` fits load libraries; after them memory may grow by less than 1 MiB per fit (the slope of a line
through the rest), and the others not at all. Every fit is a row; the command starts afresh each time.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import psutil
from rich.console import Console

from benchmarks.runs.code_version import commit
from benchmarks.runs.place import temporary_place
from benchmarks.runs.processes_below import processes_below
from benchmarks.runs.row_file import write_anew
from cashmere import AutoClassifier
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.data.task import TaskProfile
from cashmere.space.named.registry import make_space
from cashmere.space.space import Space

WARM_UP = 10
_MIB = 2**20
_SETTLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAfterFit:
    """What a process holds after a fit.

    Attributes
    ----------
    fit : int
        Its number, from 0.
    isolation : str
        ``process`` or ``none``.
    mib : float
        Resident memory.
    descriptors, threads, children : int
        Open ones; living child processes.
    temporary_files, files : int
        In the folder for temporary files, and in the current folder.
    commit : str
        Version of the code.
    """

    fit: int
    isolation: str
    mib: float
    descriptors: int
    threads: int
    children: int
    temporary_files: int
    files: int
    commit: str


COUNTS = ("descriptors", "threads", "children", "temporary_files", "files")


def fit_again_and_again(times: int, place: Path) -> list[HeldAfterFit]:
    """Fit `times` times, with `place` for temporary files and as current folder."""
    folders = place / "temporary", place / "current"
    for folder in folders:
        folder.mkdir()
    rows: list[HeldAfterFit] = []
    with _folders(*folders):
        table = demo_table().sample(100, random_state=1)
        X, y = table[["duration", "credit_amount", "age"]], table[DEMO_TARGET]
        for fit in range(times):
            isolation = "none" if fit % 3 == 2 else "process"
            AutoClassifier(
                budget="4trials", space=_linear_space, resampling="holdout", isolation=isolation, n_workers=2
            ).fit(X, y)
            most = _counts(rows[0]) if rows else None
            rows.append(_settled(fit, isolation, folders, most))
    return rows


def growth(rows: Sequence[HeldAfterFit], warm_up: int = WARM_UP) -> dict[str, float]:
    """Return the growth: MiB per fit, and the increase of descriptors, threads, children and files until the end.

    Parameters
    ----------
    rows : sequence of HeldAfterFit
        In order, at least two more than `warm_up`.
    warm_up : int
        Fits at the start that do not count.
    """
    rest = rows[warm_up:]
    slope = float(np.polyfit([row.fit for row in rest], [row.mib for row in rest], 1)[0])
    first, last = asdict(rest[0]), asdict(rest[-1])
    return {"mib_per_fit": slope, **{name: float(last[name] - first[name]) for name in COUNTS}}


def _linear_space(profile: TaskProfile) -> Space:
    return make_space("default", profile).restricted_to(["logistic_regression"])


def _settled(fit: int, isolation: str, folders: tuple[Path, Path], most: tuple[int, ...] | None) -> HeldAfterFit:
    """Return what is held, once it is no more than before: threads may close what they hold a little later."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while True:
        row = _held(fit, isolation, folders)
        if most is None or time.monotonic() > deadline or all(a <= b for a, b in zip(_counts(row), most, strict=True)):
            return row
        time.sleep(0.1)


def _held(fit: int, isolation: str, folders: tuple[Path, Path]) -> HeldAfterFit:
    gc.collect()
    process = psutil.Process()
    temporary, current = (len(list(folder.rglob("*"))) for folder in folders)
    return HeldAfterFit(
        fit=fit,
        isolation=isolation,
        mib=round(process.memory_info().rss / _MIB, 2),
        descriptors=process.num_fds(),
        threads=threading.active_count(),
        children=len(processes_below(process)),
        temporary_files=temporary,
        files=current,
        commit=commit(),
    )


def _counts(row: HeldAfterFit) -> tuple[int, ...]:
    values = asdict(row)
    return tuple(values[name] for name in COUNTS)


@contextlib.contextmanager
def _folders(temporary: Path, current: Path) -> Iterator[None]:
    """Set the folder for temporary files and the current folder, for this process and those it starts."""
    before, before_current = os.environ.get("TMPDIR"), Path.cwd()
    os.environ["TMPDIR"] = str(temporary)
    tempfile.tempdir = None  # so that it is looked up again
    os.chdir(current)
    try:
        yield
    finally:
        os.chdir(before_current)
        del os.environ["TMPDIR"]
        if before is not None:
            os.environ["TMPDIR"] = before
        tempfile.tempdir = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=50, help=f"fits, the first {WARM_UP} of which do not count")
    parser.add_argument("--out", type=Path, default=Path(".faults/faults_fits.csv"), help="rows; replaced")


def main(arguments: argparse.Namespace) -> None:
    if arguments.times < WARM_UP + 2:
        raise SystemExit(
            f"--times {arguments.times}: expected at least {WARM_UP + 2}. The first {WARM_UP} fits do not count, and "
            "growth needs two more."
        )
    with temporary_place() as place:
        rows = fit_again_and_again(arguments.times, place)
    write_anew(arguments.out, rows)
    found = growth(rows)
    Console().print(found)
    if found["mib_per_fit"] >= 1.0 or any(found[name] > 0 for name in COUNTS):
        raise SystemExit("The process holds more after the last fit than after the first ones.")
