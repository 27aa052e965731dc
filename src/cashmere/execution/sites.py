"""Sites run trials on a machine of a cluster. Each has an objective, its files and watched worker processes.

No cluster engine watches the memory and time of a trial as we do. So its task or actor only waits for one of our
processes, which is killed at its limits, or when the engine or the coordinator no longer wants the trial.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from enum import StrEnum
from pathlib import Path

from cashmere.base.versions import versions
from cashmere.execution.limits import Limits
from cashmere.execution.messages import pack, unpack
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.execution.worker_versions import why_refused
from cashmere.protocols import Objective, PortableObjective
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus

_POLL_SECONDS = 0.1

_IDLE_SECONDS = 20.0
"""How long worker processes wait for the next trial: a coordinator that was killed cannot ask anybody to clear up."""

_UNUSED_SECONDS = 40.0
"""How long a site without worker processes keeps its files, which take longer to restore than processes."""


class Site:
    """An objective in this process: its files, and the worker processes that run its trials.

    Parameters
    ----------
    objective : Objective
        As on the coordinator.
    limits : Limits
        Limits of its trials.
    folder : Path
        Holds the files that it reads.
    leave : callable
        Called when the files are no longer needed here, perhaps more than once.
    """

    def __init__(self, objective: Objective, limits: Limits, *, folder: Path, leave: Callable[[], None]) -> None:
        self._objective = objective.in_folder(folder) if isinstance(objective, PortableObjective) else objective
        self._limits, self._leave_folder = limits, leave
        self._lock = threading.Lock()
        self._idle: list[WorkerProcessExecutor] = []
        self._n_running = 0
        self._closed = threading.Event()
        self._expiry = self._timer(_UNUSED_SECONDS)

    @property
    def is_closed(self) -> bool:
        """Whether the site no longer runs trials."""
        return self._closed.is_set()

    def run(self, trial: Trial, is_wanted: Callable[[], bool]) -> Outcome | None:
        """Run a trial until it ends or is no longer wanted; return None if the site was already closed."""
        with self._lock:
            if self._closed.is_set():
                return None
            executor = self._idle.pop() if self._idle else WorkerProcessExecutor(1, limits=self._limits, n_threads=1)
            self._expiry.cancel()
            self._n_running += 1
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
                self._expiry = self._timer(_IDLE_SECONDS if self._idle else _UNUSED_SECONDS)
        if not is_kept:
            executor.shutdown()
            if is_last:
                self._leave_folder()

    def _timer(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        return timer

    def _expire(self) -> None:
        """End idle worker processes; if there were none, close the site and give up the files."""
        with self._lock:
            if self._n_running or self._closed.is_set():
                return
            idle, self._idle = self._idle, []
            if idle:
                self._expiry = self._timer(_UNUSED_SECONDS)
            else:
                self._closed.set()
        for executor in idle:
            executor.shutdown()
        if not idle:
            self.close()

    def close(self) -> None:
        """End the worker processes, keeping what running trials have achieved, and give up the files."""
        with self._lock:
            self._closed.set()
            self._expiry.cancel()
            idle, self._idle = self._idle, []
            is_last = self._n_running == 0
        for executor in idle:
            executor.shutdown()
        if is_last:
            self._leave_folder()


def _last_outcome(future: Future[Outcome]) -> Outcome:
    """Return what a stopped trial had achieved."""
    with contextlib.suppress(CancelledError, TimeoutError):
        return future.result(timeout=0)
    return Outcome(status=TrialStatus.ABORTED, error=Cause(kind=CauseKind.SEARCH_ENDED))


# ---------------------------------------------------------------- the sites of this process

_sites: dict[str, Site] = {}
_lock = threading.Lock()


def open_site(name: str, make: Callable[[], Site]) -> str | None:
    """Make a site in this process, unless one of this name exists; return what went wrong, or None."""
    with _lock:
        if name in _sites and not _sites[name].is_closed:
            return None
        try:
            _sites[name] = make()
        except Exception as error:  # such as a full disk, or a module that is not installed here
            return f"{type(error).__name__}: {error}"
    return None


def close_sites(names: Sequence[str]) -> None:
    """Close those sites with these names that are in this process."""
    with _lock:
        found = [_sites.pop(name) for name in names if name in _sites]
    for site in found:
        site.close()


class Answer(StrEnum):
    """How a worker of a cluster answers to a trial."""

    OUTCOME = "outcome"
    """The packed outcome follows."""
    ABSENT = "absent"
    """There is no such site in this process; the name of the worker follows."""
    REFUSED = "refused"
    """This process must not run trials of the coordinator; a sentence follows."""


def answer_trial(
    site: str, worker: str, wanted: Mapping[str, str], trial: bytes, is_wanted: Callable[[], bool]
) -> tuple[Answer, bytes | str]:
    """Run a trial at a site of this process.

    Parameters
    ----------
    site : str
        Name of the site that has the objective.
    worker : str
        Name of this worker.
    wanted : mapping
        The `versions` of the coordinator: a worker may have joined after those of the others were compared.
    trial : bytes
        The trial, packed.
    is_wanted : callable
        Whether engine and coordinator still want the outcome.
    """
    if (problem := why_refused(versions(), wanted)) is not None:
        return Answer.REFUSED, f"{worker} {problem}"
    found = _sites.get(site)
    outcome = None if found is None else found.run(unpack(trial), is_wanted)
    return (Answer.ABSENT, worker) if outcome is None else (Answer.OUTCOME, pack(outcome))
