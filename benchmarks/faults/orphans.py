"""Processes that outlive the one that started them: this process adopts them, so that none can hide."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Collection, Iterator

import psutil

_PR_SET_CHILD_SUBREAPER = 36


@contextlib.contextmanager
def adopting_orphans() -> Iterator[Orphans]:
    """Become the parent of all orphans among the descendants of this process (Linux), for the time of the block."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield Orphans()
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0)


class Orphans:
    """The descendants of this process that were not there when the object was made."""

    def __init__(self) -> None:
        self._me = psutil.Process()
        self._known = {process.pid for process in self._me.children(recursive=True)}

    def wait(self, seconds: float, *, but: Collection[int] = ()) -> list[str]:
        """Wait until no descendant is left; kill those that stay longer, and return their command lines.

        Parameters
        ----------
        seconds : float
            How long to wait.
        but : collection of int
            IDs of processes that may stay.

        Notes
        -----
        Workers that are still importing when their coordinator dies notice it only afterwards.
        """
        deadline = time.monotonic() + seconds
        while (alive := self._alive(but)) and time.monotonic() < deadline:
            time.sleep(0.05)
        found = []
        for process in alive:
            with contextlib.suppress(psutil.Error):
                found.append(f"{process.pid} {' '.join(process.cmdline())[:120]}")
                process.kill()
        self._alive(but)
        return found

    def _alive(self, but: Collection[int]) -> list[psutil.Process]:
        """Return the living descendants, and reap dead ones, for which nobody else waits."""
        alive = []
        for process in self._me.children(recursive=True):
            if process.pid in self._known or process.pid in but:
                continue
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE:
                    alive.append(process)
                elif process.ppid() == self._me.pid:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(process.pid, os.WNOHANG)
        return alive
