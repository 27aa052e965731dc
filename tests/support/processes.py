"""Processes that tests start: they end with the test, whatever happens in it."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psutil

from benchmarks.runs.processes_below import processes_below


@contextlib.contextmanager
def running(command: Sequence[object], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process for the block; after it, the process has ended, and its pipes are closed.

    Parameters
    ----------
    command : sequence
        Program and arguments.
    **options
        See `subprocess.Popen`.
    """
    with subprocess.Popen(list(map(str, command)), **options) as process:
        try:
            yield process
        finally:
            process.kill()


def descendants(*, with_servers: bool = False) -> set[int]:
    """Return the numbers of all processes below this one, by default without fork servers, which stay for a while."""
    this = psutil.Process()
    return {child.pid for child in (this.children(recursive=True) if with_servers else processes_below(this))}


def coordinator_of_trial() -> psutil.Process:
    """Return, in a trial, the process for which it runs: above the worker are a guard and the fork server."""
    return psutil.Process().parents()[2]


def wait_until(
    holds: Callable[[], object], *, by: subprocess.Popen[Any] | None = None, seconds: float = 60.0, pause: float = 0.02
) -> None:
    """Wait until something holds.

    Parameters
    ----------
    holds : callable
        Returns something true if it does.
    by : Popen, optional
        The process that brings it about.
    seconds : float
        How long to wait; more than a busy machine needs.
    pause : float
        Seconds between two looks.

    Raises
    ------
    AssertionError
        If it takes too long, or the process has ended before.
    """
    end = time.monotonic() + seconds
    while not holds():
        assert by is None or by.poll() is None or holds(), f"ended with status {by.returncode}: {by.args}"
        assert time.monotonic() < end, f"not within {seconds:g} s"
        time.sleep(pause)
