"""Abandon a choice that takes too long."""

from __future__ import annotations

from collections.abc import Callable

Stop = Callable[[], bool]
"""Called often during a choice; returns whether to abandon it."""


class StoppedError(Exception):
    """The caller has abandoned a choice; it catches this error itself."""


def never() -> bool:
    """Return False: a `Stop` for choices that have all the time they need."""
    return False


def go_on_unless(stop: Stop) -> None:
    """Raise `StoppedError` if the caller abandons the choice."""
    if stop():
        raise StoppedError
