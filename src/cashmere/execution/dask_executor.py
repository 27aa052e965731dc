"""Run trials on the workers of a Dask cluster."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cashmere.base.versions import versions
from cashmere.exceptions import ClusterError
from cashmere.execution.cluster_executor import MOST_LOST, POLL_SECONDS, ClusterExecutor
from cashmere.execution.file_bundle import FileBundle
from cashmere.execution.files_in_place import FilesInPlace
from cashmere.execution.inside_dask_worker import can_see, close_sites, deliver, run_trial
from cashmere.execution.limits import Limits
from cashmere.execution.messages import pack
from cashmere.execution.sites import Answer
from cashmere.protocols import Objective

if TYPE_CHECKING:
    import distributed

_BEGIN_SECONDS = 10.0
"""When to submit a trial again that no worker has begun: Dask may have queued it behind a long one, or on a worker that
hangs, while others are idle."""


class DaskExecutor(ClusterExecutor):
    """Run trials in watched worker processes on the workers of a Dask cluster.

    Each trial is a Dask task that passes it to a worker process beside the Dask worker, under the same limits as on one
    machine.

    Parameters
    ----------
    client : distributed.Client
        Connected; it is not closed here.
    n_workers, limits, log_folder
        See `ClusterExecutor`.
    """

    def __init__(
        self,
        client: distributed.Client,
        n_workers: int = 1,
        *,
        limits: Limits | None = None,
        log_folder: Path | None = None,
    ) -> None:
        super().__init__(str(client.scheduler.address), n_workers, limits=limits, log_folder=log_folder)
        self._client = client
        self._begun: dict[str, list[str]] = {}
        self._tasks: dict[str, distributed.Future[tuple[Answer, bytes | str]]] = {}
        client.subscribe_topic(self._name, self._note_beginning)

    def _is_connected(self) -> bool:
        return bool(self._client.status == "running")

    def _close_sites(self, names: list[str]) -> None:
        self._client.run(close_sites, names, on_error="ignore")

    def _let_go(self) -> None:
        self._client.cancel(list(self._tasks.values()))
        self._client.unsubscribe_topic(self._name)

    def _attempt(self, number: int, site: str, packed: bytes, lost: list[str]) -> tuple[Answer, bytes | str] | None:
        """Submit a trial to Dask once.

        Dask itself restarts tasks whose worker is lost. It may do so until the trial has lost `MOST_LOST` workers.
        """
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        key = f"{self._name}-{number}-{uuid.uuid4().hex[:8]}"
        begun = self._begun[key] = []
        ended, start = threading.Event(), time.monotonic()
        try:
            task = self._client.submit(run_trial, site, self._name, versions(), packed, key=key, pure=False, retries=0)
            self._tasks[key] = task
            task.add_done_callback(lambda _: ended.set())
            has_ended = False
            while not has_ended:
                has_ended = ended.wait(POLL_SECONDS) or task.done()
                while len(begun) > 1:
                    self._note_lost(number, begun.pop(0), lost)
                waits = not begun and time.monotonic() - start > _BEGIN_SECONDS
                if self._abandoned.is_set() or len(lost) >= MOST_LOST or waits:
                    return None
            answer: tuple[Answer, bytes | str] = task.result()
            return answer
        except KilledWorker as error:
            for worker in begun or [error.last_worker.address]:
                self._note_lost(number, worker, lost)
        except (FutureCancelledError, OSError):  # the scheduler was lost or restarted
            self._wait_for_scheduler()
        except Exception as error:
            self._wait_for_scheduler()
            text = f"cannot run trials ({type(error).__name__}: {error}). Install the same packages on all machines."
            raise ClusterError(self._address, text) from error
        finally:
            del self._begun[key]
            if (task := self._tasks.pop(key, None)) is not None:
                task.release()  # this also cancels it if it is still running
        return None

    def _note_beginning(self, event: tuple[float, dict[str, str]]) -> None:
        """Remember that a worker has begun a task."""
        _, message = event
        self._begun.get(message["key"], []).append(message["worker"])

    def _wait_for_scheduler(self) -> None:
        """Wait while the client reconnects to the scheduler.

        Raises
        ------
        ClusterError
            If the client has given up, or was closed.
        """
        while self._client.status == "connecting" and not self._closed.wait(POLL_SECONDS):
            pass
        if self._client.status != "running" and not self._closed.is_set():
            text = (
                "was lost. Everything finished is kept in the run directory, if you gave one: start the scheduler and "
                "its workers again, then resume the run."
            )
            raise ClusterError(self._address, text)
        if not self._closed.is_set():
            # A restarted scheduler does not know about the subscription.
            self._client.subscribe_topic(self._name, self._note_beginning)

    def _send(self, site: str, objective: Objective, paths: Mapping[str, Path], worker: str) -> bool:
        """Make a site on a worker. It copies files that it can see; others pass through the scheduler."""
        in_place = FilesInPlace.describe(paths)
        try:
            if self._ask(worker, can_see, in_place) is True:
                problem = self._ask(worker, deliver, site, pack((objective, in_place, self._limits)))
            else:
                with self._bundling:
                    delivery = pack((objective, FileBundle.read(paths), self._limits))
                    problem = self._ask(worker, deliver, site, delivery)
        except OSError:
            self._wait_for_scheduler()
            return False
        if problem is not None and not isinstance(problem, OSError):  # an OSError says that the worker was lost
            raise self._unprepared(worker, problem)
        return problem is None

    def _ask(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function on a worker; return its value, or the exception that it raised."""
        return self._client.run(function, *arguments, workers=[worker], on_error="return")[worker]
