"""What a run knows of the cluster that its trials run on, whatever its engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from cashmere.execution.limits import Limits
from cashmere.protocols import Executor


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster(ABC):
    """A connected cluster with workers that can run trials.

    Attributes
    ----------
    workers : tuple of (int, float)
        Threads and memory (MiB) of each worker, when it was asked.
    """

    workers: tuple[tuple[int, float], ...]

    @property
    def memory_mib(self) -> float:
        """Least memory for each thread of a worker."""
        return min(memory / n_threads for n_threads, memory in self.workers)

    def n_trials(self, memory_mib: float) -> int:
        """Return how many trials of this memory the workers can run at the same time, counting at least 1 each."""
        return sum(min(n_threads, max(1, int(memory // memory_mib))) for n_threads, memory in self.workers)

    @abstractmethod
    def executor(self, n_workers: int, *, limits: Limits, log_folder: Path | None = None) -> Executor:
        """Return an executor whose trials run on the cluster; the caller shuts it down.

        Parameters
        ----------
        n_workers : int
            Number of trials that run at the same time.
        limits : Limits
            Limits of each trial.
        log_folder : Path, optional
            Where lost workers are written down.
        """
