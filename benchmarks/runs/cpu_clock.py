"""Runs whose clock counts CPU seconds, so that other programs on the machine hardly affect them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from cashmere.evaluation.objective import Unsupervised
from cashmere.execution.in_process import run_trial
from cashmere.protocols import Objective
from cashmere.records.budget import Deadline
from cashmere.records.trial import Outcome, Trial


@contextmanager
def cpu_clock() -> Iterator[None]:
    """Let all clocks of this process count its CPU seconds within the block.

    Every budget, limit and duration inside is then one of CPU time. It makes sense where nobody else is waited for:
    with trials in this process, one after the other.
    """
    clocks = time.monotonic, time.perf_counter
    time.monotonic = time.perf_counter = time.process_time
    try:
        yield
    finally:
        time.monotonic, time.perf_counter = clocks


class InThisProcess:
    """An executor that runs trials immediately, in this process; paths end in time, as they would in workers.

    Parameters
    ----------
    deadline : Deadline
        The clock of the run.
    trial_seconds : float
        Limit of a trial. One without a path cannot be stopped.
    """

    n_workers = 1
    n_threads = 1

    def __init__(self, deadline: Deadline, trial_seconds: float) -> None:
        self._deadline, self._trial_seconds = deadline, trial_seconds

    def submit(self, objective: Objective, trial: Trial) -> Future[Outcome]:
        """Run the trial and return a finished future."""
        future: Future[Outcome] = Future()
        supervisor = _Limited(Deadline(min(self._trial_seconds, self._deadline.remaining)))
        future.set_result(run_trial(objective, trial, supervisor))
        return future

    def shutdown(self) -> None:
        """Do nothing: no trial outlives its call."""


class CpuSecondsOfTrial(Unsupervised):
    """Ends a path after some CPU seconds: wall time would also count other work. Nothing else stops the trial.

    Parameters
    ----------
    seconds : float
        From now on.
    """

    def __init__(self, seconds: float) -> None:
        self._ends = time.process_time() + seconds

    def seconds_left(self) -> float:
        """Return the CPU seconds left."""
        return self._ends - time.process_time()


class _Limited(Unsupervised):
    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def seconds_left(self) -> float:
        return self._deadline.remaining
