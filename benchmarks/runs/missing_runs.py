"""Make the runs that a file of rows lacks, and add their rows as they end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar, TypeVarTuple

from rich.console import Console

from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.runs.finished_runs import Failure
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.parallel import make_runs
from benchmarks.runs.row_file import RowFile

Row = TypeVar("Row")
Work = TypeVarTuple("Work")


def make_missing(
    wanted: Iterable[tuple[*Work, RunKey]],
    run: Callable[[*Work, RunKey], list[Row]],
    file: RowFile[Row],
    *,
    n_workers: int,
    console: Console,
    describe: Callable[[list[Row]], str],
) -> None:
    """Make runs until all are in the file, or Ctrl+C.

    Parameters
    ----------
    wanted : iterable of tuple
        Arguments of `run`, in the order in which runs are made.
    run : callable
        Makes a run in a worker process, and returns its rows.
    file : RowFile
        Receives the rows, which begin with the fields of `RunKey`.
    n_workers : int
        Number of runs at a time.
    console : Console
        Shows what has come of each.
    describe : callable
        Says it.
    """
    done = {RunKey.of(row) for row in file.read()}

    def report(found: list[Row] | Failure[RunKey]) -> None:
        if isinstance(found, Failure):
            console.print(f"{found.key} failed:\n{found.error}", markup=False)
            return
        file.add(found)
        console.print(describe(found), markup=False)

    with until_interrupted(console):
        make_runs([each for each in wanted if each[-1] not in done], run, n_workers=n_workers, report=report)
