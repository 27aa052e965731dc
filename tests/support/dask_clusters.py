"""Dask clusters on this machine, for tests."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import distributed
from processes import running


@contextlib.contextmanager
def two_workers() -> Iterator[distributed.Client]:
    """Start a scheduler and two workers, processes with one thread each; return a client."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client


@contextlib.contextmanager
def dask_process(command: str, *arguments: str, before: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Run ``dask scheduler`` or ``dask worker`` as a process; it is killed at the end.

    Parameters
    ----------
    command : str
        ``"scheduler"`` or ``"worker"``.
    *arguments
        Its arguments.
    before : str
        Statements that the process runs first.
    """
    program = f"{before}\nfrom distributed.cli.dask_{command} import main\nmain()"
    quiet = subprocess.DEVNULL
    with running([sys.executable, "-c", program, *arguments], stdout=quiet, stderr=quiet) as process:
        yield process
