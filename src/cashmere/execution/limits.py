"""Time and memory limits of a trial, watched and enforced from outside its process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import psutil

from cashmere.records.trial import Trial

MIB = 2**20

_SCAN_SECONDS = 0.5
"""How often the descendants of a process are looked up, which needs a scan of the process table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one trial.

    Attributes
    ----------
    seconds : float or None
        Wall time.
    cpu_seconds : float or None
        CPU time of the worker process, summed over its threads; processes it starts do not count. Fairer than wall
        time on a shared machine.
    memory_mib : float or None
        Resident memory of the worker and all its descendants, in MiB.
    seconds_by_share : mapping of float to float
        Wall time of trials on a share of the rows (`Trial.fidelity`), instead of `seconds`.
    """

    seconds: float | None = None
    cpu_seconds: float | None = None
    memory_mib: float | None = None
    seconds_by_share: Mapping[float, float] = field(default_factory=dict)

    def seconds_for(self, trial: Trial) -> float | None:
        """Return the limit of wall time of a trial."""
        return self.seconds_by_share.get(trial.fidelity, self.seconds)


class ProcessWatch:
    """Track the resident memory of a process tree, and the CPU time of its root, at little cost.

    Parameters
    ----------
    pid : int
        Number of the process.

    Attributes
    ----------
    peak_mib : float
        Largest memory that `read` has returned.
    """

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._cpu_start = _cpu_seconds(self._process)
        self._next_scan = 0.0
        self._children: list[psutil.Process] = []
        self.peak_mib = 0.0

    def read(self, limit_mib: float | None = None) -> float:
        """Return the resident memory of the tree in MiB, and remember the peak.

        Parameters
        ----------
        limit_mib : float, optional
            Above it, the sum is computed again, counting pages that forked children share with their parent only once.

        Raises
        ------
        psutil.NoSuchProcess
            If the process itself has ended.
        """
        now = time.monotonic()
        if now >= self._next_scan:
            self._children = self._process.children(recursive=True)
            self._next_scan = now + _SCAN_SECONDS
        total = self._process.memory_info().rss
        for child in self._children:
            with contextlib.suppress(psutil.Error):
                total += child.memory_info().rss
        if limit_mib is not None and self._children and total / MIB > limit_mib:
            total = sum(_proportional(process) for process in (self._process, *self._children))
        self.peak_mib = max(self.peak_mib, total / MIB)
        return total / MIB

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the process since the watch began.

        Raises
        ------
        psutil.NoSuchProcess
            If the process has ended.
        """
        return _cpu_seconds(self._process) - self._cpu_start


def kill_descendants(pid: int) -> int:
    """Kill everything that a process has started, but not the process itself; return the number of processes found.

    Workers are child subreapers (on Linux), so grandchildren whose parent has ended are still found here.
    """
    found = 0
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        for _ in range(10):  # a fork bomb may be faster than one sweep
            children = [c for c in root.children(recursive=True) if is_alive(c)]
            if not children:
                break
            found += len(children)
            for child in children:
                with contextlib.suppress(psutil.Error):
                    child.kill()
            psutil.wait_procs(children, timeout=0.2)
    return found


def kill_tree(pid: int) -> None:
    """Kill a process and all its descendants immediately (SIGKILL, which no handler can catch).

    This does not wait for the process itself: its parent must reap it.
    """
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        with contextlib.suppress(psutil.Error):
            root.suspend()  # it must not fork while its children are listed
        kill_descendants(pid)
        root.kill()


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _proportional(process: psutil.Process) -> int:
    """Return the resident bytes, each shared page divided by the number of its users if the system reports that."""
    try:
        memory = process.memory_full_info()
    except psutil.Error:
        return 0
    return int(getattr(memory, "pss", memory.rss))


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; one that has ended and whose parent has not noticed does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
