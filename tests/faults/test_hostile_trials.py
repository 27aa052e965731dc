"""Twenty trials that do what they can to break the run: it completes, and nothing is left behind."""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from cashmere.execution.limits import Limits
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.records.trial import Outcome, TrialStatus
from contracts.executor_contract import square, trial

LIMIT_SECONDS = 3.0


def sleep_in_native_code_holding_the_interpreter(trial):
    ctypes.PyDLL(None).sleep(1000)


def sleep_and_ignore_signals(trial):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(1000)


def allocate_until_death(trial):
    blocks = []
    while True:
        blocks.append(np.ones(8 * 2**20))


def fork_children_and_wait(trial):
    for _ in range(4):
        if os.fork() == 0:
            time.sleep(1000)
    time.sleep(1000)


def fork_daemons_and_return(trial):
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
    return Outcome(status=TrialStatus.SUCCESS, loss=1.0)


def start_a_program_and_return(trial):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
    return Outcome(status=TrialStatus.SUCCESS, loss=1.0)


def raise_an_error(trial):
    raise ValueError("hostile")


def return_nan(trial):
    return Outcome(status=TrialStatus.SUCCESS, loss=float("nan"))


def crash_in_native_code(trial):
    ctypes.string_at(0)


def leave_through_the_back_door(trial):
    os._exit(0)


HOSTILE = [
    (sleep_in_native_code_holding_the_interpreter, TrialStatus.TIMEOUT),
    (sleep_and_ignore_signals, TrialStatus.TIMEOUT),
    (allocate_until_death, TrialStatus.MEMORY),
    (fork_children_and_wait, TrialStatus.TIMEOUT),
    (fork_daemons_and_return, TrialStatus.SUCCESS),
    (start_a_program_and_return, TrialStatus.SUCCESS),
    (raise_an_error, TrialStatus.ERROR),
    (return_nan, TrialStatus.ERROR),
    (crash_in_native_code, TrialStatus.ERROR),
    (leave_through_the_back_door, TrialStatus.ERROR),
]


def burn_outside_the_interpreter(trial):
    """Compute in native code that never returns to the interpreter in time."""
    hashlib.pbkdf2_hmac("sha512", b"", b"", 100_000_000)


def test_native_code_is_stopped_by_its_cpu_time_and_a_sleeper_is_not():
    executor = WorkerProcessExecutor(2, limits=Limits(seconds=60, cpu_seconds=1.0))
    try:
        busy = executor.submit(burn_outside_the_interpreter, trial(0))
        idle = executor.submit(sleep_a_while, trial(1))
        stopped = busy.result(timeout=60)
        assert stopped.status is TrialStatus.TIMEOUT
        assert "CPU" in str(stopped.error)
        assert 1.0 < stopped.fit_seconds < 3.0
        assert idle.result(timeout=60).status is TrialStatus.SUCCESS
    finally:
        executor.shutdown()


def sleep_a_while(trial):
    time.sleep(1.5)
    return square(trial)


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the trials use Linux calls")
def test_twenty_hostile_trials_leave_the_run_whole_and_no_orphan():
    before = set(psutil.pids())
    executor = WorkerProcessExecutor(2, limits=Limits(seconds=LIMIT_SECONDS, memory_mib=500))
    try:
        jobs = [(attack, expected) for attack, expected in HOSTILE for _ in range(2)]
        futures = [executor.submit(attack, trial(i)) for i, (attack, _) in enumerate(jobs)]
        outcomes = [future.result(timeout=120) for future in futures]
        for (attack, expected), outcome in zip(jobs, outcomes, strict=True):
            assert outcome.status is expected, (attack.__name__, outcome)
            if expected is TrialStatus.TIMEOUT:
                assert outcome.duration_seconds < LIMIT_SECONDS + 2
            if expected is TrialStatus.MEMORY:
                assert outcome.memory_mib < 1.5 * 500
        assert executor.submit(square, trial(20)).result(timeout=60).status is TrialStatus.SUCCESS
    finally:
        executor.shutdown()
    time.sleep(0.3)
    left = [p for p in psutil.process_iter(["pid", "cmdline", "status", "ppid"]) if p.pid not in before]
    ours = [p.info for p in left if p.info["status"] != psutil.STATUS_ZOMBIE and "cashmere" in _story(p)]
    assert not ours


def _story(process: psutil.Process) -> str:
    """Tell whether a process stems from this test: a worker of ours, or the program it started."""
    try:
        text = " ".join(process.cmdline())
    except psutil.Error:
        return ""
    mine = "cashmere.execution.inside_worker" in text or "time.sleep(1000)" in text
    return "cashmere" if mine else ""
