"""Trials that try to break a run, in worker processes that are watched.

None of them looks for the guard of the worker, or the coordinator, to kill it: any process may do that to the others of
its user.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
from ConfigSpace import Configuration

from cashmere.protocols import Objective, Supervisor
from cashmere.records.path import FollowedPath
from cashmere.records.trial import Outcome, Trial, TrialStatus

_LONG = 1000.0
"""Seconds: far beyond the limits of the trials."""

_SLEEP = (sys.executable, "-S", "-c", f"import time; time.sleep({_LONG})")


def _success() -> Outcome:
    return Outcome(status=TrialStatus.SUCCESS, loss=1.0)


# ------------------------------------------------------------ do not end


def sleep_in_native_code_holding_the_interpreter(trial: Trial) -> Outcome:
    ctypes.PyDLL(None).sleep(int(_LONG))
    return _success()


def compute_in_native_code(trial: Trial) -> Outcome:
    hashlib.pbkdf2_hmac("sha512", b"", b"", 2**31 - 1)
    return _success()


def sleep_and_ignore_signals(trial: Trial) -> Outcome:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(_LONG)
    return _success()


def stop_itself(trial: Trial) -> Outcome:
    os.kill(os.getpid(), signal.SIGSTOP)
    return _success()


def fork_children_and_wait(trial: Trial) -> Outcome:
    for _ in range(4):
        if os.fork() == 0:
            time.sleep(_LONG)
    time.sleep(_LONG)
    return _success()


def fork_again_and_again(trial: Trial) -> Outcome:
    """Fork ten children a second, each of which forks a daemon; at most 60, so that the machine survives."""
    for _ in range(60):
        if os.fork() == 0:
            if os.fork() == 0:
                os.setsid()
            time.sleep(_LONG)
        time.sleep(0.1)
    time.sleep(_LONG)
    return _success()


# ------------------------------------------------------------ leave something behind


def fork_daemons_and_return(trial: Trial) -> Outcome:
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(_LONG)
            os._exit(0)
    return _success()


def start_a_program_and_return(trial: Trial) -> Outcome:
    subprocess.Popen(_SLEEP, start_new_session=True)
    return _success()


def start_a_program_without_environment_and_return(trial: Trial) -> Outcome:
    subprocess.Popen(_SLEEP, start_new_session=True, env={}, cwd="/")
    return _success()


def start_a_program_that_ignores_signals_and_return(trial: Trial) -> Outcome:
    code = f"import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep({_LONG})"
    subprocess.Popen([sys.executable, "-S", "-c", code])
    return _success()


def start_threads_and_return(trial: Trial) -> Outcome:
    for _ in range(4):
        threading.Thread(target=time.sleep, args=(_LONG,)).start()
    return _success()


def compute_with_joblib_and_return(trial: Trial) -> Outcome:
    """Leave the processes of joblib idle, as any learner with ``n_jobs`` does."""
    from joblib import Parallel, delayed

    Parallel(n_jobs=2)(delayed(abs)(i) for i in range(4))
    return _success()


def compute_with_multiprocessing_and_return(trial: Trial) -> Outcome:
    import multiprocessing

    multiprocessing.get_context("fork").Process(target=time.sleep, args=(_LONG,), daemon=True).start()
    return _success()


# ------------------------------------------------------------ die


def crash_in_native_code(trial: Trial) -> Outcome:
    ctypes.string_at(0)
    return _success()


def abort(trial: Trial) -> Outcome:
    os.abort()


def leave_through_the_back_door(trial: Trial) -> Outcome:
    os._exit(0)


def exit_with_children(trial: Trial) -> Outcome:
    """Die and leave a daemon, which another process then adopts."""
    subprocess.Popen(_SLEEP, start_new_session=True)
    os._exit(1)


def kill_its_process_group(trial: Trial) -> Outcome:
    os.killpg(0, signal.SIGKILL)
    return _success()


def close_all_descriptors(trial: Trial) -> Outcome:
    os.closerange(3, 256)
    return _success()


# ------------------------------------------------------------ fail


def raise_an_error(trial: Trial) -> Outcome:
    raise ValueError("hostile")


def raise_system_exit(trial: Trial) -> Outcome:
    sys.exit(3)


def raise_keyboard_interrupt(trial: Trial) -> Outcome:
    raise KeyboardInterrupt


def raise_a_memory_error(trial: Trial) -> Outcome:
    raise MemoryError


def recurse_for_ever(trial: Trial) -> Outcome:
    return recurse_for_ever(trial)


def overflow_the_stack(trial: Trial) -> Outcome:
    """Recurse through native code, where Python's limit does not count."""
    sys.setrecursionlimit(10**9)

    def deeper(_: int) -> list[object]:
        return list(map(deeper, [0]))

    deeper(0)
    return _success()


def return_nan(trial: Trial) -> Outcome:
    return Outcome(status=TrialStatus.SUCCESS, loss=float("nan"))


def return_what_cannot_be_pickled(trial: Trial) -> Outcome:
    return Outcome(status=TrialStatus.SUCCESS, loss=1.0, error=threading.Lock())  # type: ignore[arg-type]


def allocate_until_death(trial: Trial) -> Outcome:
    blocks = []
    while True:
        blocks.append(np.ones(8 * 2**20))


# ------------------------------------------------------------ disturb


def close_standard_descriptors(trial: Trial) -> Outcome:
    os.closerange(0, 3)
    return _success()


def write_natively(trial: Trial) -> Outcome:
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"noise\n" * 1000)
    ctypes.CDLL(None).puts(b"noise")
    return _success()


def write_into_all_descriptors(trial: Trial) -> Outcome:
    """Write into whatever is open, the pipe to the coordinator among it."""
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"\xff" * 64)
    return _success()


def read_standard_input(trial: Trial) -> Outcome:
    assert os.read(0, 1) == b""
    return _success()


def print_megabytes(trial: Trial) -> Outcome:
    for _ in range(8):
        print("noise " * 2**18, flush=True)
    return _success()


# ------------------------------------------------------------ with checkpoints


class Supervised:
    """A trial that may hand over checkpoints.

    Parameters
    ----------
    name : str
        For the rows.
    run : callable
        What it does.
    """

    def __init__(self, name: str, run: Callable[[Trial, Supervisor], Outcome]) -> None:
        self.__name__ = name
        self.run = run

    def __call__(self, trial: Trial) -> Outcome:
        """Fail: nobody calls it unsupervised."""
        raise AssertionError("a worker supervises its trials")

    def has_checkpoints(self, configuration: Configuration) -> bool:
        """Return True."""
        return True


def after_a_checkpoint(attack: Objective) -> Supervised:
    """Return a trial that does the same after handing over a checkpoint."""

    def run(trial: Trial, supervisor: Supervisor) -> Outcome:
        supervisor.keep(_checkpoint())
        return cast(Outcome, attack(trial))

    return Supervised(f"{name_of(attack)}_after_a_checkpoint", run)


def with_checkpoint(make: Callable[[], Any]) -> Supervised:
    """Return a trial that hands over a good checkpoint, then another one, and dies."""

    def run(trial: Trial, supervisor: Supervisor) -> Outcome:
        supervisor.keep(_checkpoint())
        supervisor.keep(make())
        os._exit(0)

    return Supervised(f"hand_over_{make.__name__}_and_die", run)


def _checkpoint() -> Outcome:
    return Outcome(status=TrialStatus.SUCCESS, loss=0.5, predictions=np.ones((30, 2), dtype=np.float32), model=b"model")


def another_type() -> Any:
    return {"loss": 0.5}


def a_failure() -> Outcome:
    return Outcome(status=TrialStatus.TIMEOUT)


def a_loss_of_nan() -> Outcome:
    return replace(_checkpoint(), loss=float("nan"))


def predictions_of_nan() -> Outcome:
    return replace(_checkpoint(), predictions=np.full((30, 2), np.nan, dtype=np.float32))


def predictions_of_objects() -> Outcome:
    return replace(_checkpoint(), predictions=np.array([None] * 30))


def predictions_in_three_dimensions() -> Outcome:
    return replace(_checkpoint(), predictions=np.ones((3, 3, 3), dtype=np.float32))


def a_model_of_another_type() -> Outcome:
    return replace(_checkpoint(), model={"weights": [1.0]})  # type: ignore[arg-type]


def a_path_that_leads_nowhere() -> Outcome:
    path = FollowedPath(parameter="rounds", positions=(1.0, 2.0), losses=(0.5,), chosen=7.0)
    return replace(_checkpoint(), path=path)


class _Explosive:
    def __reduce__(self) -> tuple[Any, ...]:
        return _explode, ()


def _explode() -> None:
    raise RuntimeError("hostile")


def what_cannot_be_restored() -> Any:
    return _Explosive()


def _hand_over_again_and_again(trial: Trial, supervisor: Supervisor) -> Outcome:
    """Flood the coordinator with checkpoints of 8 MiB."""
    while True:
        supervisor.keep(replace(_checkpoint(), model=bytes(8 * 2**20)))


def _hand_over_from_a_thread_and_return(trial: Trial, supervisor: Supervisor) -> Outcome:
    """Leave a thread that keeps handing over checkpoints during the trials that follow."""

    def hand_over() -> None:
        while True:
            supervisor.keep(_checkpoint())
            time.sleep(0.01)

    threading.Thread(target=hand_over, daemon=True).start()
    return _success()


def _hand_over_in_a_child_and_return(trial: Trial, supervisor: Supervisor) -> Outcome:
    """Fork; both hand over a checkpoint and return, as if each were the worker."""
    child = os.fork()
    supervisor.keep(_checkpoint() if child else replace(_checkpoint(), loss=-1.0))
    if child == 0:
        return replace(_success(), loss=-1.0)
    os.waitpid(child, 0)
    return _success()


def announce_a_huge_answer(trial: Trial) -> Outcome:
    """Write into all pipes that an answer of 2^50 bytes follows."""
    _write_into_pipes(struct.pack("<Q", 2**50))
    return _success()


def send_half_an_answer_and_die(trial: Trial) -> Outcome:
    _write_into_pipes(struct.pack("<Q", 100) + b"=half")
    os._exit(0)


def _write_into_pipes(content: bytes) -> None:
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.write(descriptor, content)


def name_of(attack: Objective) -> str:
    """Return the name of an attack."""
    return str(getattr(attack, "__name__", attack))


CUT_SHORT = "success, cut short"
"""The status of trials whose last checkpoint counts."""

ATTACKS: dict[Objective, str] = {
    sleep_in_native_code_holding_the_interpreter: TrialStatus.TIMEOUT,
    compute_in_native_code: TrialStatus.TIMEOUT,
    sleep_and_ignore_signals: TrialStatus.TIMEOUT,
    stop_itself: TrialStatus.TIMEOUT,
    fork_children_and_wait: TrialStatus.TIMEOUT,
    fork_again_and_again: TrialStatus.TIMEOUT,
    fork_daemons_and_return: TrialStatus.SUCCESS,
    start_a_program_and_return: TrialStatus.SUCCESS,
    start_a_program_without_environment_and_return: TrialStatus.SUCCESS,
    start_a_program_that_ignores_signals_and_return: TrialStatus.SUCCESS,
    start_threads_and_return: TrialStatus.SUCCESS,
    compute_with_joblib_and_return: TrialStatus.SUCCESS,
    compute_with_multiprocessing_and_return: TrialStatus.SUCCESS,
    crash_in_native_code: TrialStatus.ERROR,
    abort: TrialStatus.ERROR,
    leave_through_the_back_door: TrialStatus.ERROR,
    exit_with_children: TrialStatus.ERROR,
    kill_its_process_group: TrialStatus.ERROR,
    close_all_descriptors: TrialStatus.ERROR,
    raise_an_error: TrialStatus.ERROR,
    raise_system_exit: TrialStatus.ERROR,
    raise_keyboard_interrupt: TrialStatus.ERROR,
    recurse_for_ever: TrialStatus.ERROR,
    overflow_the_stack: TrialStatus.ERROR,
    return_nan: TrialStatus.ERROR,
    return_what_cannot_be_pickled: TrialStatus.ERROR,
    write_into_all_descriptors: TrialStatus.ERROR,
    allocate_until_death: TrialStatus.MEMORY,
    close_standard_descriptors: TrialStatus.SUCCESS,
    write_natively: TrialStatus.SUCCESS,
    print_megabytes: TrialStatus.SUCCESS,
    read_standard_input: TrialStatus.SUCCESS,
    raise_a_memory_error: TrialStatus.MEMORY,
    announce_a_huge_answer: TrialStatus.ERROR,
    send_half_an_answer_and_die: TrialStatus.ERROR,
    # A limit, a death or a lack of memory leaves the last checkpoint ...
    after_a_checkpoint(sleep_in_native_code_holding_the_interpreter): CUT_SHORT,
    after_a_checkpoint(stop_itself): CUT_SHORT,
    after_a_checkpoint(fork_children_and_wait): CUT_SHORT,
    after_a_checkpoint(allocate_until_death): CUT_SHORT,
    after_a_checkpoint(raise_a_memory_error): CUT_SHORT,
    after_a_checkpoint(crash_in_native_code): CUT_SHORT,
    after_a_checkpoint(abort): CUT_SHORT,
    after_a_checkpoint(overflow_the_stack): CUT_SHORT,
    after_a_checkpoint(leave_through_the_back_door): CUT_SHORT,
    after_a_checkpoint(exit_with_children): CUT_SHORT,
    after_a_checkpoint(kill_its_process_group): CUT_SHORT,
    after_a_checkpoint(close_all_descriptors): CUT_SHORT,
    after_a_checkpoint(send_half_an_answer_and_die): CUT_SHORT,
    Supervised("hand_over_again_and_again", _hand_over_again_and_again): CUT_SHORT,
    # ... what a trial does by itself counts alone ...
    after_a_checkpoint(raise_an_error): TrialStatus.ERROR,
    after_a_checkpoint(raise_system_exit): TrialStatus.ERROR,
    after_a_checkpoint(raise_keyboard_interrupt): TrialStatus.ERROR,
    after_a_checkpoint(recurse_for_ever): TrialStatus.ERROR,
    after_a_checkpoint(return_nan): TrialStatus.ERROR,
    after_a_checkpoint(return_what_cannot_be_pickled): TrialStatus.ERROR,
    after_a_checkpoint(fork_daemons_and_return): TrialStatus.SUCCESS,
    after_a_checkpoint(start_threads_and_return): TrialStatus.SUCCESS,
    after_a_checkpoint(close_standard_descriptors): TrialStatus.SUCCESS,
    after_a_checkpoint(print_megabytes): TrialStatus.SUCCESS,
    Supervised("hand_over_from_a_thread_and_return", _hand_over_from_a_thread_and_return): TrialStatus.SUCCESS,
    Supervised("hand_over_in_a_child_and_return", _hand_over_in_a_child_and_return): TrialStatus.SUCCESS,
    # ... and of a worker that sends anything but an outcome, nothing counts.
    after_a_checkpoint(write_into_all_descriptors): TrialStatus.ERROR,
    after_a_checkpoint(announce_a_huge_answer): TrialStatus.ERROR,
    with_checkpoint(another_type): TrialStatus.ERROR,
    with_checkpoint(a_failure): TrialStatus.ERROR,
    with_checkpoint(a_loss_of_nan): TrialStatus.ERROR,
    with_checkpoint(predictions_of_nan): TrialStatus.ERROR,
    with_checkpoint(predictions_of_objects): TrialStatus.ERROR,
    with_checkpoint(predictions_in_three_dimensions): TrialStatus.ERROR,
    with_checkpoint(a_model_of_another_type): TrialStatus.ERROR,
    with_checkpoint(a_path_that_leads_nowhere): TrialStatus.ERROR,
    with_checkpoint(what_cannot_be_restored): TrialStatus.ERROR,
}
"""Hostile trials, and how each must be recorded."""

LOSSES = {TrialStatus.SUCCESS: 1.0, CUT_SHORT: 0.5}
"""The loss that must be recorded with a status."""
