"""Code that runs inside a Dask worker: it hands trials to watched worker processes of its own.

Dask cannot stop a task. So each task only waits for such a process, which is killed at its limits, and when Dask or the
coordinator does not want the task any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, wait
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from cashmere.base.memory import total_memory
from cashmere.base.versions import versions
from cashmere.execution.limits import MIB
from cashmere.execution.messages import pack, unpack
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.protocols import PortableObjective
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus

if TYPE_CHECKING:
    from distributed import Worker

_POLL_SECONDS = 0.1

_IDLE_SECONDS = 60.0
"""How long a site waits for its next trial: a coordinator that was killed cannot tell anybody to clear up."""


class WorkerDescription(TypedDict):
    """What the coordinator wants to know of a Dask worker."""

    versions: dict[str, str]
    n_threads: int
    memory_mib: float


def describe_worker(worker: Worker) -> WorkerDescription:
    """Return the versions, the threads and the memory of a Dask worker."""
    limit = worker.memory_manager.memory_limit
    return {
        "versions": versions(),
        "n_threads": worker.state.nthreads,
        "memory_mib": limit / MIB if limit else total_memory(),
    }


def own_version() -> str:
    """Return the version of cashmere."""
    return versions().get("cashmere-automl", "of unknown version")


# ---------------------------------------------------------------- sites


class _Site:
    """An objective on this machine: its files, and the worker processes that run its trials.

    Parameters
    ----------
    delivery : bytes
        The objective, the `FileBundle` that it reads and the `Limits` of its trials, packed.
    folder : Path
        Existing folder for the files; it belongs to the site.
    """

    def __init__(self, delivery: bytes, folder: Path) -> None:
        objective, bundle, self._limits = unpack(delivery)
        bundle.write(folder)
        self._folder = folder
        self._objective = objective.in_folder(folder) if isinstance(objective, PortableObjective) else objective
        self._lock = threading.Lock()
        self._idle: list[WorkerProcessExecutor] = []
        self._n_running = 0
        self._closed = threading.Event()
        self._expiry = self._timer()

    @property
    def is_closed(self) -> bool:
        """Whether it runs no more trials."""
        return self._closed.is_set()

    def run(self, trial: Trial, is_wanted: Callable[[], bool]) -> Outcome | None:
        """Run a trial until it ends or is not wanted any more; None if the site has been closed before."""
        with self._lock:
            if self._closed.is_set():
                return None
            self._expiry.cancel()
            self._n_running += 1
            executor = self._idle.pop() if self._idle else WorkerProcessExecutor(1, limits=self._limits, n_threads=1)
        is_stopped = False
        try:
            future = executor.submit(self._objective, trial)
            while not wait([future], timeout=_POLL_SECONDS).done:
                if is_stopped := self.is_closed or not is_wanted():
                    executor.shutdown()
                    return _last_outcome(future)
            return future.result()
        finally:
            self._leave(executor, is_stopped=is_stopped)

    def _leave(self, executor: WorkerProcessExecutor, *, is_stopped: bool) -> None:
        with self._lock:
            self._n_running -= 1
            is_last = self._n_running == 0
            is_kept = not self._closed.is_set()
            if is_kept and not is_stopped:
                self._idle.append(executor)
            if is_kept and is_last:
                self._expiry = self._timer()
        if not is_kept:
            executor.shutdown()
            if is_last:
                self._remove_files()

    def _timer(self) -> threading.Timer:
        timer = threading.Timer(_IDLE_SECONDS, self._expire)
        timer.daemon = True
        timer.start()
        return timer

    def _expire(self) -> None:
        with self._lock:
            if self._n_running:
                return
            self._closed.set()
        self.close()

    def close(self) -> None:
        """End the worker processes, running trials with what they have achieved, and remove the files."""
        with self._lock:
            self._closed.set()
            self._expiry.cancel()
            idle, self._idle = self._idle, []
            is_last = self._n_running == 0
        for executor in idle:
            executor.shutdown()
        if is_last:
            self._remove_files()

    def _remove_files(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _last_outcome(future: Future[Outcome]) -> Outcome:
    """Return what a trial had achieved that was stopped."""
    with contextlib.suppress(CancelledError, TimeoutError):
        return future.result(timeout=0)
    return Outcome(status=TrialStatus.ABORTED, error=Cause(kind=CauseKind.SEARCH_ENDED))


_sites: dict[str, _Site] = {}
_lock = threading.Lock()


async def deliver(site: str, delivery: bytes, dask_worker: Any) -> str | None:
    """Make a site in this process, unless there is one of this name; return what went wrong, None if nothing did."""
    return await asyncio.to_thread(_deliver, site, delivery, dask_worker.local_directory)


def _deliver(name: str, delivery: bytes, local_directory: str) -> str | None:
    with _lock:
        if name in _sites and not _sites[name].is_closed:
            return None
        folder = None
        try:
            folder = Path(tempfile.mkdtemp(prefix="cashmere-", dir=local_directory))
            _sites[name] = _Site(delivery, folder)
        except Exception as error:  # a full disk, a module that is not installed here
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            return f"{type(error).__name__}: {error}"
    return None


async def close_sites(names: Sequence[str]) -> None:
    """Close the sites of these names, as far as they are in this process."""
    await asyncio.to_thread(_close_sites, names)


def _close_sites(names: Sequence[str]) -> None:
    with _lock:
        found = [_sites.pop(name) for name in names if name in _sites]
    for site in found:
        site.close()


# ---------------------------------------------------------------- trials


class Answer(StrEnum):
    """What the answer to a task is."""

    OUTCOME = "outcome"
    """The packed outcome follows."""
    ABSENT = "absent"
    """There is no such site in this process; the address of the Dask worker follows."""
    REFUSED = "refused"
    """This process must not run trials of the coordinator; a sentence follows."""


def run_trial(site: str, topic: str, version: str, trial: bytes) -> tuple[Answer, bytes | str]:
    """Run a trial; the function of each Dask task.

    Parameters
    ----------
    site : str
        Name of the site that has the objective.
    topic : str
        Where to announce that the task has begun.
    version : str
        Version of cashmere on the coordinator.
    trial : bytes
        The trial, packed.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    worker.log_event(topic, {"key": key, "worker": worker.address})
    if (own := own_version()) != version:
        return Answer.REFUSED, f"{worker.address} has cashmere {own}, the coordinator {version}"
    found = _sites.get(site)
    outcome = None if found is None else found.run(unpack(trial), lambda: _is_wanted(worker, key))
    return (Answer.ABSENT, worker.address) if outcome is None else (Answer.OUTCOME, pack(outcome))


def _is_wanted(worker: Worker, key: str) -> bool:
    """Return whether Dask still waits for a task: it was not cancelled, its client lives, its worker is not closing."""
    task = worker.state.tasks.get(key)
    closing = worker.status.name in ("closing", "closed", "failed")
    return task is not None and task.state == "executing" and not closing
