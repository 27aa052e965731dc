"""Start workers as forks of a process that has already imported what every trial needs (Linux).

A fork takes milliseconds where the imports take seconds, and workers share the memory of what was imported.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from cashmere.base.cores import threads_per_worker
from cashmere.execution.guard import GUARDED

# It finds modules where the coordinator does, including the folder of a script. It never runs the script.
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from cashmere.execution.inside_fork_server import serve_forks; serve_forks(int(sys.argv[2]))"
)

_servers: dict[frozenset[tuple[str, str]], ForkServer] = {}
_lock = threading.Lock()


def worker_environment(n_threads: int) -> dict[str, str]:
    """Return the environment variables of workers whose trials may use `n_threads` threads."""
    return {
        "OMP_NUM_THREADS": str(n_threads),
        # Sums in BLAS depend on its number of threads, and through iterative solvers, so do losses. With one thread, a
        # run is the same for any number of workers.
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
    }


def expect_workers(n_workers: int) -> None:
    """Have a fork server begin its imports, as so many workers, which share the cores, will soon be needed.

    Where workers are not forked, nothing is done, nor if the process cannot be started: workers will say why.
    """
    if GUARDED:
        with contextlib.suppress(OSError):
            fork_server(worker_environment(threads_per_worker(n_workers)))


def fork_server(environment: Mapping[str, str]) -> ForkServer:
    """Return the fork server of this process with these variables; start one if there is none, or it has ended.

    Raises
    ------
    OSError
        If it cannot be started.
    """
    key = frozenset(environment.items())
    with _lock:
        server = _servers.get(key)
        if server is not None and server.has_ended():
            server.end()
            server = None
        if server is None:
            server = _servers[key] = ForkServer(environment)
        return server


def module_search_path() -> list[str]:
    """Return where this process finds modules, without what Python ignores there, such as objects of `pathlib`."""
    return [entry for entry in sys.path if isinstance(entry, str)]


class ForkServer:
    """A process that forks workers on request. It ends with this one, and half a minute after its last worker.

    Parameters
    ----------
    environment : mapping
        Environment variables besides those of this process. Libraries read some, such as numbers of threads, only when
        they are imported.

    Raises
    ------
    OSError
        If the process cannot be started.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._connection, theirs = socket.socketpair()
        self._requesting = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, json.dumps(module_search_path()), str(os.getpid())],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **environment},
                # Outside the terminal's process group from the start: only the coordinator handles Ctrl+C.
                start_new_session=True,
            )

    def has_ended(self) -> bool:
        """Return whether the process no longer runs."""
        return self._process.poll() is not None

    def fork(self, *, log: Path | None) -> tuple[IO[bytes], IO[bytes]]:
        """Request a worker with the present variables, folder and module search path of this process.

        Parameters
        ----------
        log : path or None
            Where its standard output and error are written; None discards them.

        Returns
        -------
        messages, answers : binary streams
            To and from the worker. Answers end at once if the server ends before it has forked the worker.

        Raises
        ------
        OSError
            If the server has ended (ChildProcessError), or no pipe can be opened.
        """
        folder = ""
        with contextlib.suppress(OSError):  # it was removed
            folder = str(Path.cwd())
        request = {
            "environment": {**os.environ, **self._environment},
            "folder": folder,
            "module_search_path": module_search_path(),
            "log": str(log or os.devnull),
        }
        text = json.dumps(request).encode()
        tasks, messages = os.pipe()
        answers, results = os.pipe()
        try:
            with self._requesting:
                socket.send_fds(self._connection, [len(text).to_bytes(8, "little")], [tasks, results])
                self._connection.sendall(text)
        except OSError as error:
            os.close(messages)
            os.close(answers)
            raise ChildProcessError("the worker ended while it started") from error
        finally:
            os.close(tasks)
            os.close(results)
        return os.fdopen(messages, "wb"), os.fdopen(answers, "rb")

    def end(self) -> None:
        """End the process, and with it its workers."""
        self._connection.close()
        self._process.kill()
        self._process.wait()


@atexit.register
def _end_servers() -> None:
    for server in _servers.values():
        server.end()


def _forget_servers() -> None:
    """Leave the servers to the parent of this process, which was forked from it."""
    global _lock
    _lock = threading.Lock()
    _servers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_servers)
