"""The processes that another one has started, and that these have started."""

from __future__ import annotations

import contextlib

import psutil

from cashmere.execution.process_names import FORK_SERVER


def processes_below(process: psutil.Process) -> list[psutil.Process]:
    """Return the living processes below one, but for fork servers, which stay for a while after their workers."""
    found = []
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            if child.name() != FORK_SERVER:
                found.append(child)
    return found
