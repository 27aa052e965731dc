"""Make runs in worker processes: the loop that all experiments share."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from typing import Any, TypeVar, TypeVarTuple

from benchmarks.runs.finished_runs import Failure
from cashmere.execution.engines import open_cluster
from cashmere.execution.pools import worker_pool

Key = TypeVar("Key")
Result = TypeVar("Result")
Work = TypeVarTuple("Work")


def make_runs(
    missing: Sequence[tuple[*Work, Key]],
    make_run: Callable[[*Work, Key], Result],
    *,
    n_workers: int,
    scheduler: str | None = None,
    report: Callable[[Result | Failure[Key]], None],
) -> None:
    """Make runs in processes of one thread each; every result is reported when it arrives.

    Parameters
    ----------
    missing : sequence of tuple
        Arguments of `make_run` for each run, in this order; the last argument is the key of the run.
    make_run : callable
        Makes a run in a worker. What it raises is reported as a `Failure`.
    n_workers : int
        Number of runs at a time.
    scheduler : str, optional
        Address of the Dask cluster whose machines make the runs, instead of this one.
    report : callable
        Called in this process, with one result at a time. When it raises, or on Ctrl+C, the workers are ended.
    """
    with (
        open_cluster(scheduler, n_threads=n_workers) as cluster,
        worker_pool(n_workers, cluster=cluster) as executor,
    ):
        tasks = [executor.submit(_run, make_run, *each) for each in missing]
        for task in as_completed(tasks):
            report(task.result())


def _run(make_run: Callable[..., Result], *each: Any) -> Result | Failure[Any]:
    try:
        return make_run(*each)
    except Exception as error:
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        return Failure(key=each[-1], error=traceback.format_exc(), cause=cause)
