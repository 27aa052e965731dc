"""What is done to runs on a Dask cluster: one class for each kind of fault."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from random import Random
from typing import ClassVar

import psutil

from benchmarks.faults.commands import Command
from benchmarks.faults.dask_processes import TTL_SECONDS, DaskProcesses
from benchmarks.faults.kinds import Fault, Kind, send
from benchmarks.faults.outcome import FaultOutcome

_FREE_SECONDS = 60.0
"""How long after a run all cores and all memory of the cluster must be free again."""

_EXPIRY_SECONDS = 90.0
"""How long after a run files of a coordinator that was killed may stay: their site has to notice."""


class ClusterFault(Fault):
    """A kind of fault that strikes a run whose trials are on its own Dask cluster.

    Parameters
    ----------
    place : Path
        Folder of the case.
    """

    strategies: ClassVar[tuple[str, ...]] = ("random", "optdivbo")
    most_strikes = 3
    goes_on = True
    waits_for_trials = True

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self._local = place / "local"
        self._local.mkdir()
        self._prepare()
        self.cluster = DaskProcesses(self._local)

    def _prepare(self) -> None:
        """Do what must be done before the cluster starts."""

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("--scheduler", self.cluster.address)

    @property
    def companions(self) -> Collection[int]:
        return self.cluster.processes

    def repair(self) -> None:
        self.cluster.repair()

    def close(self) -> tuple[FaultOutcome, str] | None:
        try:
            self.repair()
            kept = self.cluster.what_is_kept(_FREE_SECONDS) or self.cluster.files_kept(_EXPIRY_SECONDS)
        finally:
            self.cluster.close()
        return (FaultOutcome.ORPHAN, f"left on the cluster: {kept}") if kept else None


class KillDaskWorker(ClusterFault):
    """SIGKILL to one Dask worker; its nanny starts it again."""

    def strike(self, command: Command, rng: Random) -> str:
        workers = self.cluster.workers
        return send(rng.choice(workers).pid, signal.SIGKILL) if workers else ""


class KillDaskWorkers(ClusterFault):
    """SIGKILL to all Dask workers and their nannies at once; new ones join."""

    def strike(self, command: Command, rng: Random) -> str:
        self.cluster.kill([*self.cluster.nannies, *self.cluster.workers])
        self.cluster.repair()
        return "SIGKILL, new ones joined"


class KillNanny(ClusterFault):
    """SIGKILL to one nanny, which ends its worker; another joins."""

    def strike(self, command: Command, rng: Random) -> str:
        self.cluster.kill([rng.choice(self.cluster.nannies)])
        self.cluster.repair()
        return "SIGKILL, another joined"


class PauseDaskWorker(ClusterFault):
    """SIGSTOP to one Dask worker until the scheduler has given it up, then SIGCONT: its outcome comes too late."""

    def strike(self, command: Command, rng: Random) -> str:
        workers = self.cluster.workers
        if not workers:
            return ""
        worker = rng.choice(workers)
        seconds = rng.uniform(0.5, 3.0) * TTL_SECONDS
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.suspend()
            time.sleep(seconds)
            worker.resume()  # unless its nanny has replaced it
        return f"SIGSTOP, SIGCONT after {seconds:.1f} s"


class RestartDaskWorkers(ClusterFault):
    """The nannies are told to start their workers again, which also forgets all tasks."""

    def strike(self, command: Command, rng: Random) -> str:
        with self.cluster.client() as client:
            client.restart(timeout=60)
        return "Client.restart"


class CancelTasks(ClusterFault):
    """All tasks of the run are cancelled by another client."""

    def strike(self, command: Command, rng: Random) -> str:
        from distributed import Future

        with self.cluster.client() as client:
            keys = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
            client.cancel([Future(key, client) for key in keys], force=True)
        return f"{len(keys)} tasks cancelled" if keys else ""


class KillScheduler(ClusterFault):
    """SIGKILL to the scheduler; the run ends, and is resumed on a new cluster."""

    goes_on = False

    def strike(self, command: Command, rng: Random) -> str:
        return send(self.cluster.scheduler.pid, signal.SIGKILL)


class KillCoordinatorOfCluster(ClusterFault):
    """SIGKILL to the coordinator; the cluster goes on."""

    goes_on = False
    exit_statuses = (0, -signal.SIGKILL)

    def strike(self, command: Command, rng: Random) -> str:
        return send(command.process.pid, signal.SIGKILL)


class InterruptOnCluster(ClusterFault):
    """SIGINT to the coordinator, as by Ctrl+C."""

    goes_on = False
    exit_statuses = (0, 130, -signal.SIGINT)  # the last while the interpreter starts or ends

    def strike(self, command: Command, rng: Random) -> str:
        return send(command.process.pid, signal.SIGINT)


class FillDisksOfWorkers(ClusterFault):
    """The disk of the workers is full when they are started again, so that they cannot keep what trials read."""

    goes_on = False
    _SIZE = 32 * 2**20
    _FREE = 60_000  # Dask's own files fit

    @staticmethod
    def missing() -> str | None:
        if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
            return "a small file system can be mounted on Linux by root only"
        return None

    def _prepare(self) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self._SIZE}", "tmpfs", self._local], check=True)

    def strike(self, command: Command, rng: Random) -> str:
        left = shutil.disk_usage(self._local).free - self._FREE
        with contextlib.suppress(OSError), (self._local / "ballast").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, left))
        for worker in self.cluster.workers:
            send(worker.pid, signal.SIGKILL)
        return f"{self._FREE} bytes left, SIGKILL to the workers"

    def repair(self) -> None:
        (self._local / "ballast").unlink(missing_ok=True)
        super().repair()

    def close(self) -> tuple[FaultOutcome, str] | None:
        try:
            return super().close()
        finally:
            subprocess.run(["umount", "--lazy", self._local], check=True)


class Mixed(ClusterFault):
    """One of the other kinds at a time, in any order, on one run."""

    most_strikes = 8
    _PARTS: tuple[type[ClusterFault], ...] = (
        KillDaskWorker,
        KillDaskWorkers,
        KillNanny,
        PauseDaskWorker,
        RestartDaskWorkers,
        CancelTasks,
        KillScheduler,
        KillCoordinatorOfCluster,
        InterruptOnCluster,
    )

    def strike(self, command: Command, rng: Random) -> str:
        part = rng.choice(self._PARTS)
        strike: Callable[[ClusterFault, Command, Random], str] = part.strike
        what = strike(self, command, rng)
        # What is expected of the command depends on the fault.
        self.goes_on, self.exit_statuses = part.goes_on, part.exit_statuses  # type: ignore[misc]
        return f"{part.__name__}: {what}" if what else ""


CLUSTER_FAULTS = {
    "Dask worker killed": Kind(KillDaskWorker, 1),
    "all Dask workers killed": Kind(KillDaskWorkers, 1),
    "nanny killed": Kind(KillNanny, 1),
    "Dask worker paused": Kind(PauseDaskWorker, 1),
    "Dask workers restarted": Kind(RestartDaskWorkers, 1),
    "tasks cancelled": Kind(CancelTasks, 1),
    "scheduler killed": Kind(KillScheduler, 1),
    "coordinator killed": Kind(KillCoordinatorOfCluster, 1),
    "interrupted": Kind(InterruptOnCluster, 1),
    "disks of the workers full": Kind(FillDisksOfWorkers, 1),
    "mixed": Kind(Mixed, 3),
}
"""Kinds by name."""
