"""Evaluate the same configurations on many tables, and continue a collection that was stopped."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from cashmere.base.files import check_regular, own_folder, reason
from cashmere.base.versions import versions
from cashmere.exceptions import DataError, InvalidParameterError, RunDirectoryError, RunLockedError
from cashmere.execution.cluster import Cluster
from cashmere.execution.limits import Limits
from cashmere.execution.pools import one_thread_executor
from cashmere.metalearning.observations import SourceObservations
from cashmere.pretraining.collection.batches import BATCH_SECONDS, TrialBatch
from cashmere.pretraining.collection.journal import METRIC, Journal, read_work, settle_configurations
from cashmere.pretraining.collection.table_work import TableWork
from cashmere.pretraining.collection.tables import SourceFile
from cashmere.protocols import Executor
from cashmere.records.trial import Outcome
from cashmere.space.named.registry import SpaceFactory

WALL_FACTOR = 20.0
"""Wall seconds, per CPU second of its limit, after which an evaluation that does not compute is stopped.

Large, so that the losses do not depend on other load of the machine.
"""

MEMORY_MIB = 4096.0
"""Most memory of an evaluation."""

_REPORT_SECONDS = 30.0


def collect(
    tables: Sequence[SourceFile],
    *,
    space: str | SpaceFactory,
    n_configurations: int,
    n_rows: int,
    limit_seconds: float,
    work: Path,
    n_workers: int,
    seed: int,
    cluster: Cluster | None = None,
    progress: Callable[[str], None] = lambda text: None,
    stop: Callable[[], bool] = lambda: False,
) -> SourceObservations:
    """Evaluate the same configurations of a space on many classification tables.

    Each table is cut down to `n_rows` rows; 70 % of them train and the others validate, and classes keep their shares.
    The loss is 1 - accuracy; the log loss of the same predictions is stored with it. Tables that cannot be used are
    left out.

    Parameters
    ----------
    tables : sequence of SourceFile
        From `find_tables`; evaluated in this order.
    space : str or callable
        See `make_space`.
    n_configurations : int
        Configurations per algorithm, see `draw_configurations`.
    n_rows : int
        Largest number of rows used from each table.
    limit_seconds : float
        CPU seconds of one evaluation; an evaluation that waits instead is ended after `WALL_FACTOR` times as long.
    work : Path
        Folder of work in progress. Evaluations found there are not repeated.
    n_workers : int
        Worker processes with one thread each. The losses do not depend on it.
    seed : int
        Seed for all randomness; the same table, configuration and seed give the same loss.
    cluster : Cluster, optional
        Where the workers are, instead of this machine.
    progress : callable, optional
        Called with a line of text for every table, and from time to time.
    stop : callable, optional
        Called often; once it returns True, running evaluations are abandoned.

    Returns
    -------
    SourceObservations
        Observations of the complete tables, in their order.

    Raises
    ------
    InconsistentResumeError
        If the folder was begun with other settings or other contents of a table; the message names them.
    CorruptStoreError
        If a file of the folder is damaged.
    RunLockedError
        If another process works in the folder.
    """
    least = {"n_configurations": (n_configurations, 1), "n_rows": (n_rows, 10), "n_workers": (n_workers, 1)}
    for parameter, (value, lowest) in least.items():
        if value < lowest:
            raise InvalidParameterError(parameter, value, f"at least {lowest}")
    work = work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    with _locked(work):
        name, configurations = settle_configurations(work, space, n_configurations, seed)
        settings = {
            "space": name,
            "configurations": f"{zlib.crc32(json.dumps(configurations).encode()):08x}",
            "rows": n_rows,
            "limit_seconds": limit_seconds,
            "seed": seed,
            "metric": METRIC,
        }
        scratch = work / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)  # left by a killed call
        _own(scratch)

        def begin(source: SourceFile) -> TableWork | None:
            """Return the remaining work on a table, or None if it is complete."""
            header = {
                "table": source.name,
                "origin": source.origin,
                "settings": {**settings, "target": source.target, "content": source.checksum()},
                "versions": versions(),
            }
            journal = Journal(work / f"{source.name}.jsonl", header)
            if len(journal.records) == len(configurations):
                return None
            return TableWork(
                source,
                journal,
                configurations,
                space=space,
                n_rows=n_rows,
                limit_seconds=limit_seconds,
                seed=seed,
                folder=scratch / source.name,
            )

        limits = Limits(seconds=WALL_FACTOR * limit_seconds + BATCH_SECONDS, memory_mib=MEMORY_MIB)
        executor = one_thread_executor(n_workers, limits=limits, cluster=cluster)
        try:
            _work_through(tables, begin, executor, progress, stop)
        finally:
            executor.shutdown()
            shutil.rmtree(scratch, ignore_errors=True)
    return read_work(work, [table.name for table in tables])


def _work_through(
    tables: Sequence[SourceFile],
    begin: Callable[[SourceFile], TableWork | None],
    executor: Executor,
    progress: Callable[[str], None],
    stop: Callable[[], bool],
) -> None:
    """Keep the workers busy until all tables are complete; the next table begins before the last one ends."""
    upcoming = deque(tables)
    active: list[TableWork] = []
    running: dict[Future[Outcome], tuple[TableWork, TrialBatch]] = {}
    start = last_report = time.monotonic()
    n_complete = 0

    def next_batch() -> tuple[TableWork, TrialBatch] | None:
        while not stop():
            for table in active:
                batch = table.next_batch()
                if batch is not None:
                    return table, batch
            if not upcoming:
                return None
            source = upcoming.popleft()
            try:
                begun = begin(source)
            except DataError as error:
                progress(f"{source.name}: left out. {error}")
                continue
            if begun is not None:
                active.append(begun)
        return None

    while not stop():
        while len(running) <= executor.n_workers and (ready := next_batch()) is not None:
            running[executor.submit(ready[0].objective, ready[1])] = ready
        if not running:
            return
        done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            table, batch = running.pop(future)
            table.tell(batch, future.result())
        now = time.monotonic()
        for table in [table for table in active if table.is_complete]:
            active.remove(table)
            table.close()
            n_complete += 1
            n_left = len(upcoming) + len(active)
            left = f"; {n_left} tables and about {_clock((now - start) / n_complete * n_left)} left" if n_left else ""
            progress(f"{table}{left}")
            last_report = now
        if active and now - last_report > _REPORT_SECONDS:
            last_report = now
            progress(f"{active[0]} so far")
    executor.shutdown()
    for future, (table, batch) in running.items():
        if not future.cancelled():
            table.tell(batch, future.result())


def _clock(seconds: float) -> str:
    minutes = math.ceil(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


def _own(folder: Path) -> None:
    try:
        own_folder(folder)
    except OSError as error:
        raise RunDirectoryError(folder, f"cannot be used ({reason(error)}). Delete it.") from error


@contextmanager
def _locked(work: Path) -> Iterator[None]:
    lock = FileLock(work / "lock")
    try:
        with contextlib.suppress(FileNotFoundError):
            check_regular(work / "lock")
        lock.acquire(timeout=0)
    except Timeout:
        text = "is in use by another process that collects observations. Wait for it to end, or stop it first."
        raise RunLockedError(work, text) from None
    except OSError as error:
        raise RunDirectoryError(work / "lock", f"cannot be used ({reason(error)}). Delete it.") from error
    try:
        yield
    finally:
        lock.release()
