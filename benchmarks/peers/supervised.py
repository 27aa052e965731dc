"""Run a command with a time limit, and end it together with everything it has started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_LOOK_SECONDS = 0.25

MARK = "CASHMERE_SUPERVISED"
"""Environment variable that all processes of a command inherit, even in new sessions and groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended.

    Attributes
    ----------
    seconds : float
        Wall seconds from its start.
    code : int or None
        Exit status; None if it was killed at the limit.
    peak_mib : float
        Largest resident memory of the command and all it has started, sampled four times a second.
    """

    seconds: float
    code: int | None
    peak_mib: float


def run_supervised(command: Sequence[str], *, limit_seconds: float, log: Path, environment: Mapping[str, str]) -> Ended:
    """Run a command; at the limit, when it ends, and when this process is interrupted, kill what is left of it.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    limit_seconds : float
        Wall seconds.
    log : Path
        Where its output goes.
    environment : mapping of str to str
        Variables set on top of those of this process.
    """
    mark = uuid.uuid4().hex
    start = time.monotonic()
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment, MARK: mark},
            start_new_session=True,
        )
    code: int | None = None
    memory = _Memory(mark)
    try:
        while code is None and time.monotonic() - start < limit_seconds:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=min(_LOOK_SECONDS, limit_seconds))
            memory.look()
        seconds = time.monotonic() - start
    finally:
        if process.returncode is None:  # else the number of the group may belong to another process by now
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _kill_marked(mark)
    return Ended(seconds=seconds, code=code, peak_mib=memory.peak / 2**20)


class _Memory:
    """The memory of all processes with a mark; shared pages count once where the system reports them."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._known: dict[int, bool] = {}
        self.peak = 0

    def look(self) -> None:
        total = 0
        for each in psutil.process_iter():
            if each.pid not in self._known:
                self._known[each.pid] = _has_mark(each, self._mark)
            if self._known[each.pid]:
                with contextlib.suppress(psutil.Error):
                    memory = each.memory_full_info()
                    total += getattr(memory, "pss", memory.rss)
        self.peak = max(self.peak, total)


def _kill_marked(mark: str) -> None:
    """Kill processes that left the command's group, such as the server that H2O starts in a separate session."""
    for _ in range(10):  # processes found may have forked meanwhile
        found = [each for each in psutil.process_iter() if _has_mark(each, mark)]
        if not found:
            return
        for each in found:
            with contextlib.suppress(psutil.Error):
                each.kill()
        psutil.wait_procs(found, timeout=1)


def _has_mark(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):  # gone, or of another user
        return False
