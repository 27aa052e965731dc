"""Trials on their way through an executor."""

from __future__ import annotations

import queue
from concurrent.futures import Future

from cashmere.records.trial import Outcome, Trial, TrialStatus

_WORKERS_PER_WAITING_TRIAL = 4
"""Workers for which one trial is submitted ahead, to wait for the first free one. So workers continue while the
coordinator decides a batch or selects the ensemble, for a quarter of a trial's time if all trials take equally long."""


def submitted_at_once(n_workers: int) -> int:
    """Return how many trials to submit to an executor at a time: one for each worker, and some that wait."""
    return n_workers + max(1, n_workers // _WORKERS_PER_WAITING_TRIAL)


class RunningTrials:
    """The trials submitted to an executor whose outcomes have not been taken. In a pickle there are none."""

    def __init__(self) -> None:
        self._trials: dict[Future[Outcome], Trial] = {}
        self._finished: queue.SimpleQueue[Future[Outcome]] = queue.SimpleQueue()
        self._lost: list[Trial] = []

    def __len__(self) -> int:
        return len(self._trials)

    def add(self, trial: Trial, future: Future[Outcome]) -> None:
        """Add a trial that has been submitted."""
        self._trials[future] = trial
        future.add_done_callback(self._finished.put)

    @property
    def any_finished(self) -> bool:
        """Whether an outcome can be taken."""
        return not self._finished.empty()

    def take(self, *, timeout: float) -> list[tuple[Trial, Future[Outcome]]]:
        """Remove the trials that have finished, and return them in trial order.

        If none has, wait up to `timeout` seconds for the first.
        """
        futures = []
        try:
            futures.append(self._finished.get(timeout=timeout))
            while True:
                futures.append(self._finished.get_nowait())
        except queue.Empty:
            return sorted(((self._trials.pop(future), future) for future in futures), key=lambda pair: pair[0].number)

    def count_as_unfinished(self, trial: Trial) -> None:
        """Count a trial whose outcome was taken, but could not be used, as one without an outcome."""
        self._lost.append(trial)

    def cancel_waiting(self) -> None:
        """Cancel the trials that no worker has started."""
        for future in self._trials:
            future.cancel()

    @property
    def trials(self) -> dict[int, Trial]:
        """The trials whose outcomes were not used, by number."""
        return {trial.number: trial for trial in (*self._trials.values(), *self._lost)}

    @property
    def n_running(self) -> int:
        """Number of trials that have not ended."""
        return sum(not future.done() for future in self._trials)

    def unfinished(self) -> dict[int, tuple[Trial, Outcome | None]]:
        """Return the trials by number, each with the outcome with which it has meanwhile been stopped, if any."""
        stopped = {trial.number: (trial, _outcome_of(future)) for future, trial in self._trials.items()}
        return stopped | {trial.number: (trial, None) for trial in self._lost}

    def __reduce__(self) -> tuple[type[RunningTrials], tuple[()]]:
        """Leave all trials behind, since futures belong to this process."""
        return RunningTrials, ()


def _outcome_of(future: Future[Outcome]) -> Outcome | None:
    """Return the outcome of a trial that may have been stopped without one."""
    if not future.done() or future.cancelled() or future.exception() is not None:
        return None
    outcome = future.result()
    return None if outcome.status is TrialStatus.ABORTED else outcome
