"""Code that runs inside the fork server (`cashmere.execution.fork_server`)."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
import warnings
from typing import Any, NoReturn

from cashmere.execution.guard import guard_this_process, signal_at_end_of_parent
from cashmere.execution.inside_worker import serve, warm_up
from cashmere.execution.process_names import FORK_SERVER, GUARD, WORKER, name_process

_IDLE_SECONDS = 30.0
"""How long the process stays at least when all its workers have ended."""


def serve_forks(coordinator: int) -> NoReturn:
    """Import what every trial needs, then fork a guarded worker for every request that arrives on standard input.

    The process must have one thread: in a fork, a lock that another thread held would never be released. (Arrow's
    memory allocator has a second one, which it holds still for forks; from Python 3.12 on, a warning tells of it.)

    Parameters
    ----------
    coordinator : int
        Process number of the parent of this process: this one ends with it.
    """
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    name_process(FORK_SERVER)
    server = os.getpid()

    def end_without_coordinator(*_: object) -> None:
        if os.getppid() != coordinator:  # else only the thread has ended that started this process
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, end_without_coordinator)
    signal.signal(signal.SIGCHLD, lambda *_: _has_workers())
    signal_at_end_of_parent(signal.SIGUSR1)
    end_without_coordinator()
    with socket.socket(fileno=os.dup(0)) as connection:
        os.dup2(1, 0)  # standard output leads nowhere
        warm_up()
        gc.collect()
        gc.freeze()  # so that collections in workers leave these objects alone, and their pages shared
        while (request := _next_request(connection)) is not None:
            tasks, results, content = request
            if os.fork() == 0:
                connection.close()
                _become_worker(server, tasks, results, content)
            os.close(tasks)
            os.close(results)
    os._exit(0)  # nothing needs to be cleared up, and a coordinator that asks in this moment must not wait


def _next_request(connection: socket.socket) -> tuple[int, int, dict[str, Any]] | None:
    """Return the descriptors and the content of the next request; None if there will be none, or none for long."""
    is_idle = False
    while not select.select([connection], [], [], _IDLE_SECONDS)[0]:
        was_idle, is_idle = is_idle, not _has_workers()
        if was_idle and is_idle:
            return None
    header, descriptors, _, _ = socket.recv_fds(connection, 8, 2)
    if len(descriptors) < 2:
        return None
    text, length = b"", int.from_bytes(header, "little")
    while len(text) < length:  # reading more could take the bytes that carry the next descriptors
        if not (part := connection.recv(length - len(text))):
            return None
        text += part
    return descriptors[0], descriptors[1], json.loads(text)


def _has_workers() -> bool:
    """Let guards that have ended vanish, so that their CPU time counts as this process's; return whether some run."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _become_worker(server: int, tasks: int, results: int, request: dict[str, Any]) -> NoReturn:
    """Turn this process, a fork of the server, into a guard, and its child into a worker that serves."""
    try:
        os.setsid()
        for number in (signal.SIGUSR1, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        for target, descriptor in enumerate((tasks, results)):
            os.dup2(descriptor, target)
            os.close(descriptor)
        name_process(GUARD)
        guard = guard_this_process(server)
        name_process(WORKER)
        _take_over(request)
        serve(guard, request["log"])
        os._exit(0)
    finally:
        os._exit(1)


def _take_over(request: dict[str, Any]) -> None:
    """Take over the variables, folder and module search path of the coordinator, and draw other random numbers."""
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[:] = request["module_search_path"]
    importlib.invalidate_caches()
    with contextlib.suppress(OSError):  # it was removed
        os.chdir(request["folder"])
    import numpy as np

    random.seed()
    np.random.seed()  # noqa: NPY002  (forks would draw the same numbers)
