"""Run trials in this process."""

from __future__ import annotations

import time
import traceback
import warnings
from concurrent.futures import Future
from dataclasses import replace

import numpy as np

from cashmere.execution.exception_cause import cause_of_exception
from cashmere.execution.outcome_check import outcome_of, why_unusable
from cashmere.protocols import Objective, SupervisedObjective, Supervisor
from cashmere.records.cause import Cause, CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus


def run_trial(objective: Objective, trial: Trial, supervisor: Supervisor | None = None) -> Outcome:
    """Call the objective; turn exceptions and unusable outcomes into failed ones.

    Parameters
    ----------
    objective : Objective
        The function.
    trial : Trial
        What to evaluate.
    supervisor : Supervisor, optional
        For a `SupervisedObjective`.
    """
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if supervisor is not None and isinstance(objective, SupervisedObjective):
                outcome = objective.run(trial, supervisor)
            else:
                outcome = outcome_of(objective(trial))
    except MemoryError as error:
        outcome = Outcome(
            status=TrialStatus.MEMORY,
            error=Cause(kind=CauseKind.MEMORY_LIMIT, text=f"MemoryError: {error or 'allocation refused'}"),
        )
    except Exception as error:
        cause = cause_of_exception(error, traceback.format_exc(limit=-8))
        outcome = Outcome(status=TrialStatus.ERROR, error=cause)
    if (problem := why_unusable(outcome)) is not None:
        outcome = Outcome(status=TrialStatus.ERROR, error=problem)
    return replace(outcome, duration_seconds=time.perf_counter() - start)


class InProcessExecutor:
    """Run each trial immediately in the calling process.

    No limits can be enforced: use it for tests, tiny budgets and debugging.
    """

    n_workers = 1

    def submit(self, objective: Objective, trial: Trial) -> Future[Outcome]:
        """Run the trial and return a finished future."""
        future: Future[Outcome] = Future()
        future.set_result(run_trial(objective, trial))
        return future

    def shutdown(self) -> None:
        """Do nothing: no trial outlives its call."""
