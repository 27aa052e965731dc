"""Names of processes, as ``top`` and ``ps -o comm`` show them."""

from __future__ import annotations

from cashmere.execution.guard import control_process

FORK_SERVER, GUARD, WORKER = "cashmere-forks", "cashmere-guard", "cashmere-worker"

_PR_SET_NAME = 15


def name_process(name: str) -> None:
    """Give this process a name of at most 15 letters (Linux)."""
    control_process(_PR_SET_NAME, name.encode())
