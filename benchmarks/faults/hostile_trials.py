"""Trials that do what they can to break a run, in worker processes that are watched.

Not among them: to look for the guard of the worker, or the coordinator, and to kill it. Any process may do that to the
others of its user.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np

from cashmere.protocols import Objective
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
    """Die and leave a daemon, which the death hands to somebody else."""
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


ATTACKS: dict[Objective, TrialStatus] = {
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
    read_standard_input: TrialStatus.SUCCESS,
}
"""What a trial does, and how it must be recorded."""


def name_of(attack: Objective) -> str:
    """Return the name of an attack."""
    return str(getattr(attack, "__name__", attack))
