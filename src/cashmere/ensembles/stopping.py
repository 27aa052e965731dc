"""Giving up a choice that takes too long."""

from __future__ import annotations

from collections.abc import Callable

Stop = Callable[[], bool]
"""Asked all the time; true gives the choice up."""


class StoppedError(Exception):
    """The caller has given up a choice; it catches this error itself."""


def never() -> bool:
    """Return False: a `Stop` for choices that have all the time they need."""
    return False


def go_on_unless(stop: Stop) -> None:
    """Raise `StoppedError` if the caller has given up."""
    if stop():
        raise StoppedError
