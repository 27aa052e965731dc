"""Run several evaluations of a collection in one call of a worker, each under its own limit."""

from __future__ import annotations

import json
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cashmere.base.arrays import AnyArray
from cashmere.evaluation.metrics import get_metric
from cashmere.evaluation.objective import CrossValidationObjective
from cashmere.execution.in_process import run_trial
from cashmere.records.trial import Outcome, Trial, TrialStatus

OTHER_METRIC = "log_loss"

BATCH_SECONDS = 0.5
"""A worker begins no further evaluation of a batch after this time. It is short enough that a kill loses little, and
long compared with sending work back and forth (50 ms)."""


class _OverLimitError(BaseException):
    """Raised inside a learner by the clock; no ``except Exception`` of a library holds it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchObjective:
    """Evaluate several trials in one call of a worker, and write their results to a file, one line each.

    Whatever ends the worker, the finished lines remain, and the first trial without a line is the one to blame.

    Attributes
    ----------
    objective : CrossValidationObjective
        Evaluates a single trial.
    trials : tuple of Trial
        Trials, evaluated in this order until the batch has taken half a second; the others may be sent again.
    y : (n_validation,) array
        Class codes of the validation rows.
    limit_seconds : float
        CPU seconds of one evaluation; wall time where the system has no such clock.
    results : Path
        File of the results.
    """

    objective: CrossValidationObjective
    trials: tuple[Trial, ...]
    y: AnyArray
    limit_seconds: float
    results: Path

    def __call__(self, trial: Trial) -> Outcome:
        """Evaluate the batch; `trial` is ignored, and the outcome only says that the worker is alive."""
        end = time.perf_counter() + BATCH_SECONDS
        with self.results.open("a", encoding="utf-8") as file:
            for each in self.trials:
                file.write(json.dumps(self._evaluate(each)) + "\n")
                file.flush()
                if time.perf_counter() > end:
                    break
        return Outcome(status=TrialStatus.SUCCESS, loss=0.0)

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


def _limit_cpu_time(seconds: float) -> None:
    """Interrupt this process after a number of CPU seconds, and end it a second later if that did not help; 0 disarms.

    The interruption is a Python exception and spares the worker, but native code does not notice it; the second signal
    needs no interpreter: it is not handled, so it ends the process.
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
