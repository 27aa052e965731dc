from __future__ import annotations

import io
import os
import platform
import signal
import sys
import threading
import time

import numpy as np
import psutil
import pytest
from processes import descendants

from cashmere.base.cores import threads_per_worker
from cashmere.exceptions import UsageError
from cashmere.execution.in_process import InProcessExecutor
from cashmere.execution.inside_worker import CheckpointSender, _open_streams
from cashmere.execution.limits import Limits
from cashmere.execution.messages import read_message, write_message
from cashmere.execution.worker import WorkerProcess
from cashmere.execution.worker_processes import WorkerProcessExecutor
from cashmere.records.cause import CauseKind
from cashmere.records.trial import Outcome, TrialStatus
from contracts.executor_contract import Checkpointing, ExecutorContract, square, talking, trial


@pytest.mark.skipif(os.name != "posix", reason="Windows has other rights")
def test_the_group_may_continue_the_log_of_a_worker(tmp_path):
    usual = os.umask(0o002)
    try:
        nothing, sink, _ = _open_streams(str(tmp_path / "worker.log"))
    finally:
        os.umask(usual)
    os.close(nothing)
    os.close(sink)
    assert (tmp_path / "worker.log").stat().st_mode & 0o777 == 0o664


class TestInProcessExecutor(ExecutorContract):
    @staticmethod
    def make():
        return InProcessExecutor()


class TestWorkerProcessExecutor(ExecutorContract):
    @staticmethod
    def make():
        return WorkerProcessExecutor(2, limits=Limits(seconds=20))

    def test_worker_outlives_its_trials(self, executor):
        def pid(trial):
            return Outcome(status=TrialStatus.SUCCESS, loss=float(os.getpid()))

        pids = {executor.submit(pid, trial(i)).result(timeout=60).loss for i in range(6)}
        assert len(pids) <= 2
        assert os.getpid() not in pids

    def test_threads_are_cores_over_workers_and_wait_passively(self, executor):
        def environment(trial):
            assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
            return Outcome(status=TrialStatus.SUCCESS, loss=float(os.environ["OMP_NUM_THREADS"]))

        assert executor.submit(environment, trial(0)).result(timeout=60).loss == threads_per_worker(2)

    def test_noise_of_a_trial_never_reaches_our_descriptors(self, executor, capfd):
        assert executor.submit(talking, trial(0)).result(timeout=60).status is TrialStatus.SUCCESS
        assert capfd.readouterr() == ("", "")

    def test_memory_is_measured(self, executor):
        def greedy(trial):
            block = bytearray(300 * 2**20)
            time.sleep(0.5)
            return Outcome(status=TrialStatus.SUCCESS, loss=float(len(block)))

        assert executor.submit(greedy, trial(0)).result(timeout=60).memory_mib > 300

    def test_outcome_that_cannot_be_pickled_is_an_error(self, executor):
        def unpicklable(trial):
            return Outcome(status=TrialStatus.SUCCESS, loss=1.0, error=threading.Lock())

        assert executor.submit(unpicklable, trial(0)).result(timeout=60).status is TrialStatus.ERROR
        assert executor.submit(square, trial(1)).result(timeout=60).status is TrialStatus.SUCCESS

    def test_shutdown_is_quick_and_leaves_no_process(self, new_executor, tmp_path):
        def endless(trial):
            (tmp_path / str(os.getpid())).touch()
            time.sleep(1000)

        futures = [new_executor.submit(endless, trial(i)) for i in range(4)]
        while len(pids := [int(path.name) for path in tmp_path.iterdir()]) < 2:
            time.sleep(0.05)
        start = time.perf_counter()
        new_executor.shutdown()
        assert time.perf_counter() - start < 3
        assert not any(psutil.pid_exists(pid) for pid in pids)
        assert all(f.cancelled() or f.result().status is TrialStatus.ABORTED for f in futures)

    def test_trial_submitted_after_shutdown_is_refused(self, new_executor):
        new_executor.shutdown()
        with pytest.raises(UsageError, match="new executor"):
            new_executor.submit(square, trial(0))

    def test_workers_start_before_there_is_a_trial(self):
        before = descendants()
        executor = self.make()
        try:
            deadline = time.monotonic() + 30
            while len(descendants() - before) < 2 * executor.n_workers:  # guards and workers
                assert time.monotonic() < deadline
                time.sleep(0.01)
        finally:
            executor.shutdown()

    def test_worker_that_could_not_start_ahead_is_started_for_its_first_trial(self, monkeypatch):
        real = WorkerProcess.is_ready
        failures = [ChildProcessError("the worker ended while it started")]

        def is_ready(self, seconds):
            if failures:
                raise failures.pop()
            return real(self, seconds)

        monkeypatch.setattr(WorkerProcess, "is_ready", is_ready)
        executor = WorkerProcessExecutor(1)
        try:
            assert executor.submit(square, trial(0)).result(timeout=60).status is TrialStatus.SUCCESS
        finally:
            executor.shutdown()

    def test_shutdown_does_not_wait_for_workers_that_start(self, no_fork_servers):
        before = descendants(with_servers=True)
        executor = self.make()
        future = executor.submit(square, trial(0))
        while not (servers := descendants(with_servers=True) - before):
            time.sleep(0.001)
        start = time.perf_counter()
        executor.shutdown()
        assert time.perf_counter() - start < 3
        deadline = time.monotonic() + 30
        # Workers that were asked for start, find nothing to do and end.
        while descendants(with_servers=True) - before != servers:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert future.cancelled() or future.result().status in (TrialStatus.ABORTED, TrialStatus.SUCCESS)

    def test_interrupt_of_the_terminal_never_reaches_a_worker_even_while_it_starts(self, no_fork_servers):
        before = descendants(with_servers=True)
        executor = self.make()
        try:
            future = executor.submit(square, trial(0))
            while not (started := descendants(with_servers=True) - before):
                time.sleep(0.001)
            for pid in started:
                while psutil.Process(pid).cmdline() == psutil.Process().cmdline():
                    time.sleep(0.001)  # a fork of this process, which is about to execute another program
                # Out of our process group long before Python runs in it.
                assert os.getpgid(pid) != os.getpgid(0)
            assert future.result(timeout=60).status is TrialStatus.SUCCESS
            assert not {os.getpgid(pid) for pid in descendants(with_servers=True) - before} & {os.getpgid(0)}
        finally:
            executor.shutdown()

    def test_worker_killed_while_it_sends_its_result_does_not_hang_the_shutdown(self):
        def huge(trial):
            return Outcome(status=TrialStatus.SUCCESS, loss=1.0, model=bytes(800 * 2**20))

        for delay in (0.3, 0.5, 0.7):
            executor = WorkerProcessExecutor(1)
            assert executor.submit(square, trial(0)).result(timeout=60).loss == 0.25
            executor.submit(huge, trial(1))
            time.sleep(delay)
            start = time.perf_counter()
            executor.shutdown()
            assert time.perf_counter() - start < 8


def test_paths_in_the_module_search_path_do_not_matter(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)  # a text
    sys.path.insert(0, tmp_path)  # Python ignores it
    executor = WorkerProcessExecutor(1)
    try:
        assert executor.submit(square, trial(0)).result(timeout=60).status is TrialStatus.SUCCESS
    finally:
        executor.shutdown()


def kill_new_server(known):
    """Wait for a new child of this process, kill it at once, and return the numbers of all it is known to have had."""
    while not (new := {child.pid for child in psutil.Process().children()} - known):
        time.sleep(0.001)
    for pid in new:
        os.kill(pid, signal.SIGKILL)
    return known | new


@pytest.mark.long
def test_worker_killed_while_it_starts_is_no_bug_of_the_executor(no_fork_servers):
    known = {child.pid for child in psutil.Process().children()}
    executor = WorkerProcessExecutor(1)
    try:
        known = kill_new_server(known)  # of the worker started ahead, which the first trial replaces
        future = executor.submit(square, trial(0))
        kill_new_server(known)
        error = future.result(timeout=60).error
        assert error.kind is CauseKind.WORKER_NOT_READY
        assert "ended while it started" in str(error)
        assert executor.submit(square, trial(1)).result(timeout=60).status is TrialStatus.SUCCESS
    finally:
        executor.shutdown()


def test_worker_killed_while_it_waits_fails_one_trial_with_a_cause():
    def pid(trial):
        return Outcome(status=TrialStatus.SUCCESS, loss=float(os.getpid()))

    executor = WorkerProcessExecutor(1)
    try:
        worker = int(executor.submit(pid, trial(0)).result(timeout=60).loss)
        os.kill(worker, signal.SIGKILL)
        psutil.wait_procs([psutil.Process(worker)] if psutil.pid_exists(worker) else [], timeout=10)
        error = executor.submit(square, trial(1)).result(timeout=60).error
        assert error.kind in (CauseKind.WORKER_DIED, CauseKind.WORKER_NOT_READY)
        assert executor.submit(square, trial(2)).result(timeout=60).status is TrialStatus.SUCCESS
    finally:
        executor.shutdown()


def quarter(trial):
    return Outcome(status=TrialStatus.SUCCESS, loss=0.25, predictions=np.ones(3, dtype=np.float32))


def sleep(trial):
    time.sleep(60)


def grow(trial):
    blocks = []
    while True:
        blocks.append(bytearray(20 * 2**20))
        time.sleep(0.02)


def die(trial):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("then", "kind"),
    [(sleep, CauseKind.TIME_LIMIT), (grow, CauseKind.MEMORY_LIMIT), (die, CauseKind.WORKER_DIED)],
)
def test_trial_that_is_stopped_has_its_last_checkpoint(then, kind):
    executor = WorkerProcessExecutor(1, limits=Limits(seconds=3 if then is sleep else 30, memory_mib=700))
    try:
        outcome = executor.submit(Checkpointing(quarter, then), trial(0)).result(timeout=60)
        assert (outcome.status, outcome.loss, outcome.cut_short.kind) == (TrialStatus.SUCCESS, 0.25, kind)
        assert outcome.predictions.tolist() == [1, 1, 1]
        assert executor.submit(square, trial(1)).result(timeout=60).status is TrialStatus.SUCCESS
    finally:
        executor.shutdown()


class SlowPipe(io.BytesIO):
    def write(self, data):
        time.sleep(0.2)
        return super().write(data)


def test_models_that_take_long_to_pack_leave_less_time_to_fit():
    sender = CheckpointSender(SlowPipe(), 100.0)
    time.sleep(0.2)
    sender.wants_checkpoint()
    sender.keep(quarter(trial(0)))  # takes as long as the trial so far, as models grow with it
    assert sender.seconds_left() <= 95 - 2 * 0.4


def test_end_of_the_search_leaves_the_last_checkpoint(tmp_path):
    def tell(trial):
        (tmp_path / "kept").touch()
        time.sleep(60)

    executor = WorkerProcessExecutor(1)
    future = executor.submit(Checkpointing(quarter, tell), trial(0))
    while not (tmp_path / "kept").exists():
        time.sleep(0.05)
    time.sleep(1.0)  # so that the coordinator reads what was sent
    executor.shutdown()
    outcome = future.result(timeout=60)
    assert (outcome.loss, outcome.cut_short.kind) == (0.25, CauseKind.SEARCH_ENDED)


def test_trial_that_ends_by_itself_has_its_own_outcome():
    executor = WorkerProcessExecutor(1, limits=Limits(seconds=30))
    try:
        outcome = executor.submit(Checkpointing(quarter, lambda trial: None), trial(0)).result(timeout=60)
        assert (outcome.loss, outcome.cut_short) == (0.125, None)
    finally:
        executor.shutdown()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep their memory")
def test_freed_memory_is_returned_after_a_trial():
    def leave_holes(trial):
        blocks = [np.ones(12_000) for _ in range(5_000)]
        sys.pinned = blocks[-1]  # the C library keeps what is below it
        time.sleep(0.5)
        return Outcome(status=TrialStatus.SUCCESS, loss=0.0)

    executor = WorkerProcessExecutor(1, limits=Limits(seconds=20))
    try:
        objectives = (square, leave_holes, square)
        before, most, after = (
            executor.submit(each, trial(i)).result(timeout=60).memory_mib for i, each in enumerate(objectives)
        )
    finally:
        executor.shutdown()
    assert most > before + 300
    assert after < before + 100


@pytest.fixture(scope="module")
def one_worker():
    executor = WorkerProcessExecutor(1, limits=Limits(seconds=4, memory_mib=700))
    yield executor
    executor.shutdown()


def out_of_memory(trial):
    raise MemoryError


def fail(trial):
    raise ValueError("diverged")


def no_number(trial):
    return Outcome(status=TrialStatus.SUCCESS, loss=float("nan"))


def leave(trial):
    raise SystemExit(3)


def out_of_time(trial):
    return Outcome(status=TrialStatus.TIMEOUT)


@pytest.mark.parametrize(("then", "kind"), [(out_of_memory, CauseKind.MEMORY_LIMIT), (out_of_time, CauseKind.OTHER)])
def test_lack_of_memory_or_time_leaves_the_last_checkpoint(one_worker, then, kind):
    outcome = one_worker.submit(Checkpointing(quarter, then), trial(0)).result(timeout=60)
    assert (outcome.status, outcome.loss, outcome.cut_short.kind) == (TrialStatus.SUCCESS, 0.25, kind)
    assert outcome.duration_seconds > 0


@pytest.mark.parametrize("then", [fail, leave])
def test_trial_that_fails_by_itself_has_failed_despite_its_checkpoints(one_worker, then):
    outcome = one_worker.submit(Checkpointing(quarter, then), trial(0)).result(timeout=60)
    assert (outcome.status, outcome.loss, outcome.cut_short) == (TrialStatus.ERROR, None, None)


def test_checkpoint_that_cannot_be_used_fails_the_trial(one_worker):
    outcome = one_worker.submit(Checkpointing(no_number, die), trial(0)).result(timeout=60)
    assert (outcome.status, outcome.error.kind) == (TrialStatus.ERROR, CauseKind.NOT_FINITE)
    assert one_worker.submit(square, trial(1)).result(timeout=60).loss == 0.25


class HandingOverForEver:
    """Leave a thread or a forked child that continues to send checkpoints after the trial."""

    def __init__(self, *, forks):
        self._forks = forks

    def __call__(self, trial):
        raise AssertionError("a worker supervises")

    def has_checkpoints(self, configuration):
        return True

    def run(self, trial, supervisor):
        def hand_over():
            while True:
                supervisor.keep(quarter(trial))
                time.sleep(0.01)

        if not self._forks:
            threading.Thread(target=hand_over, daemon=True).start()
        elif (child := os.fork()) == 0:
            supervisor.keep(quarter(trial))
            return quarter(trial)
        else:
            os.waitpid(child, 0)  # it returns as a worker would
        return square(trial)


@pytest.mark.long
@pytest.mark.parametrize("forks", [False, True])
def test_no_checkpoint_is_sent_during_the_next_trial(one_worker, forks):
    outcome = one_worker.submit(HandingOverForEver(forks=forks), trial(0, 0.1)).result(timeout=60)
    assert (outcome.loss, outcome.cut_short) == (pytest.approx(0.01), None)
    outcome = one_worker.submit(sleep, trial(1)).result(timeout=60)
    assert (outcome.status, outcome.error.kind) == (TrialStatus.TIMEOUT, CauseKind.TIME_LIMIT)


def test_messages_longer_than_allowed_are_not_read():
    stream = io.BytesIO()
    write_message(stream, b"twelve bytes")
    for longest, expected in ((12, b"twelve bytes"), (float("inf"), b"twelve bytes")):
        stream.seek(0)
        assert read_message(stream, longest=longest) == expected
    stream.seek(0)
    with pytest.raises(OverflowError, match="0 MiB at most"):
        read_message(stream, longest=11)
    assert read_message(io.BytesIO(stream.getvalue()[:-1])) is None
