"""Trials that do what they can to break the run: it completes, and nothing is left behind."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time

import pytest

from benchmarks.faults.hostile_trials import (
    ATTACKS,
    CUT_SHORT,
    fork_again_and_again,
    fork_children_and_wait,
    raise_an_error,
    read_standard_input,
)
from benchmarks.faults.orphans import adopting_orphans
from benchmarks.faults.outcome import FaultOutcome
from benchmarks.faults.trials import run_trials
from cashmere.execution.limits import Limits
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.records.trial import TrialStatus
from contracts.executor_contract import square, trial


def burn_outside_the_interpreter(trial):
    """Compute in native code that never returns to the interpreter in time."""
    hashlib.pbkdf2_hmac("sha512", b"", b"", 100_000_000)


@pytest.mark.long
def test_native_code_is_stopped_by_its_cpu_time_and_a_sleeper_is_not():
    # A slow machine needs more than a second to import what the sleeper does.
    executor = WorkerProcessExecutor(2, limits=Limits(seconds=60, cpu_seconds=3.0))
    try:
        busy = executor.submit(burn_outside_the_interpreter, trial(0))
        idle = executor.submit(sleep_a_while, trial(1))
        stopped = busy.result(timeout=60)
        assert stopped.status is TrialStatus.TIMEOUT
        assert "CPU" in str(stopped.error)
        assert 3.0 < stopped.fit_seconds < 6.0
        assert idle.result(timeout=60).status is TrialStatus.SUCCESS
    finally:
        executor.shutdown()


def sleep_a_while(trial):
    time.sleep(1.5)
    return square(trial)


WAITING = [attack for attack, expected in ATTACKS.items() if expected in (TrialStatus.TIMEOUT, CUT_SHORT)]
"""They last until a limit ends them."""


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the trials use Linux calls")
@pytest.mark.parametrize(
    "attacks",
    [
        pytest.param([*ATTACKS, read_standard_input], id="all", marks=pytest.mark.slow),
        pytest.param([*(attack for attack in ATTACKS if attack not in WAITING[2:-2]), read_standard_input], id="most"),
    ],
)
def test_hostile_trials_leave_the_run_whole_and_no_orphan(attacks):
    with adopting_orphans() as orphans:
        rows = run_trials(attacks, orphans)
    assert {row.attack: (row.status, row.detail) for row in rows if row.outcome != FaultOutcome.OK} == {}


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the trials use Linux calls")
def test_coordinator_killed_amid_hostile_trials_leaves_no_orphan():
    attacks = [raise_an_error, fork_again_and_again, fork_children_and_wait]
    with adopting_orphans() as orphans:
        rows = run_trials(attacks, orphans, kill_after=1.5)
    assert rows[0].status == TrialStatus.ERROR and rows[1].status == "coordinator killed"
    assert [row.detail for row in rows if row.outcome != FaultOutcome.OK] == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to another process than the first")
def test_orphans_are_seen():
    program = [sys.executable, "-S", "-c", "import time; time.sleep(1000)"]
    parent = f"import subprocess; subprocess.Popen({program!r}, start_new_session=True, env={{}})"
    with adopting_orphans() as orphans:
        subprocess.run([sys.executable, "-c", parent], check=True)
        (left,) = orphans.wait(0.2)
        assert "time.sleep(1000)" in left
        assert orphans.wait(5.0) == []
