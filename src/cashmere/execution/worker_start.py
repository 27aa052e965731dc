"""Start the process of a worker, watch it and end it: as a fork of the fork server, or elsewhere than on Linux anew."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Protocol

import psutil

from cashmere.execution.fork_server import fork_server, module_search_path
from cashmere.execution.guard import GUARDED
from cashmere.execution.limits import is_alive, kill_tree

_GUARD_SECONDS = 10.0
"""How long the guard may take to kill a worker: freeing the memory of a large one takes time."""

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from cashmere.execution.inside_worker import serve; serve(int(sys.argv[2]), sys.argv[3])"
)


class StartedWorker(Protocol):
    """The process of a worker, as the coordinator has started it.

    Attributes
    ----------
    messages, answers : binary streams
        To and from the worker.
    """

    messages: IO[bytes]
    answers: IO[bytes]

    def recognise(self, parent: int) -> None:
        """Take the process number of the worker's parent from its first answer."""

    def has_ended(self) -> bool:
        """Return whether it is known to have ended; the end of its answers says so, too."""

    def kill(self) -> None:
        """End the worker and everything it has started."""


class ForkedWorker:
    """A guard and its worker, forked by the fork server."""

    def __init__(self, environment: Mapping[str, str], log: Path | None) -> None:
        self.messages, self.answers = fork_server(environment).fork(log=log)
        self._guard: psutil.Process | None = None
        self._has_ended = False

    def recognise(self, parent: int) -> None:
        """Take the process number of the guard."""
        try:
            self._guard = psutil.Process(parent)
        except psutil.NoSuchProcess:
            self._has_ended = True

    def has_ended(self) -> bool:
        """Return whether the guard is known to have ended."""
        return self._has_ended or (self._guard is not None and not is_alive(self._guard))

    def kill(self) -> None:
        """Let the guard kill everything; if it takes too long, kill it as well."""
        if self._guard is None or self._has_ended:
            return  # a worker that has not answered yet ends as soon as `messages` is closed
        with contextlib.suppress(psutil.Error):
            self._guard.terminate()  # this makes the guard kill the others
            self._guard.wait(_GUARD_SECONDS)
        if not self.has_ended():
            kill_tree(self._guard.pid)


class SpawnedWorker:
    """A process of its own, without a guard."""

    def __init__(self, environment: Mapping[str, str], log: Path | None) -> None:
        path = json.dumps(module_search_path())
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, path, str(os.getpid()), str(log or os.devnull)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
            # Outside the terminal's process group from the start: only the coordinator handles Ctrl+C.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.messages, self.answers = self._process.stdin, self._process.stdout

    def recognise(self, parent: int) -> None:
        """Do nothing: it is a child of this process."""

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End the worker and everything it has started."""
        if not self.has_ended():  # otherwise its number may belong to another process by now
            kill_tree(self._process.pid)
            self._process.wait()


start_worker: Callable[[Mapping[str, str], Path | None], StartedWorker] = ForkedWorker if GUARDED else SpawnedWorker
"""Start a worker, given variables and a log as for `WorkerProcess`; raises OSError if no process can be started."""
