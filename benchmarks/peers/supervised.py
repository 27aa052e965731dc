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

MARK = "CASHMERE_SUPERVISED"
"""Environment variable that all processes of a command inherit, whatever sessions and groups they found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended.

    Attributes
    ----------
    seconds : float
        Wall seconds from its start.
    code : int or None
        Exit status; None if it was killed at the limit.
    """

    seconds: float
    code: int | None


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
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(timeout=limit_seconds)
        seconds = time.monotonic() - start
    finally:
        if process.returncode is None:  # else the number of the group may belong to another process by now
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _kill_marked(mark)
    return Ended(seconds=seconds, code=code)


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
