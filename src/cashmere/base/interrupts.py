"""Ctrl+C as a request to stop, instead of an exception at an arbitrary place."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def stop_on_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl+C into an event; a second one interrupts as usual.

    Outside the main thread, where Python delivers no signals, the event is never set.
    """
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def handle(number: int, frame: object) -> None:
        event.set()
        signal.signal(signal.SIGINT, previous)

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, previous)
