"""Ctrl+C, or SIGTERM in its place, as a request to stop, or as the one exception that it should raise."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


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


@contextlib.contextmanager
def keep_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt after Ctrl+C even if the code that it interrupts raises another exception in its place.

    Compiled modules do so while they are imported: numpy answers with a ValueError about a buffer.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    pressed = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    except Exception as error:
        if pressed:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Answer SIGTERM as Ctrl+C would be answered at this moment: containers, services and clusters send it to stop.

    The first process of a container would ignore it otherwise. Processes that this one starts do not inherit it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        answer = signal.getsignal(signal.SIGINT)
        if not callable(answer):  # a shell makes background processes ignore Ctrl+C
            answer = signal.default_int_handler
        answer(signal.SIGINT, frame)

    previous = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
