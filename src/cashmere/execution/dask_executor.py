"""Run trials on the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

from cashmere.exceptions import ClusterError, ClusterVersionError
from cashmere.execution.exception_cause import cause_of_exception
from cashmere.execution.file_bundle import FileBundle
from cashmere.execution.inside_dask_worker import Answer, close_sites, deliver, own_version, run_trial
from cashmere.execution.limits import Limits
from cashmere.execution.messages import pack
from cashmere.execution.outcome_check import restored_outcome
from cashmere.protocols import Objective, PortableObjective
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus

if TYPE_CHECKING:
    import distributed

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.25

_MOST_LOST = 3
"""Workers that a trial may lose: it may be the trial that ends them."""

_BEGIN_SECONDS = 10.0
"""After so long, a trial that no worker has begun is given to Dask again: Dask may have queued it behind a long one, or
on a worker that hangs, while others are idle."""

_END_SECONDS = 5.0
"""How long `shutdown` waits at most for running trials to be stopped; what they had achieved comes back meanwhile."""


class DaskExecutor:
    """Run trials in watched worker processes on the workers of a Dask cluster.

    Each trial is a Dask task that passes it to a worker process beside the Dask worker, under the same limits as on one
    machine. The objective and the files that it reads reach each Dask worker once, when it gets its first trial.
    A trial whose Dask worker is lost begins again on another; after `_MOST_LOST` lost workers it has failed.

    Parameters
    ----------
    client : distributed.Client
        Connected; it is not closed here.
    n_workers : int
        Number of trials that run at the same time.
    limits : Limits
        Limits of each trial.
    log_folder : path or None
        Where lost workers are written down.

    Notes
    -----
    One thread for each of the `n_workers` follows a trial, so that Dask never has more of them than can run.
    """

    n_threads = 1

    def __init__(
        self,
        client: distributed.Client,
        n_workers: int = 1,
        *,
        limits: Limits | None = None,
        log_folder: Path | None = None,
    ) -> None:
        self.n_workers = n_workers
        self._client, self._limits, self._log_folder = client, limits or Limits(), log_folder
        self._address = str(client.scheduler.address)
        self._name = f"cashmere-{uuid.uuid4().hex}"
        self._threads = ThreadPoolExecutor(n_workers, thread_name_prefix="cashmere-trial")
        self._futures: set[Future[Outcome]] = set()
        self._closed, self._abandoned = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._sites: list[tuple[Objective, str]] = []
        self._deliveries: dict[tuple[str, str], float] = {}
        self._delivering = threading.Lock()
        self._begun: dict[str, list[str]] = {}
        self._tasks: dict[str, distributed.Future[tuple[Answer, bytes | str]]] = {}
        client.subscribe_topic(self._name, self._note_beginning)

    def submit(self, objective: Objective, trial: Trial) -> Future[Outcome]:
        """Queue the trial for the next free thread of the cluster."""
        future = self._threads.submit(self._run, objective, trial)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    def shutdown(self) -> None:
        """Stop running trials, cancel queued ones, and clear up on all workers; the cluster itself goes on."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._client.status == "running":
            # A thread, because a worker that hangs would not answer.
            closing = threading.Thread(target=self._close_sites, daemon=True)
            closing.start()
            end = time.monotonic() + _END_SECONDS
            wait(list(self._futures), timeout=_END_SECONDS)
            closing.join(max(0.0, end - time.monotonic()))
            self._client.cancel(list(self._tasks.values()))
            self._client.unsubscribe_topic(self._name)
        self._abandoned.set()
        wait(list(self._futures), timeout=_END_SECONDS)

    def _close_sites(self) -> None:
        with self._lock:
            names = [name for _, name in self._sites]
        self._client.run(close_sites, names, on_error="ignore")

    # ------------------------------------------------------------ one trial

    def _run(self, objective: Objective, trial: Trial) -> Outcome:
        """Follow a trial until it has an outcome."""
        try:
            site, packed = self._site_of(objective), pack(trial)
        except Exception as error:  # a configuration that cannot be pickled
            return Outcome(status=TrialStatus.ERROR, error=cause_of_exception(error))
        lost: list[str] = []
        while not self._closed.is_set():
            if len(lost) >= _MOST_LOST:
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
                    except Exception as error:  # an objective that cannot be pickled, files that cannot be read
                        return Outcome(status=TrialStatus.ERROR, error=cause_of_exception(error))
                case Answer.REFUSED, str(sentence):
                    text = f"has a worker of another version: {sentence}. Install the same on all machines."
                    raise ClusterVersionError(self._address, text)
        return Outcome(status=TrialStatus.ABORTED, error=Cause(kind=CauseKind.SEARCH_ENDED))

    def _attempt(self, number: int, site: str, packed: bytes, lost: list[str]) -> tuple[Answer, bytes | str] | None:
        """Give a trial to Dask once; return the answer, or None if it has to begin again.

        Dask itself begins tasks again whose worker is lost. It is left to do so as long as they may.

        Parameters
        ----------
        number : int
            Number of the trial.
        site, packed : str, bytes
            See `run_trial`.
        lost : list of str
            Receives the addresses of the workers that are lost meanwhile.
        """
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        key = f"{self._name}-{number}-{uuid.uuid4().hex[:8]}"
        begun = self._begun[key] = []
        ended, start = threading.Event(), time.monotonic()
        try:
            task = self._client.submit(
                run_trial, site, self._name, own_version(), packed, key=key, pure=False, retries=0
            )
            self._tasks[key] = task
            task.add_done_callback(lambda _: ended.set())
            has_ended = False
            while not has_ended:
                has_ended = ended.wait(_POLL_SECONDS) or task.done()
                while len(begun) > 1:
                    self._note_lost(number, begun.pop(0), lost)
                waits = not begun and time.monotonic() - start > _BEGIN_SECONDS
                if self._abandoned.is_set() or len(lost) >= _MOST_LOST or waits:
                    return None
            answer: tuple[Answer, bytes | str] = task.result()
            return answer
        except KilledWorker as error:
            for worker in begun or [error.last_worker.address]:
                self._note_lost(number, worker, lost)
        except (FutureCancelledError, OSError):  # the scheduler was lost, or has been told to begin again
            self._wait_for_scheduler()
        except Exception as error:
            self._wait_for_scheduler()
            text = f"cannot run trials ({type(error).__name__}: {error}). Install the same packages on all machines."
            raise ClusterError(self._address, text) from error
        finally:
            del self._begun[key]
            if (task := self._tasks.pop(key, None)) is not None:
                task.release()  # which cancels it if it still runs
        return None

    def _note_beginning(self, event: tuple[float, dict[str, str]]) -> None:
        """Remember that a worker has begun a task."""
        _, message = event
        self._begun.get(message["key"], []).append(message["worker"])

    def _note_lost(self, number: int, worker: str, lost: list[str]) -> None:
        lost.append(worker)
        line = f"trial {number} lost the worker {worker}, number {len(lost)} of at most {_MOST_LOST}"
        logger.warning(line)
        if self._log_folder is not None:
            with contextlib.suppress(OSError), (self._log_folder / "lost_workers.log").open("a") as file:
                file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {line}\n")

    def _wait_for_scheduler(self) -> None:
        """Wait while the client tries to reach the scheduler again.

        Raises
        ------
        ClusterError
            If it has given up, or was closed.
        """
        while self._client.status == "connecting" and not self._closed.wait(_POLL_SECONDS):
            pass
        if self._client.status != "running" and not self._closed.is_set():
            text = (
                "was lost. Everything finished is kept in the run directory, if you gave one: start the scheduler and "
                "its workers again, then resume the run."
            )
            raise ClusterError(self._address, text)
        if not self._closed.is_set():
            # A scheduler that was started again knows nothing of it.
            self._client.subscribe_topic(self._name, self._note_beginning)

    # ------------------------------------------------------------ objectives

    def _site_of(self, objective: Objective) -> str:
        """Return the name of the sites that have an objective."""
        with self._lock:
            for known, name in self._sites:
                if known is objective or known == objective:
                    return name
            name = f"{self._name}-{len(self._sites)}"
            self._sites.append((objective, name))
            return name

    def _deliver(self, site: str, objective: Objective, worker: str, *, since: float) -> None:
        """Send an objective and its files to a worker, unless it got them since its answer."""
        with self._delivering:  # one after the other: each passes through the memory of the scheduler
            if self._closed.is_set() or self._deliveries.get((site, worker), 0.0) > since:
                return
            paths = objective.files() if isinstance(objective, PortableObjective) else {}
            delivery = pack((objective, FileBundle.read(paths), self._limits))
            try:
                problem = self._client.run(deliver, site, delivery, workers=[worker], on_error="return")[worker]
            except OSError:
                self._wait_for_scheduler()
                return
            if problem is None:
                self._deliveries[site, worker] = time.monotonic()
            elif not isinstance(problem, OSError):  # which says that the worker was lost meanwhile
                text = f"has a worker, {worker}, that cannot prepare for trials ({problem}). Correct that, then resume."
                raise ClusterError(self._address, text)
