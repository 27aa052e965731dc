"""Names of processes, as ``top`` and ``ps -o comm`` show them."""

from __future__ import annotations

import contextlib
import ctypes
import sys

FORK_SERVER, GUARD, WORKER = "cashmere-forks", "cashmere-guard", "cashmere-worker"

_PR_SET_NAME = 15


def name_process(name: str) -> None:
    """Give this process a name of at most 15 letters (Linux)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NAME, name.encode())
