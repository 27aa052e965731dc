"""Run trials in worker processes that are watched and can be killed."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from cashmere.base.cores import threads_per_worker
from cashmere.execution.exception_cause import cause_of_exception
from cashmere.execution.inside_worker import initialise_worker, run_in_worker, warm_up
from cashmere.execution.limits import MIB, Limits, ProcessWatch, kill_descendants, kill_tree
from cashmere.protocols import Objective
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.05
_START_SECONDS = 120.0


class WorkerProcessExecutor:
    """Run trials in reusable worker processes, under limits enforced from outside.

    Each of the `n_workers` slots owns one worker process and one watching thread. A worker that breaks its limits,
    or dies, is killed together with everything it has started, and replaced; the other slots are not affected.

    Parameters
    ----------
    n_workers : int
        Number of trials that run at the same time.
    limits : Limits
        Limits of each trial.
    n_threads : int or None
        OpenMP threads each worker may use, set before the libraries load; by default cores / workers, at least 1.
        BLAS gets one. OpenMP threads wait passively: spinning ones slow the other workers down.
    log_folder : path or None
        Where the workers' standard output and error are written; None discards them.

    Notes
    -----
    A worker ends soon after the coordinator, however that ended.
    """

    def __init__(
        self,
        n_workers: int = 1,
        *,
        limits: Limits | None = None,
        n_threads: int | None = None,
        log_folder: Path | None = None,
    ) -> None:
        self.n_workers = n_workers
        self.n_threads = n_threads or threads_per_worker(n_workers)
        self._queue: queue.SimpleQueue[tuple[Future[Outcome], Objective, Trial] | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._slots = [
            _Slot(
                self._queue,
                self._closed,
                limits or Limits(),
                self.n_threads,
                log_folder and log_folder / f"worker-{k}.log",
            )
            for k in range(n_workers)
        ]

    def submit(self, objective: Objective, trial: Trial) -> Future[Outcome]:
        """Queue the trial for the next free worker."""
        future: Future[Outcome] = Future()
        self._queue.put((future, objective, trial))
        return future

    def shutdown(self) -> None:
        """Kill running trials with their children, cancel queued ones, end the workers."""
        self._closed.set()
        with contextlib.suppress(queue.Empty):
            while (item := self._queue.get_nowait()) is not None:
                item[0].cancel()
        for _ in self._slots:
            self._queue.put(None)
        for slot in self._slots:
            slot.join(timeout=10.0)


class _Slot(threading.Thread):
    """One worker process and the thread that feeds and watches it."""

    def __init__(
        self,
        tasks: queue.SimpleQueue[tuple[Future[Outcome], Objective, Trial] | None],
        closed: threading.Event,
        limits: Limits,
        n_threads: int,
        log: Path | None,
    ) -> None:
        super().__init__(daemon=True, name="cashmere-slot")
        self._tasks, self._closed, self._limits, self._n_threads, self._log = tasks, closed, limits, n_threads, log
        self._pool: Any = None
        self.pid: int | None = None
        self.start()

    def run(self) -> None:
        try:
            while (item := self._tasks.get()) is not None:
                future, objective, trial = item
                if not future.set_running_or_notify_cancel():
                    continue
                try:
                    outcome = self._run(objective, trial)
                except Exception as error:  # a bug in the slot must not hang the study
                    logger.debug("slot failed on trial %d", trial.number, exc_info=True)
                    self._discard_worker()
                    cause = Cause(kind=CauseKind.WORKER_SLOT, text=f"{type(error).__name__}: {error}")
                    outcome = Outcome(status=TrialStatus.ERROR, error=cause)
                future.set_result(outcome)
        finally:
            self._discard_worker()

    def _run(self, objective: Objective, trial: Trial) -> Outcome:
        from loky.process_executor import TerminatedWorkerError

        if self._closed.is_set():
            return Outcome(status=TrialStatus.ABORTED, error=Cause.other("stopped before it started"))
        pid = self._ensure_worker()
        watch = ProcessWatch(pid)
        start = time.perf_counter()
        task = self._pool.submit(run_in_worker, objective, trial, self._limits.seconds)
        verdict: Outcome | None = None
        while verdict is None:
            try:
                outcome: Outcome = task.result(timeout=_POLL_SECONDS)
                break
            except FutureTimeoutError:
                verdict = self._verdict(watch, time.perf_counter() - start)
            except TerminatedWorkerError:
                verdict = _death(watch)
            except Exception as error:  # objective or outcome that cannot be pickled
                verdict = Outcome(status=TrialStatus.ERROR, error=cause_of_exception(error))
        else:
            self._discard_worker()
            return replace(verdict, duration_seconds=time.perf_counter() - start, memory_mib=watch.peak_mib or None)
        with contextlib.suppress(psutil.Error):
            memory = watch.read()
            kill_descendants(pid)
            if self._limits.memory_mib is not None and memory > self._limits.memory_mib / 2:
                self._discard_worker()  # processes left by this trial must not count against the next one
        return replace(outcome, memory_mib=watch.peak_mib)

    def _verdict(self, watch: ProcessWatch, seconds: float) -> Outcome | None:
        """Return the failure if a limit is broken, else None."""
        if self._closed.is_set():
            return Outcome(
                status=TrialStatus.ABORTED, error=Cause.other("stopped by the end of the budget or by the user")
            )
        if self._limits.seconds is not None and seconds > self._limits.seconds:
            cause = Cause(kind=CauseKind.TIME_LIMIT, limit=self._limits.seconds)
            return Outcome(status=TrialStatus.TIMEOUT, error=cause)
        try:
            memory = watch.read(self._limits.memory_mib)
            cpu_seconds = 0.0 if self._limits.cpu_seconds is None else watch.cpu_seconds()
        except psutil.Error:
            return None  # it has just died: the pool reports it immediately
        if self._limits.cpu_seconds is not None and cpu_seconds > self._limits.cpu_seconds:
            cause = Cause(kind=CauseKind.CPU_LIMIT, limit=self._limits.cpu_seconds, used=cpu_seconds)
            return Outcome(status=TrialStatus.TIMEOUT, error=cause, fit_seconds=cpu_seconds)
        if self._limits.memory_mib is not None and memory > self._limits.memory_mib:
            cause = Cause(kind=CauseKind.MEMORY_LIMIT, limit=self._limits.memory_mib, used=memory)
            return Outcome(status=TrialStatus.MEMORY, error=cause)
        return None

    def _ensure_worker(self) -> int:
        if self._pool is None:
            from multiprocessing import resource_tracker

            from loky import ProcessPoolExecutor

            # Otherwise Python starts its own with the first worker, which undoes the mask.
            resource_tracker.ensure_running()
            if hasattr(signal, "pthread_sigmask"):
                # Workers inherit it: Ctrl+C must not hit them before they have left the terminal's process group.
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            n = str(self._n_threads)
            self._pool = ProcessPoolExecutor(
                max_workers=1,
                initializer=initialise_worker,
                initargs=(os.getpid(), self._log and str(self._log)),
                env={
                    "OMP_NUM_THREADS": n,
                    # Sums inside BLAS depend on its number of threads, and through iterative solvers so do the
                    # losses. One thread keeps a run the same for any number of workers.
                    "OPENBLAS_NUM_THREADS": "1",
                    "MKL_NUM_THREADS": "1",
                    "OMP_WAIT_POLICY": "PASSIVE",
                    # Memory is watched here; an automatic restart by loky would hide the process.
                    "LOKY_MAX_MEMORY_LEAK_SIZE": "1e18",
                },
            )
            self.pid = self._pool.submit(warm_up).result(timeout=_START_SECONDS)
        assert self.pid is not None
        return self.pid

    def _discard_worker(self) -> None:
        pool, pid = self._pool, self.pid
        self._pool = self.pid = None
        if pid is not None:
            kill_tree(pid)
        if pool is not None:
            # A worker killed while sending a result leaves half a message, and loky's thread would wait for the rest
            # forever, because this process holds the other end open as well.
            with contextlib.suppress(AttributeError, OSError):
                pool._result_queue._writer.close()
            pool.shutdown(wait=True, kill_workers=True)


def _death(watch: ProcessWatch) -> Outcome:
    """Explain why a worker that was not killed here has ended."""
    total = psutil.virtual_memory().total / MIB
    if watch.peak_mib > 0.5 * total:
        cause = Cause(kind=CauseKind.KILLED_BY_SYSTEM, used=watch.peak_mib)
        return Outcome(status=TrialStatus.MEMORY, error=cause)
    return Outcome(status=TrialStatus.ERROR, error=Cause(kind=CauseKind.WORKER_DIED))
