"""Make the runs that a file of rows lacks, add their rows as they end, and return the rows of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, fields
from typing import TypeVar, TypeVarTuple

import pandas as pd
from rich.console import Console

from benchmarks.runs.code_version import is_here
from benchmarks.runs.cpu_timed_search import RunKey
from benchmarks.runs.different_code import tell_different_code
from benchmarks.runs.finished_runs import Failure
from benchmarks.runs.interruption import until_interrupted
from benchmarks.runs.parallel import make_runs
from benchmarks.runs.row_file import RowFile

Row = TypeVar("Row")
Work = TypeVarTuple("Work")


def make_missing(
    wanted: Sequence[tuple[*Work, RunKey]],
    run: Callable[[*Work, RunKey], list[Row]],
    file: RowFile[Row],
    *,
    n_workers: int,
    console: Console,
    describe: Callable[[list[Row]], str],
) -> pd.DataFrame:
    """Make runs until all are in the file, or Ctrl+C; say which were made by different code.

    Parameters
    ----------
    wanted : sequence of tuple
        Arguments of `run`, in the order in which runs are made.
    run : callable
        Makes a run in a worker process, and returns its rows.
    file : RowFile
        Receives the rows, which begin with the fields of `RunKey` and have the column ``commit``.
    n_workers : int
        Number of runs at a time.
    console : Console
        Shows what has come of each.
    describe : callable
        Says it.

    Returns
    -------
    DataFrame
        The rows of these runs, and of no others that the file may hold.
    """
    names = [field.name for field in fields(RunKey)]
    done, n_failed = file.keys(*names), 0

    def report(found: list[Row] | Failure[RunKey]) -> None:
        nonlocal n_failed
        if isinstance(found, Failure):
            n_failed += 1
            console.print(f"{found.key} failed:\n{found.error}", markup=False)
            return
        file.add(found)
        console.print(describe(found), markup=False)

    with until_interrupted(console):
        make_runs([each for each in wanted if astuple(each[-1]) not in done], run, n_workers=n_workers, report=report)
    if n_failed:
        console.print(f"[yellow]{n_failed} runs failed and are missing below[/]; the same command tries them again")
    rows = file.frame_of((astuple(each[-1]) for each in wanted), *names)
    commits = rows.drop_duplicates(names)["commit"]
    tell_different_code(console, commits, {*filter(is_here, commits)}, advice="another --out repeats them")
    return rows
