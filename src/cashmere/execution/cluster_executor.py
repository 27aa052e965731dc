"""What executors on clusters have in common: following trials, counting their lost workers, and clearing up."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

from cashmere.exceptions import ClusterError, ClusterVersionError, UsageError
from cashmere.execution.exception_cause import cause_of_exception
from cashmere.execution.limits import Limits
from cashmere.execution.messages import pack
from cashmere.execution.outcome_check import restored_outcome
from cashmere.execution.sites import Answer
from cashmere.protocols import Objective, PortableObjective
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.25

MOST_LOST = 3
"""How many workers a trial may lose: perhaps it is the trial that kills them."""

_END_SECONDS = 5.0
"""Longest wait of `shutdown` for running trials to stop and return what they have achieved."""


class ClusterExecutor(ABC):
    """Run trials in watched worker processes on the workers of a cluster.

    The objective and the files that it reads are a *site* on each worker, made when it gets its first trial. A trial
    whose worker is lost begins again on another; after `MOST_LOST` lost workers it has failed.

    Parameters
    ----------
    address : str
        Where the cluster is, for messages.
    n_workers : int
        Number of trials that run at the same time.
    limits : Limits
        Limits of each trial.
    log_folder : path or None
        Where lost workers are written down.

    Notes
    -----
    One thread for each of the `n_workers` follows a trial, so that the cluster never has more of them than can run.
    """

    n_threads = 1

    def __init__(self, address: str, n_workers: int, *, limits: Limits | None, log_folder: Path | None) -> None:
        self.n_workers = n_workers
        self._address, self._limits, self._log_folder = address, limits or Limits(), log_folder
        self._name = f"cashmere-{uuid.uuid4().hex}"
        self._threads = ThreadPoolExecutor(n_workers, thread_name_prefix="cashmere-trial")
        self._futures: set[Future[Outcome]] = set()
        self._closed, self._abandoned = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._sites: list[tuple[Objective, str]] = []
        self._deliveries: dict[tuple[str, str], float] = {}
        self._delivering: dict[tuple[str, str], threading.Lock] = {}
        # Files pass through the memory of the coordinator, so it sends those of one site at a time.
        self._bundling = threading.Lock()

    def submit(self, objective: Objective, trial: Trial) -> Future[Outcome]:
        """Queue the trial for the next free worker of the cluster.

        Raises
        ------
        UsageError
            After `shutdown`.
        """
        if self._closed.is_set():
            raise UsageError("submit() was called after shutdown(). Make a new executor.", instance=self)
        future = self._threads.submit(self._run, objective, trial)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    def shutdown(self) -> None:
        """Stop running trials, cancel queued ones, and clear up on all workers; the cluster itself goes on."""
        if self._closed.is_set():
            return
        self._closed.set()
        queued = list(self._futures)
        self._threads.shutdown(wait=False, cancel_futures=True)
        for future in queued:
            if future.cancelled():
                future.set_running_or_notify_cancel()  # else `concurrent.futures.wait` would wait for it
        if self._is_connected():
            # In a thread, because a worker that hangs would not answer.
            closing = threading.Thread(target=self._close_sites, args=([name for _, name in self._sites],), daemon=True)
            closing.start()
            end = time.monotonic() + _END_SECONDS
            wait(list(self._futures), timeout=_END_SECONDS)
            closing.join(max(0.0, end - time.monotonic()))
            self._let_go()
        self._abandoned.set()
        wait(list(self._futures), timeout=_END_SECONDS)

    # ------------------------------------------------------------ what engines do

    @abstractmethod
    def _is_connected(self) -> bool:
        """Return whether the cluster can be reached."""

    @abstractmethod
    def _close_sites(self, names: list[str]) -> None:
        """Close the sites with these names on all workers."""

    @abstractmethod
    def _let_go(self) -> None:
        """Release what the cluster holds for this executor."""

    @abstractmethod
    def _attempt(self, number: int, site: str, packed: bytes, lost: list[str]) -> tuple[Answer, bytes | str] | None:
        """Submit a trial to the cluster once; return the answer, or None if it must be submitted again.

        Parameters
        ----------
        number : int
            Number of the trial.
        site, packed : str, bytes
            Name of the site that it needs; the trial. See `answer_trial`.
        lost : list of str
            Receives the names of the workers that are lost meanwhile, by `_note_lost`.

        Raises
        ------
        ClusterError
            If the cluster no longer runs trials.
        """

    @abstractmethod
    def _send(self, site: str, objective: Objective, paths: Mapping[str, Path], worker: str) -> bool:
        """Make a site on a worker; return False if the worker was lost meanwhile.

        Parameters
        ----------
        site, objective : str, Objective
            Name of the site, and what it evaluates.
        paths : mapping
            The files that it reads, by their paths below its folder.
        worker : str
            Name of the worker.

        Raises
        ------
        ClusterError
            If the worker cannot make it (`_unprepared`), or the cluster is lost.
        """

    # ------------------------------------------------------------ one trial

    def _run(self, objective: Objective, trial: Trial) -> Outcome:
        """Follow a trial until it has an outcome."""
        try:
            site, packed = self._site_of(objective), pack(trial)
        except Exception as error:  # such as a configuration that cannot be pickled
            return Outcome(status=TrialStatus.ERROR, error=cause_of_exception(error))
        lost: list[str] = []
        while not self._closed.is_set():
            if len(lost) >= MOST_LOST:
                cause = Cause(kind=CauseKind.WORKER_LOST, text=", ".join(lost))
                return Outcome(status=TrialStatus.ERROR, error=cause)
            begin = time.monotonic()
            match self._attempt(trial.number, site, packed, lost):
                case Answer.OUTCOME, bytes(outcome):
                    return restored_outcome(outcome)
                case Answer.ABSENT, str(worker):
                    try:
                        self._deliver(site, objective, worker, since=begin)
                    except ClusterError:
                        raise
                    except Exception as error:  # such as an objective that cannot be pickled, or unreadable files
                        return Outcome(status=TrialStatus.ERROR, error=cause_of_exception(error))
                case Answer.REFUSED, str(sentence):
                    text = (
                        f"has a worker that cannot run trials: {sentence}. Install the same packages on all machines."
                    )
                    raise ClusterVersionError(self._address, text)
        return Outcome(status=TrialStatus.ABORTED, error=Cause(kind=CauseKind.SEARCH_ENDED))

    def _note_lost(self, number: int, worker: str, lost: list[str]) -> None:
        lost.append(worker)
        line = f"trial {number} lost the worker {worker}, number {len(lost)} of at most {MOST_LOST}"
        logger.warning(line)
        if self._log_folder is not None:
            with suppress(OSError), (self._log_folder / "lost_workers.log").open("a") as file:
                file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {line}\n")

    # ------------------------------------------------------------ objectives

    def _site_of(self, objective: Objective) -> str:
        """Return the name of the sites for an objective, a new one if it is new."""
        with self._lock:
            for known, name in self._sites:
                if known is objective or known == objective:
                    return name
            name = f"{self._name}-{len(self._sites)}"
            self._sites.append((objective, name))
            return name

    def _deliver(self, site: str, objective: Objective, worker: str, *, since: float) -> None:
        """Send an objective and its files to a worker, unless another trial has done so since `since`."""
        with self._lock:
            delivering = self._delivering.setdefault((site, worker), threading.Lock())
        with delivering:
            if self._closed.is_set() or self._deliveries.get((site, worker), 0.0) > since:
                return
            paths = objective.files() if isinstance(objective, PortableObjective) else {}
            if self._send(site, objective, paths, worker):
                self._deliveries[site, worker] = time.monotonic()

    def _unprepared(self, worker: str, problem: object) -> ClusterError:
        """Return the error for a worker that could not make a site."""
        text = f"has a worker, {worker}, that cannot prepare for trials ({problem}). Correct that, then resume."
        return ClusterError(self._address, text)
