"""The guard of a worker process: a process between coordinator and worker that outlives both and clears up."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

GUARDED = sys.platform == "linux"
"""Whether workers have a guard."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def guard_this_process(coordinator: int) -> int:
    """Divide this process in two: the guard, which stays here, and the worker, in which the call returns.

    As soon as the coordinator or the worker has ended for any reason, or on SIGTERM, the guard kills the worker and
    everything that it has started, and ends: orphans among the worker's descendants become its children, whatever they
    have done to escape. Only on Linux; elsewhere no process is added.

    Parameters
    ----------
    coordinator : int
        Process number of the parent of this process.

    Returns
    -------
    int
        Process number of the worker's parent.
    """
    if not GUARDED:
        return coordinator
    watched = {signal.SIGCHLD, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    end_with_parent_and_adopt(signal.SIGTERM)
    guard = os.getpid()
    worker = os.fork()
    if worker == 0:
        os.setsid()  # signals to the worker's process group must not reach the guard
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
        return guard
    _give_up_streams()
    status = _wait_for_an_end(worker, coordinator)
    _kill_children()
    os._exit(status)


def end_with_parent_and_adopt(number: signal.Signals) -> None:
    """Get a signal when the parent ends, and adopt descendants whose own parent has ended (Linux)."""
    signal_at_end_of_parent(number)
    control_process(_PR_SET_CHILD_SUBREAPER, 1)


def signal_at_end_of_parent(number: signal.Signals) -> None:
    """Get a signal when the thread ends that started this process, and again when its process ends (Linux)."""
    control_process(_PR_SET_PDEATHSIG, number)


def control_process(option: int, value: int | bytes) -> None:
    """Set an option of this process by ``prctl``, where there is that function (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value)


def _give_up_streams() -> None:
    """Leave the pipes to the worker, so that the coordinator notices when the worker closes them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)


def _wait_for_an_end(worker: int, coordinator: int) -> int:
    """Wait until the worker or the coordinator has ended; return the worker's exit status, or 1 if it still runs."""
    while os.getppid() == coordinator:
        if signal.sigwait({signal.SIGCHLD, signal.SIGTERM}) == signal.SIGTERM:
            break
        pid = -1
        while pid:  # reap adopted processes, too
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == worker:
                return os.waitstatus_to_exitcode(status) & 0xFF
    return 1


def _kill_children() -> None:
    """Kill all children, and the orphans that are adopted as a result, until there are none."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in _children():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def _children() -> list[int]:
    """Return the process numbers of the children of this process."""
    found, own = [], os.getpid()
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                _, parent, *_ = (path / "stat").read_bytes().rpartition(b")")[2].split()
                if int(parent) == own:
                    found.append(int(path.name))
    return found
