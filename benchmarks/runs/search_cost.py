"""The cost of a search: wall and CPU seconds, and memory."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field

import numpy as np
import psutil

from cashmere.execution.limits import MIB
from cashmere.execution.process_names import FORK_SERVER
from cashmere.protocols import MetricCheck, Strategy
from cashmere.records.loss import Loss
from cashmere.records.trial import History, Observation, Suggestion
from cashmere.study import Study


class RunClock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), _cpu_seconds()

    @property
    def seconds(self) -> float:
        """Wall seconds."""
        return time.perf_counter() - self._wall

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of this process, and of the processes it started that have ended since."""
        return _cpu_seconds() - self._cpu


@dataclass(slots=True)
class TimedStrategy:
    """A strategy, and the CPU seconds in which it has decided.

    Attributes
    ----------
    strategy : Strategy
        The strategy that decides.
    cpu_seconds : float
        CPU seconds of all its decisions so far.
    """

    strategy: Strategy
    cpu_seconds: float = 0.0

    def suggest(self, history: History, rng: np.random.Generator) -> Suggestion | None:
        """Return the strategy's decision."""
        start = time.process_time()
        try:
            return self.strategy.suggest(history, rng)
        finally:
            self.cpu_seconds += time.process_time() - start

    def check_metric(self, metric: Loss) -> None:
        """Raise an error if the metric does not suit the strategy."""
        if isinstance(self.strategy, MetricCheck):
            self.strategy.check_metric(metric)


@dataclass(slots=True)
class PeakMemory:
    """Largest resident memory, MiB: of the process that is ``"deciding"``, after each trial, and of ``"training"``."""

    mib: dict[str, float] = field(default_factory=lambda: {"deciding": 0.0, "training": 0.0})

    def __call__(self, _: Study, observation: Observation) -> None:
        """Measure the memory after a trial; a callback of `Study.optimize`."""
        self.mib["deciding"] = max(self.mib["deciding"], psutil.Process().memory_info().rss / MIB)
        self.mib["training"] = max(self.mib["training"], observation.memory_mib or 0.0)


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process, of its children that have ended, and of fork servers with theirs."""
    seconds = sum(os.times()[:4])
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if child.name() == FORK_SERVER:
                seconds += sum(child.cpu_times()[:4])
    return seconds
