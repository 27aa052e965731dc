"""What is done to runs: one class for each kind of fault."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import ClassVar, NamedTuple

import psutil

from benchmarks.faults.commands import Command, Ending
from benchmarks.faults.outcome import FaultOutcome
from cashmere.execution.process_names import WORKER

STRATEGIES = ("random", "bo", "divbo")


class Fault:
    """A kind of fault: what it needs around a run, and what it does to it at one instant.

    Parameters
    ----------
    place : Path
        Folder of the case; may be mounted on.

    Attributes
    ----------
    run : Path
        The run directory, which faults may move.
    """

    strategies: ClassVar[tuple[str, ...]] = STRATEGIES
    """Strategies of the runs it is tried on."""
    most_strikes: ClassVar[int] = 10
    """How often it may strike in one case."""
    goes_on: ClassVar[bool] = False
    """Whether the command that is hit is expected to go on to its normal end."""
    exit_statuses: ClassVar[tuple[int, ...]] = (0,)
    """Exit statuses that are as promised, besides typed errors."""
    follows_paths: ClassVar[bool] = False
    """Whether its runs follow paths for a time, with checkpoints; no two of them are the same."""
    waits_for_trials: ClassVar[bool] = False
    """Whether instants at random are in the search: it begins late where workers of a cluster have to come first."""
    costs_trials: ClassVar[bool] = False
    """Whether each fault may make one trial fail."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.run = place / "run"

    @staticmethod
    def missing() -> str | None:
        """Return why this kind of fault cannot be made here; None if it can."""
        return None

    @property
    def prefix(self) -> tuple[str, ...]:
        """What to put in front of the commands."""
        return ()

    @property
    def environment(self) -> dict[str, str]:
        """Additional variables for the commands."""
        return {}

    @property
    def arguments(self) -> tuple[str, ...]:
        """What to add to the commands."""
        return ()

    @property
    def companions(self) -> Collection[int]:
        """IDs of processes beside the run, which are not orphans."""
        return set()

    def strike(self, command: Command, rng: Random) -> str:
        """Hit the command or its folder; return what was done in a few words, "" if there was nothing to hit."""
        raise NotImplementedError

    def repair(self) -> None:
        """Undo what would obstruct the next command."""

    def close(self) -> tuple[FaultOutcome, str] | None:
        """Remove what was set up around the run; return a failure noticed on the way, if there was one."""
        self.repair()
        return None

    def judge(self, ending: Ending) -> FaultOutcome:
        """Judge how a command that was hit has ended."""
        if ending.status is None:
            return FaultOutcome.HANG
        if ending.has_traceback:
            return FaultOutcome.TRACEBACK
        if ending.typed_error:
            return FaultOutcome.TYPED
        return FaultOutcome.OK if ending.status in self.exit_statuses else FaultOutcome.TRACEBACK


class KillCoordinator(Fault):
    """SIGKILL to the process that coordinates a run."""

    exit_statuses = (0, -signal.SIGKILL)

    def strike(self, command: Command, rng: Random) -> str:
        return send(command.process.pid, signal.SIGKILL)


class KillWorker(Fault):
    """SIGKILL to one worker; its trial fails, the run goes on."""

    strategies: ClassVar[tuple[str, ...]] = ("random",)  # its decisions do not depend on the failure
    goes_on = True
    costs_trials = True

    def strike(self, command: Command, rng: Random) -> str:
        found = workers(command.process.pid)
        return send(rng.choice(found), signal.SIGKILL) if found else ""


class KillAll(Fault):
    """SIGKILL to the coordinator and its workers in any order."""

    exit_statuses = (0, -signal.SIGKILL)

    def strike(self, command: Command, rng: Random) -> str:
        found = [*workers(command.process.pid), command.process.pid]
        rng.shuffle(found)
        return ", ".join([send(pid, signal.SIGKILL) for pid in found])


class KillCoordinatorOnPaths(KillCoordinator):
    """SIGKILL to the coordinator of a run whose trials hand over checkpoints."""

    follows_paths = True
    most_strikes = 5


class KillWorkerOnPaths(KillWorker):
    """SIGKILL to one worker that hands over checkpoints: its last one counts."""

    strategies = STRATEGIES
    follows_paths = True
    most_strikes = 5


class KillAllOnPaths(KillAll):
    """SIGKILL to the coordinator and its workers, which hand over checkpoints."""

    follows_paths = True
    most_strikes = 5


class Terminate(Fault):
    """SIGTERM to the coordinator."""

    exit_statuses = (0, 130, -signal.SIGTERM)  # the last while the interpreter starts or ends

    def strike(self, command: Command, rng: Random) -> str:
        return send(command.process.pid, signal.SIGTERM)


class Interrupt(Fault):
    """SIGINT to the coordinator, as by Ctrl+C."""

    exit_statuses = (0, 130, -signal.SIGINT)  # the last while the interpreter starts or ends

    def strike(self, command: Command, rng: Random) -> str:
        return send(command.process.pid, signal.SIGINT)

    def judge(self, ending: Ending) -> FaultOutcome:
        """Excuse a traceback from before Python runs our first line."""
        ours = f"{os.sep}cashmere{os.sep}"
        if ending.has_traceback and ending.output.endswith("KeyboardInterrupt\n") and ours not in ending.output:
            return FaultOutcome.OK
        return super().judge(ending)


class KillBesideReaders(KillCoordinator):
    """SIGKILL to the coordinator while another process shows report and leaderboard all the time."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self._stop = place / "stop-reading"
        reading = [sys.executable, "-m", "benchmarks.faults.readers", str(self.run), str(self._stop)]
        self._readers = Command(reading, output=self.place / "readers.txt")

    @property
    def companions(self) -> Collection[int]:
        return {self._readers.process.pid}

    def close(self) -> tuple[FaultOutcome, str] | None:
        self._stop.touch()
        ending = self._readers.end()
        if ending.status == 0:
            return None
        outcome = FaultOutcome.HANG if ending.status is None else FaultOutcome.TRACEBACK
        return outcome, f"beside the run: {ending}\n{ending.output[-3000:]}"


class FillDisk(Fault):
    """The file system of the run is full, or nearly so; later there is space again."""

    most_strikes = 5
    _SIZE = 32 * 2**20
    _FREE = (0, 4_096, 20_000, 60_000, 150_000, 400_000)

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self._disk = place / "disk"
        self._disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self._SIZE}", "tmpfs", self._disk], check=True)
        self.run = self._disk / "run"

    @staticmethod
    def missing() -> str | None:
        if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
            return "a small file system can be mounted on Linux by root only"
        return None

    def strike(self, command: Command, rng: Random) -> str:
        free = rng.choice(self._FREE)
        left = shutil.disk_usage(self._disk).free - free
        with contextlib.suppress(OSError), (self._disk / "ballast").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, left))
        return f"{free} bytes left"

    def repair(self) -> None:
        (self._disk / "ballast").unlink(missing_ok=True)

    def close(self) -> tuple[FaultOutcome, str] | None:
        subprocess.run(["umount", "--lazy", self._disk], check=True)
        return None


class LosePermission(Fault):
    """The run directory and all in it can no longer be written; later they can again."""

    most_strikes = 5

    @staticmethod
    def missing() -> str | None:
        if os.name != "posix":
            return "the permissions are those of POSIX"
        if os.geteuid() == 0 and shutil.which("setpriv") is None:
            return "permissions do not bind root, and setpriv is missing"
        return None

    @property
    def prefix(self) -> tuple[str, ...]:
        if os.geteuid() != 0:
            return ()
        return ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")  # what lets root ignore permissions

    def strike(self, command: Command, rng: Random) -> str:
        self._allow(False)
        return "read-only"

    def repair(self) -> None:
        self._allow(True)

    def _allow(self, allowed: bool) -> None:
        """Allow or forbid writing; outermost first, so that no file is made meanwhile."""
        paths = [self.run if self.run.exists() else self.place]
        for _ in range(2):
            for path in paths:
                with contextlib.suppress(FileNotFoundError):
                    path.chmod((0o555 if path.is_dir() else 0o444) | (0o200 if allowed else 0))
            paths = list(self.run.rglob("*"))


class StepClock(Fault):
    """The system clock, as Python's `time.time` shows it to all processes of the run, jumps back."""

    goes_on = True
    _PATCH = Path(__file__).parent / "stepping_clock"

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self._offset = place / "clock-offset"
        self._seconds = 0.0

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(self._PATCH), os.environ.get("PYTHONPATH", "")])
        return {"PYTHONPATH": path, "CASHMERE_CLOCK_OFFSET": str(self._offset)}

    def strike(self, command: Command, rng: Random) -> str:
        self._seconds -= rng.choice((2, 60, 3600, 86_400))
        self._offset.write_text(f"{self._seconds}")
        return f"{self._seconds:g} s"


class MoveAtWork(Fault):
    """The run directory is renamed while a command works in it; the next command finds it at its new place."""

    most_strikes = 5

    def strike(self, command: Command, rng: Random) -> str:
        return self._move() if self.run.exists() else ""

    def _move(self) -> str:
        moved = self.run.with_name(self.run.name + "-moved")
        self.run.rename(moved)
        self.run = moved
        return f"moved to {moved.name}"


class MoveBetween(MoveAtWork):
    """SIGKILL to the coordinator; then the run directory is renamed before the run is continued."""

    most_strikes = 8
    exit_statuses = (0, -signal.SIGKILL)

    def strike(self, command: Command, rng: Random) -> str:
        told = send(command.process.pid, signal.SIGKILL)
        command.process.wait()
        return f"{told}, {self._move()}" if self.run.exists() else told


class Kind(NamedTuple):
    """A kind of fault, and its number among 1080 faults."""

    make: type[Fault]
    share: int


FAULTS = {
    "coordinator killed": Kind(KillCoordinator, 330),
    "worker killed": Kind(KillWorker, 150),
    "coordinator and workers killed": Kind(KillAll, 120),
    "terminated": Kind(Terminate, 70),
    "interrupted": Kind(Interrupt, 90),
    "killed beside report and leaderboard": Kind(KillBesideReaders, 80),
    "disk full": Kind(FillDisk, 50),
    "permission lost": Kind(LosePermission, 40),
    "clock stepping back": Kind(StepClock, 20),
    "folder moved at work": Kind(MoveAtWork, 30),
    "folder moved between calls": Kind(MoveBetween, 20),
    "coordinator killed on paths": Kind(KillCoordinatorOnPaths, 30),
    "worker killed on paths": Kind(KillWorkerOnPaths, 25),
    "coordinator and workers killed on paths": Kind(KillAllOnPaths, 25),
}
"""Kinds by name."""


def workers(coordinator: int) -> list[int]:
    """Return the IDs of the worker processes of a coordinator."""
    found = []
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(coordinator).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process.name() == WORKER:
                    found.append(process.pid)
    return found


def send(pid: int, number: signal.Signals) -> str:
    """Send a signal, if the process is still there; return its name."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
    return number.name
