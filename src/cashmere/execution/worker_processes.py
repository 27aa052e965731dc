"""Run trials in worker processes that are watched and can be killed."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import psutil

from cashmere.base.cores import threads_per_worker
from cashmere.base.memory import total_memory
from cashmere.exceptions import UsageError
from cashmere.execution.exception_cause import cause_of_exception
from cashmere.execution.fork_server import worker_environment
from cashmere.execution.limits import Limits, ProcessWatch, kill_descendants
from cashmere.execution.messages import FINAL, pack
from cashmere.execution.outcome_check import restored_checkpoint, restored_outcome
from cashmere.execution.worker import WorkerProcess
from cashmere.protocols import Objective
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.05
_START_SECONDS = 120.0

_END_SECONDS = 10.0
"""Longest wait of `shutdown`: killed workers free their memory slowly, and nobody needs to wait for that."""


class WorkerProcessExecutor:
    """Run trials in reusable worker processes, under limits enforced from outside.

    Each of the `n_workers` slots owns one worker process and one watching thread. Workers start at once, so that they
    are ready when the first trials come. A worker that exceeds its limits or dies is killed together with everything
    that it has started, and replaced; the other slots are not affected.

    Parameters
    ----------
    n_workers : int
        Number of trials that run at the same time.
    limits : Limits
        Limits of each trial.
    n_threads : int or None
        OpenMP threads of each worker, set before the libraries load; by default cores / workers, at least 1. BLAS gets
        one. OpenMP threads wait passively, as spinning ones slow the other workers down.
    log_folder : path or None
        Where the workers' standard output and error are written; None discards them.

    Notes
    -----
    A worker ends soon after the coordinator, for whatever reason that has ended.
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
        self._submitting = threading.Lock()
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
        """Queue the trial for the next free worker.

        Raises
        ------
        UsageError
            After `shutdown`.
        """
        future: Future[Outcome] = Future()
        with self._submitting:
            if self._closed.is_set():
                raise UsageError("submit() was called after shutdown(). Make a new executor.", instance=self)
            self._queue.put((future, objective, trial))
        return future

    def shutdown(self) -> None:
        """Kill running trials with their children, cancel queued ones, end the workers."""
        with self._submitting:
            self._closed.set()
        with contextlib.suppress(queue.Empty):
            while (item := self._queue.get_nowait()) is not None:
                item[0].cancel()
                item[0].set_running_or_notify_cancel()  # else `concurrent.futures.wait` would wait for it
        for _ in self._slots:
            self._queue.put(None)
        end = time.monotonic() + _END_SECONDS
        for slot in self._slots:
            slot.join(timeout=max(0.0, end - time.monotonic()))


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
        self._worker: WorkerProcess | None = None
        self._is_spoilt = False
        self.start()

    def run(self) -> None:
        try:
            self._start_ahead()
            while (item := self._tasks.get()) is not None:
                future, objective, trial = item
                if not future.set_running_or_notify_cancel():
                    continue
                try:
                    outcome = self._run(objective, trial)
                except Exception as error:  # a bug in the slot must not hang the study
                    logger.debug("slot failed on trial %d", trial.number, exc_info=True)
                    self._is_spoilt = True
                    cause = Cause(kind=CauseKind.WORKER_SLOT, text=f"{type(error).__name__}: {error}")
                    outcome = Outcome(status=TrialStatus.ERROR, error=cause)
                future.set_result(outcome)  # nobody waits for the end of a worker whose memory is freed slowly
                if self._is_spoilt:
                    self._discard_worker()
        finally:
            self._discard_worker()

    def _start_ahead(self) -> None:
        """Start the worker before the first trial; if that fails, the trial tries again and reports why."""
        try:
            self._ready_worker()
        except Exception:
            logger.debug("worker did not start", exc_info=True)
            self._discard_worker()

    def _run(self, objective: Objective, trial: Trial) -> Outcome:
        if self._closed.is_set():
            return Outcome(status=TrialStatus.ABORTED, error=Cause.other("stopped before it started"))
        try:
            task = pack((objective, trial, self._limits.seconds_for(trial)))
        except Exception as error:  # an objective that cannot be pickled
            return Outcome(status=TrialStatus.ERROR, error=cause_of_exception(error))
        try:
            if (worker := self._ready_worker()) is None:
                return Outcome(status=TrialStatus.ABORTED, error=Cause(kind=CauseKind.SEARCH_ENDED))
            watch = ProcessWatch(worker.pid)
        except (OSError, psutil.Error) as error:
            self._is_spoilt = True
            cause = Cause(kind=CauseKind.WORKER_NOT_READY, text=str(error))
            return Outcome(status=TrialStatus.ERROR, error=cause)
        start = time.perf_counter()
        worker.send(task)
        verdict: Outcome | None = None
        checkpoint: bytes | None = None
        while verdict is None:
            try:
                answer = worker.receive(_POLL_SECONDS)
            except TimeoutError:
                verdict = self._verdict(trial, watch, time.perf_counter() - start)
                continue
            except OverflowError as error:
                verdict, checkpoint = _unreadable(error), None
                continue
            if answer is None:
                verdict = _death(watch)
            elif answer[:1] == FINAL:
                break
            else:
                checkpoint = answer
                verdict = self._verdict(trial, watch, time.perf_counter() - start)
        else:
            self._is_spoilt = True
            outcome = verdict if checkpoint is None else _cut_short(checkpoint, verdict)
            return replace(outcome, duration_seconds=time.perf_counter() - start, memory_mib=watch.peak_mib or None)
        outcome = restored_outcome(answer[1:])
        if checkpoint is not None and outcome.status in (TrialStatus.MEMORY, TrialStatus.TIMEOUT):
            outcome = replace(_cut_short(checkpoint, outcome), duration_seconds=outcome.duration_seconds)
        with contextlib.suppress(psutil.Error):
            memory = watch.read()
            kill_descendants(worker.pid)
            if self._limits.memory_mib is not None and memory > self._limits.memory_mib / 2:
                self._is_spoilt = True  # what is left of this trial must not count against the next one
        return replace(outcome, memory_mib=watch.peak_mib)

    def _verdict(self, trial: Trial, watch: ProcessWatch, seconds: float) -> Outcome | None:
        """Return the failure if a limit is broken, else None."""
        if self._closed.is_set():
            return Outcome(status=TrialStatus.ABORTED, error=Cause(kind=CauseKind.SEARCH_ENDED))
        limit = self._limits.seconds_for(trial)
        if limit is not None and seconds > limit:
            cause = Cause(kind=CauseKind.TIME_LIMIT, limit=limit)
            return Outcome(status=TrialStatus.TIMEOUT, error=cause)
        try:
            memory = watch.read(self._limits.memory_mib)
            cpu_seconds = 0.0 if self._limits.cpu_seconds is None else watch.cpu_seconds()
        except psutil.Error:
            return None  # it has just died, which `receive` will report
        if self._limits.cpu_seconds is not None and cpu_seconds > self._limits.cpu_seconds:
            cause = Cause(kind=CauseKind.CPU_LIMIT, limit=self._limits.cpu_seconds, used=cpu_seconds)
            return Outcome(status=TrialStatus.TIMEOUT, error=cause, fit_seconds=cpu_seconds)
        if self._limits.memory_mib is not None and memory > self._limits.memory_mib:
            cause = Cause(kind=CauseKind.MEMORY_LIMIT, limit=self._limits.memory_mib, used=memory)
            return Outcome(status=TrialStatus.MEMORY, error=cause)
        return None

    def _ready_worker(self) -> WorkerProcess | None:
        """Return the worker of the slot, starting one if there is none; None if the executor is shut down meanwhile.

        Raises
        ------
        OSError
            If it cannot be started, ends while it starts (ChildProcessError), or is not ready in time (TimeoutError).
        """
        if self._worker is None:
            # No answer can be longer than the memory that its worker may use.
            longest_mib = self._limits.memory_mib or total_memory()
            self._worker = WorkerProcess(
                environment=worker_environment(self._n_threads), log=self._log, longest_mib=longest_mib
            )
            end = time.monotonic() + _START_SECONDS
            while not self._worker.is_ready(_POLL_SECONDS):
                if self._closed.is_set():
                    return None
                if time.monotonic() > end:
                    raise TimeoutError(f"the worker was not ready within {_START_SECONDS:.0f} s")
        return self._worker

    def _discard_worker(self) -> None:
        self._is_spoilt = False
        if self._worker is not None:
            self._worker.kill()
            self._worker = None


def _cut_short(checkpoint: bytes, verdict: Outcome) -> Outcome:
    """Return what a trial had achieved when it was stopped, and why it was stopped; a failure if it is unusable."""
    outcome = restored_checkpoint(checkpoint[1:])
    if outcome.status is not TrialStatus.SUCCESS:
        return outcome
    return replace(outcome, cut_short=verdict.error or Cause.other(verdict.status.value))


def _unreadable(error: OverflowError) -> Outcome:
    """Return the failure of a trial after which nothing more can be received from its worker."""
    cause = Cause(kind=CauseKind.UNUSABLE, text=f"no usable outcome: the worker announced {error}")
    return Outcome(status=TrialStatus.ERROR, error=cause)


def _death(watch: ProcessWatch) -> Outcome:
    """Explain why a worker that was not killed here has ended."""
    if watch.peak_mib > 0.5 * total_memory():
        cause = Cause(kind=CauseKind.KILLED_BY_SYSTEM, used=watch.peak_mib)
        return Outcome(status=TrialStatus.MEMORY, error=cause)
    return Outcome(status=TrialStatus.ERROR, error=Cause(kind=CauseKind.WORKER_DIED))
