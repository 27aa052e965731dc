"""One worker process as the coordinator sees it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from cashmere.execution.guard import GUARDED
from cashmere.execution.limits import kill_tree
from cashmere.execution.messages import read_message, unpack, write_message

_GUARD_SECONDS = 10.0
"""How long the guard may take to kill a worker: freeing the memory of a large one takes time."""

# The worker finds modules where the coordinator does, including the folder of a script. It never runs the script.
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from cashmere.execution.guard import guard_this_process; parent = guard_this_process(int(sys.argv[2])); "
    "from cashmere.execution.inside_worker import serve; serve(parent, sys.argv[3])"
)


class WorkerProcess:
    """Start a worker process, send it messages and receive its answers.

    Parameters
    ----------
    environment : mapping
        Environment variables besides those of this process.
    log : path or None
        Where its standard output and error are written; None discards them.
    longest_mib : float
        Length of the longest answer that is read.

    Attributes
    ----------
    pid : int
        Process number of the worker, known once `is_ready`.

    Notes
    -----
    Threads write messages and read answers, so that nobody has to wait for a worker that stops in the middle of one.
    """

    def __init__(self, *, environment: Mapping[str, str], log: Path | None, longest_mib: float = float("inf")) -> None:
        path = json.dumps([entry for entry in sys.path if isinstance(entry, str)])  # Python ignores all others, too
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, path, str(os.getpid()), str(log or os.devnull)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
            # Outside the terminal's process group from the start: only the coordinator handles Ctrl+C.
            start_new_session=True,
        )
        self.pid = -1
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._messages = self._process.stdin
        self._writer: threading.Thread | None = None
        self._answers: queue.SimpleQueue[bytes | OverflowError | None] = queue.SimpleQueue()
        reader = (self._process.stdout, self._answers, longest_mib * 2**20)
        threading.Thread(target=_read_answers, args=reader, daemon=True, name="cashmere-answers").start()

    def is_ready(self, seconds: float) -> bool:
        """Wait for the first answer; return whether it has come. Call again until it has.

        Raises
        ------
        ChildProcessError
            If the worker has ended while it started.
        """
        try:
            answer = self.receive(seconds)
        except TimeoutError:
            return False
        if answer is None:
            raise ChildProcessError("the worker ended while it started")
        self.pid = unpack(answer)
        return True

    def send(self, message: bytes) -> None:
        """Send a message; if the worker has ended, `receive` says so."""
        self._writer = threading.Thread(target=_write, args=(self._messages, message), daemon=True)
        self._writer.start()

    def receive(self, seconds: float) -> bytes | None:
        """Return the next answer, or None if the worker has ended.

        Raises
        ------
        TimeoutError
            If there is neither within `seconds`.
        OverflowError
            If its message is too long for an answer; nothing more can be received.
        """
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            if self._process.poll() is None:
                raise TimeoutError from None
            # It has ended, but a process it has started may hold the pipe open.
            try:
                answer = self._answers.get(timeout=seconds)
            except queue.Empty:
                return None
        if isinstance(answer, OverflowError):
            raise answer
        return answer

    def kill(self) -> None:
        """End the worker and everything it has started, immediately."""
        if self._process.poll() is None:  # otherwise its number may belong to another process by now
            if GUARDED:
                self._process.terminate()  # this makes the guard kill the others
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_GUARD_SECONDS)
            if self._process.poll() is None:
                kill_tree(self._process.pid)
                self._process.wait()
        if self._writer is not None:
            self._writer.join(timeout=1.0)
        if self._writer is None or not self._writer.is_alive():
            with contextlib.suppress(OSError):  # closing flushes what the worker has not read
                self._messages.close()


def _write(stream: IO[bytes], message: bytes) -> None:
    with contextlib.suppress(OSError):  # the worker has ended, which reading its answers shows
        write_message(stream, message)


def _read_answers(stream: IO[bytes], answers: queue.SimpleQueue[bytes | OverflowError | None], longest: float) -> None:
    with stream, contextlib.suppress(OSError):
        try:
            while (answer := read_message(stream, longest=longest)) is not None:
                answers.put(answer)
        except OverflowError as error:  # these bytes are not the length of an answer
            answers.put(error)
    answers.put(None)
