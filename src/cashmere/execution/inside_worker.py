"""Code that runs inside a worker process."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from typing import IO

from cashmere.base.memory import return_freed_memory
from cashmere.execution.exception_cause import cause_of_exception
from cashmere.execution.guard import GUARDED, end_with_parent_and_adopt
from cashmere.execution.in_process import run_trial
from cashmere.execution.light_catboost import lighten_catboost
from cashmere.execution.messages import CHECKPOINT, FINAL, pack, read_message, unpack, write_message
from cashmere.protocols import Objective, Supervisor
from cashmere.records.cause import CauseKind
from cashmere.records.trial import Outcome, Trial, TrialStatus

_CHECKPOINT_PAUSE_SECONDS = 1.0
"""Shortest time between two checkpoints of a trial."""

_CHECKPOINT_SPACING = 20
"""How many times its own duration a checkpoint delays the next one, so that they take a twentieth of the trial."""

_SHARE_TO_END = 0.05
"""Share of the time limit reserved for packing, sending and receiving models and predictions."""


def serve(parent: int, log: str) -> None:
    """Answer every task that arrives on standard input with its outcome on standard output, until the input ends.

    The first answer, the numbers of `parent` and of this process, says that the worker is ready. Learners see neither
    stream: their input is empty, their output goes to the log.

    Parameters
    ----------
    parent : int
        Process number of the guard or, without one, of the coordinator: this process ends with it.
    log : str
        File for what learners print; it is lost if the file cannot be written.
    """
    tasks, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the coordinator stops its workers by itself
    streams = _open_streams(log)
    _use_streams(streams)
    if GUARDED:
        # The signal works even inside native code; adopted grandchildren can be found and killed.
        end_with_parent_and_adopt(signal.SIGKILL)
    threading.Thread(target=exit_with_parent, args=(parent,), daemon=True).start()
    warm_up()
    write_message(answers, pack((parent, os.getpid())))
    while (task := read_message(tasks)) is not None:
        _use_streams(streams)  # the last learner may have closed them
        answer = _answer(task, answers)
        return_freed_memory()  # models may have been large; this takes milliseconds
        write_message(answers, FINAL + answer)


def _open_streams(log: str) -> tuple[int, int, int]:
    """Return the descriptors that learners get as standard input, output and error."""
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        # The store has checked the logs. Neither follow a link that was put there since, nor wait for a pipe.
        not_following = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | not_following, 0o666)
    except OSError:  # the folder was moved or is not writable: no reason to fail trials
        sink = nothing
    return nothing, sink, sink


def _use_streams(streams: tuple[int, int, int]) -> None:
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)


def exit_with_parent(parent: int) -> None:
    """Wait until the process with that number is no longer this one's parent, then end this process immediately."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def warm_up() -> None:
    """Import what every trial needs, so that it does not count as time of the first trial."""
    import sklearn.pipeline  # noqa: F401

    import cashmere.evaluation.objective  # noqa: F401

    lighten_catboost()


class CheckpointSender:
    """The `Supervisor` inside a worker: sends checkpoints to the coordinator, in case it must kill the worker.

    Parameters
    ----------
    answers : binary stream
        To the coordinator.
    limit_seconds : float or None
        When the coordinator kills the worker, in seconds from now.
    """

    def __init__(self, answers: IO[bytes], limit_seconds: float | None) -> None:
        self._answers, self._pid = answers, os.getpid()
        self._lock, self._has_ended = threading.Lock(), False
        self._begin = self._latest = self._asked = time.perf_counter()
        self._limit = float("inf") if limit_seconds is None else limit_seconds
        self._pause = _CHECKPOINT_PAUSE_SECONDS
        self._packing_share = 0.0

    def seconds_left(self) -> float:
        """Return how long the trial may go on for its outcome to arrive in time, in seconds."""
        spent = time.perf_counter() - self._begin
        return (1 - _SHARE_TO_END) * self._limit - (1 + self._packing_share) * spent

    def wants_checkpoint(self) -> bool:
        """Return whether the last checkpoint is so long ago that the next one costs a small share of the time."""
        self._asked = time.perf_counter()
        return self._asked - self._latest >= self._pause

    def keep(self, outcome: Outcome) -> None:
        """Send a checkpoint, unless the trial has ended or a learner has forked and this is its child."""
        if os.getpid() != self._pid:
            return
        checkpoint = CHECKPOINT + pack(outcome)
        with self._lock:
            if not self._has_ended:
                write_message(self._answers, checkpoint)
        self._latest = time.perf_counter()
        seconds = self._latest - self._asked
        self._pause = max(_CHECKPOINT_PAUSE_SECONDS, _CHECKPOINT_SPACING * seconds)
        # Models grow with the fit, and so does the time to pack the last of them.
        self._packing_share = seconds / max(self._asked - self._begin, 1e-9)

    def end(self) -> None:
        """Send nothing more, as a thread that outlives the trial must not send checkpoints during the next one."""
        if os.getpid() == self._pid:
            with self._lock:
                self._has_ended = True


def _answer(task: bytes, answers: IO[bytes]) -> bytes:
    try:
        objective, trial, limit_seconds = unpack(task)
        supervisor = CheckpointSender(answers, limit_seconds)
        outcome = _run(objective, trial, limit_seconds, supervisor)
        supervisor.end()
        return pack(outcome)
    except Exception as error:  # a task that cannot be unpickled here, or an outcome that cannot be pickled
        return pack(Outcome(status=TrialStatus.ERROR, error=cause_of_exception(error)))


def _run(objective: Objective, trial: Trial, limit_seconds: float | None, supervisor: Supervisor) -> Outcome:
    """Run a trial; if it far exceeds the limit and the coordinator has not intervened, end this process."""
    import faulthandler

    own = os.getpid()
    if limit_seconds is not None:
        # A last resort that needs neither the interpreter nor the coordinator: a native thread ends the process.
        faulthandler.dump_traceback_later(2 * limit_seconds + 30, exit=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    try:
        outcome = run_trial(objective, trial, supervisor)
        if outcome.cut_short is not None and outcome.cut_short.kind is CauseKind.TIME_LIMIT:
            outcome = replace(outcome, cut_short=replace(outcome.cut_short, limit=limit_seconds))
        return outcome
    except BaseException as error:  # SystemExit, KeyboardInterrupt raised by a learner
        return Outcome(status=TrialStatus.ERROR, error=cause_of_exception(error))
    finally:
        if os.getpid() != own:  # the child of a learner that forked; the thread to cancel is not in it
            os._exit(0)
        faulthandler.cancel_dump_traceback_later()
