"""Run several evaluations of a collection in one trial of a worker, each under its own limit."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from ConfigSpace import Configuration

from cashmere.base.arrays import AnyArray
from cashmere.evaluation.metrics import get_metric
from cashmere.evaluation.objective import CrossValidationObjective, Unsupervised
from cashmere.execution.in_process import run_trial
from cashmere.protocols import Supervisor
from cashmere.records.trial import Outcome, Trial, TrialStatus

OTHER_METRIC = "log_loss"

BATCH_SECONDS = 0.5
"""A worker begins no further evaluation of a batch after this time. It is short enough that a kill loses little, and
long compared with sending work back and forth (50 ms)."""


class _OverLimitError(BaseException):
    """Raised by the clock inside a learner; no ``except Exception`` in a library can swallow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialBatch(Trial):
    """Several trials sent to a worker as one.

    Attributes
    ----------
    trials : tuple of Trial
        Evaluated in this order until the batch has taken half a second; the others may be sent again.
    """

    trials: tuple[Trial, ...]

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> Self:
        """Return the batch of some trials."""
        first = trials[0]
        return cls(number=first.number, configuration=first.configuration, seed=first.seed, trials=tuple(trials))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchObjective:
    """Evaluate several trials of a table in one call of a worker.

    The outcome holds their records as its model, see `records_of`. Each is handed over as soon as it is complete:
    whatever ends the worker, finished records remain, and the first trial without one is to blame.

    Attributes
    ----------
    objective : CrossValidationObjective
        Evaluates a single trial.
    y : (n_validation,) array
        Class codes of the validation rows.
    limit_seconds : float
        CPU seconds of one evaluation; wall time where the system has no such clock.
    """

    objective: CrossValidationObjective
    y: AnyArray
    limit_seconds: float

    def __call__(self, trial: Trial) -> Outcome:
        """Evaluate a `TrialBatch`."""
        return self.run(trial, Unsupervised())

    def has_checkpoints(self, configuration: Configuration) -> bool:
        """Return True: finished records remain."""
        return True

    def files(self) -> Mapping[str, Path]:
        """Return the files of the prepared folds."""
        return self.objective.files()

    def in_folder(self, folder: Path) -> BatchObjective:
        """Return the objective for the prepared folds below another folder."""
        return replace(self, objective=self.objective.in_folder(folder))

    def run(self, trial: Trial, supervisor: Supervisor) -> Outcome:
        """Evaluate a `TrialBatch`; hand over the records so far after each evaluation."""
        assert isinstance(trial, TrialBatch)
        end = time.perf_counter() + BATCH_SECONDS
        records: list[dict[str, Any]] = []
        for each in trial.trials:
            records.append(self._evaluate(each))
            if time.perf_counter() > end or each is trial.trials[-1]:
                break
            supervisor.keep(_outcome_with(records))
        return _outcome_with(records)

    def _evaluate(self, trial: Trial) -> dict[str, Any]:
        start = time.process_time()
        try:
            _limit_cpu_time(self.limit_seconds)
            outcome = run_trial(self.objective, trial)
        except _OverLimitError:
            outcome = Outcome(status=TrialStatus.TIMEOUT)
        finally:
            _limit_cpu_time(0.0)
        seconds = time.process_time() - start
        if seconds > self.limit_seconds:
            outcome = Outcome(status=TrialStatus.TIMEOUT)
        if outcome.status is not TrialStatus.SUCCESS:
            return failure_record(trial.number, outcome, min(seconds, self.limit_seconds))
        other = get_metric(OTHER_METRIC, self.objective.metric.task_types[0])
        return {
            "number": trial.number,
            "status": outcome.status.value,
            "loss": outcome.loss,
            OTHER_METRIC: other.loss(self.y, np.asarray(outcome.predictions)),
            "seconds": round(seconds, 4),
        }


def _outcome_with(records: Sequence[Mapping[str, Any]]) -> Outcome:
    return Outcome(status=TrialStatus.SUCCESS, loss=0.0, model=json.dumps(records).encode())


def records_of(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the records that the outcome of a batch holds, in the order of its trials."""
    return [] if outcome.model is None else list(json.loads(outcome.model))


def _limit_cpu_time(seconds: float) -> None:
    """Interrupt this process after some CPU seconds, and end it a second later if that did not help; 0 disarms both.

    The interruption is a Python exception: it spares the worker, but native code does not notice it. The second signal
    has no handler, so it ends the process without needing the interpreter.
    """
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGPROF, _raise_over_limit)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds + 1 if seconds else 0.0)


def _raise_over_limit(number: int, frame: object) -> None:
    raise _OverLimitError


def failure_record(number: int, outcome: Outcome, seconds: float) -> dict[str, Any]:
    """Return the record of a trial without a loss."""
    record = {"number": number, "status": outcome.status.value, "seconds": round(seconds, 4)}
    lines = str(outcome.error or "").strip().splitlines()
    return {**record, "error": lines[0][:300]} if lines else record
