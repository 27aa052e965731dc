"""Code that runs inside a worker process."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time

from cashmere.execution.exception_cause import cause_of_exception
from cashmere.execution.in_process import run_trial
from cashmere.protocols import Objective
from cashmere.records.trial import Outcome, Trial, TrialStatus


def initialise_worker(coordinator: int, log: str | None) -> None:
    """Leave the terminal and Ctrl+C to the coordinator, end with it, and write to the log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the coordinator's business
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):
            os.setsid()
    if sys.platform == "linux":
        _set_process_options()
    threading.Thread(target=exit_with_parent, args=(coordinator,), daemon=True).start()
    sink = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(sink, 1)
    os.dup2(sink, 2)


def _set_process_options() -> None:
    """End with the coordinator even inside native code; adopt grandchildren, so that they can be found and killed."""
    import ctypes

    pr_set_pdeathsig, pr_set_child_subreaper = 1, 36
    with contextlib.suppress(OSError, AttributeError):
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(pr_set_pdeathsig, signal.SIGKILL)
        prctl(pr_set_child_subreaper, 1)


def exit_with_parent(coordinator: int) -> None:
    """Wait until the process with that number is no longer this one's parent, then end this process immediately."""
    while os.getppid() == coordinator:
        time.sleep(0.5)
    os._exit(1)


def warm_up() -> int:
    """Import what every trial needs, so that the first trial is not charged for it."""
    import sklearn.pipeline  # noqa: F401

    import cashmere.evaluation.objective  # noqa: F401

    return os.getpid()


def run_in_worker(objective: Objective, trial: Trial, limit_seconds: float | None) -> Outcome:
    """Run a trial; end the process long after the limit if the coordinator has not."""
    import faulthandler

    if limit_seconds is not None:
        # A last resort that needs neither the interpreter nor the coordinator: a native thread ends the process.
        faulthandler.dump_traceback_later(2 * limit_seconds + 30, exit=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    try:
        return run_trial(objective, trial)
    except BaseException as error:  # SystemExit, KeyboardInterrupt raised by a learner
        return Outcome(status=TrialStatus.ERROR, error=cause_of_exception(error))
    finally:
        faulthandler.cancel_dump_traceback_later()
