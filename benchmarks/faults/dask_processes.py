"""A Dask cluster of processes on this machine, whose parts can be killed one by one."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import distributed
import psutil

from benchmarks.runs.processes_below import processes_below

N_WORKERS = 2

TTL_SECONDS = 3.0
"""How long a worker may be silent before the scheduler considers it lost; Dask's own default is 5 minutes."""

_START_SECONDS = 90.0

_END_SECONDS = 10.0


class DaskProcesses:
    """A scheduler and workers with one thread each, all of them processes; every worker has a nanny.

    Parameters
    ----------
    place : Path
        Receives the local directories of the workers.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._port = _free_port()
        self._scheduler: subprocess.Popen[bytes] | None = None
        self._nannies: list[subprocess.Popen[bytes]] = []
        self.repair()

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        return f"tcp://127.0.0.1:{self._port}"

    @property
    def is_closed(self) -> bool:
        """Whether all processes have been ended."""
        return self._scheduler is None

    @property
    def scheduler(self) -> psutil.Process:
        """The process of the scheduler."""
        assert self._scheduler is not None
        return psutil.Process(self._scheduler.pid)

    @property
    def nannies(self) -> list[psutil.Process]:
        """The processes that start the workers, and start them again."""
        return [psutil.Process(nanny.pid) for nanny in self._nannies if nanny.poll() is None]

    @property
    def workers(self) -> list[psutil.Process]:
        """The processes of the workers; trials run in processes that these have started."""
        found = []
        for nanny in self.nannies:
            with contextlib.suppress(psutil.Error):
                found += [child for child in nanny.children() if "spawn_main" in " ".join(child.cmdline())]
        return found

    @property
    def processes(self) -> Collection[int]:
        """IDs of the cluster's own processes, looked up at each use."""
        return _OwnProcesses(self)

    @contextlib.contextmanager
    def client(self) -> Iterator[distributed.Client]:
        """Connect for the block, beside the run."""
        with distributed.Client(self.address, timeout=30, set_as_default=False) as client:
            yield client

    @staticmethod
    def kill(processes: Sequence[psutil.Process]) -> None:
        """Kill some processes of the cluster, and wait for their end."""
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=_END_SECONDS)

    def repair(self) -> None:
        """Start what is missing: workers of a scheduler that is gone are started again with it."""
        if self._scheduler is None or self._scheduler.poll() is not None:
            self.close()
            self._scheduler = self._start("scheduler", "--port", str(self._port), "--host", "127.0.0.1")
        self._nannies = [nanny for nanny in self._nannies if nanny.poll() is None]
        while len(self._nannies) < N_WORKERS:
            self._nannies.append(self._start("worker", self.address, "--nthreads", "1", "--memory-limit", "2GiB"))
        with self.client() as client:
            client.wait_for_workers(N_WORKERS, timeout=_START_SECONDS)

    def _start(self, command: str, *arguments: str) -> subprocess.Popen[bytes]:
        places = ("--local-directory", str(self._place)) if command == "worker" else ()
        return subprocess.Popen(
            [sys.executable, "-m", "dask", command, *arguments, *places, "--no-dashboard"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{TTL_SECONDS}s"},
            start_new_session=True,
        )

    def what_is_kept(self, seconds: float) -> str:
        """Wait until no process below the workers and no task is left; return those that are, "" if none."""

        def kept() -> str:
            below = [child for worker in self.workers for child in processes_below(worker)]
            with self.client() as client:
                tasks = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
            return ", ".join(map(str, [*below, *tasks]))

        return _wait_until_empty(kept, seconds)

    def files_kept(self, seconds: float) -> str:
        """Wait until no folder of a run is left in the local directories; return those that are, "" if none."""
        return _wait_until_empty(lambda: ", ".join(map(str, self._place.rglob("cashmere-*"))), seconds)

    def close(self) -> None:
        """End all processes."""
        processes = [*self._nannies, *([] if self._scheduler is None else [self._scheduler])]
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
            process.kill()
            process.wait()
        self._nannies, self._scheduler = [], None


class _OwnProcesses(Collection[int]):
    """See `DaskProcesses.processes`: scheduler, nannies, and what nannies have started."""

    def __init__(self, cluster: DaskProcesses) -> None:
        self._cluster = cluster

    def _pids(self) -> set[int]:
        pids = set() if self._cluster.is_closed else {self._cluster.scheduler.pid}
        for nanny in self._cluster.nannies:
            with contextlib.suppress(psutil.Error):
                pids |= {nanny.pid, *(child.pid for child in nanny.children())}
        return pids

    def __contains__(self, pid: object) -> bool:
        return pid in self._pids()

    def __iter__(self) -> Iterator[int]:
        return iter(self._pids())

    def __len__(self) -> int:
        return len(self._pids())


def _wait_until_empty(text: Callable[[], str], seconds: float) -> str:
    end = time.monotonic() + seconds
    while (left := text()) and time.monotonic() < end:
        time.sleep(0.2)
    return left


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
