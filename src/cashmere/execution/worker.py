"""One worker process as the coordinator sees it."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from cashmere.execution.messages import read_message, unpack, write_message
from cashmere.execution.worker_start import start_worker


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
        self._process = start_worker(environment, log)
        self.pid = -1
        self._writer: threading.Thread | None = None
        self._answers: queue.SimpleQueue[bytes | OverflowError | None] = queue.SimpleQueue()
        reader = (self._process.answers, self._answers, longest_mib * 2**20)
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
        parent, self.pid = unpack(answer)
        self._process.recognise(parent)
        return True

    def send(self, message: bytes) -> None:
        """Send a message; if the worker has ended, `receive` says so."""
        self._writer = threading.Thread(target=_write, args=(self._process.messages, message), daemon=True)
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
            if not self._process.has_ended():
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
        self._process.kill()
        if self._writer is not None:
            self._writer.join(timeout=1.0)
        if self._writer is None or not self._writer.is_alive():
            with contextlib.suppress(OSError):  # closing flushes what the worker has not read
                self._process.messages.close()


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
