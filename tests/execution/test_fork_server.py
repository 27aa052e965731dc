"""The fork server: workers are as if each had been started anew, and nothing outlives the coordinator."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from processes import wait_until

from cashmere.base.cores import available_cores
from cashmere.execution import fork_server
from cashmere.execution.calls import CallPool
from cashmere.execution.fork_server import expect_workers, worker_environment
from cashmere.execution.guard import GUARDED
from cashmere.execution.worker_processes import WorkerProcessExecutor

pytestmark = pytest.mark.skipif(not GUARDED, reason="workers are forked on Linux")


@pytest.fixture
def called():
    """Call functions in new workers."""
    executors = []

    def call(function, *arguments, n_workers=1):
        executors.append(WorkerProcessExecutor(n_workers, n_threads=1))
        return CallPool(executors[-1]).submit(function, *arguments).result(timeout=60)

    yield call
    for executor in executors:
        executor.shutdown()


def test_server_has_one_thread_when_it_forks(called):
    server = psutil.Process(called(os.getpid)).parent().parent()
    names = [path.read_text().strip() for path in Path(f"/proc/{server.pid}/task").glob("*/comm")]
    assert len([name for name in names if name != "jemalloc_bg_thd"]) == 1  # that one, of Arrow, is made for forks


def test_worker_has_the_present_variables_folder_and_search_path(called, monkeypatch, tmp_path):
    called(os.getpid)  # the server runs
    (tmp_path / "module_of_a_user.py").write_text("VALUE = 7")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("OF_A_USER", "later")

    def present():
        import module_of_a_user

        return os.environ["OF_A_USER"], os.environ["OMP_NUM_THREADS"], str(Path.cwd()), module_of_a_user.VALUE

    assert called(present) == ("later", "1", str(tmp_path), 7)
    monkeypatch.delenv("OF_A_USER")
    assert called(lambda: "OF_A_USER" in os.environ) is False


def test_workers_draw_different_random_numbers(called):
    def draw():
        return random.random(), np.random.random()  # noqa: NPY002

    first, second = called(draw), called(draw)
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_workers_handle_signals_as_any_process(called):
    def handlers():
        return [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1)]

    assert called(handlers) == [signal.SIG_DFL] * 3
    assert called(lambda: subprocess.run([sys.executable, "-c", "exit(3)"]).returncode) == 3


def test_one_server_serves_all_executors_with_as_many_threads(no_fork_servers, called):
    expect_workers(available_cores())
    expect_workers(available_cores())
    assert {called(os.getpid) for _ in range(3)}
    assert set(no_fork_servers) == {frozenset(worker_environment(1).items())}


@pytest.mark.long
def test_server_that_was_killed_is_replaced(no_fork_servers, called):
    called(os.getpid)
    (server,) = no_fork_servers.values()
    os.kill(server._process.pid, signal.SIGKILL)
    server._process.wait()
    assert called(os.getpid) != os.getpid()


def test_cpu_time_of_workers_counts_as_that_of_the_server(no_fork_servers, called):
    def compute():
        begin = time.process_time()
        while time.process_time() < begin + 0.5:
            pass

    executor = WorkerProcessExecutor(1, n_threads=1)
    CallPool(executor).submit(compute).result(timeout=60)
    executor.shutdown()
    (server,) = no_fork_servers.values()
    of_server = psutil.Process(server._process.pid)
    wait_until(lambda: not of_server.children())
    times = of_server.cpu_times()
    assert times.children_user + times.children_system >= 0.5


@pytest.mark.long
def test_server_ends_when_it_is_idle():
    program = f"""
from cashmere.execution import inside_fork_server
inside_fork_server._IDLE_SECONDS = 0.2
inside_fork_server.serve_forks({os.getpid()})
"""
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen([sys.executable, "-c", program], stdin=theirs.fileno()) as server:
        assert server.wait(timeout=60) == 0


def test_worker_starts_in_a_folder_that_was_removed(called, monkeypatch, tmp_path):
    (tmp_path / "removed").mkdir()
    monkeypatch.chdir(tmp_path / "removed")
    (tmp_path / "removed").rmdir()
    assert called(os.getpid) != os.getpid()


_COORDINATOR = """
import os, time
from cashmere.execution.calls import CallPool
from cashmere.execution.worker_processes import WorkerProcessExecutor
executor = WorkerProcessExecutor(1, n_threads=1)
pool = CallPool(executor)
print(pool.submit(os.getpid).result(timeout=60), flush=True)
pool.submit(time.sleep, 100)
time.sleep(100 if {waits} else 0.2)
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_killed", [True, False])
def test_server_and_workers_end_with_the_coordinator(is_killed):
    program = _COORDINATOR.format(waits=is_killed)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as coordinator:
        worker = psutil.Process(int(coordinator.stdout.readline()))
        processes = [worker, worker.parent(), worker.parent().parent()]
        assert processes[-1].ppid() == coordinator.pid
        if is_killed:
            coordinator.kill()
    assert psutil.wait_procs(processes, timeout=10)[1] == []


def test_fork_of_the_coordinator_starts_a_server_of_its_own(called):
    called(os.getpid)
    child = os.fork()
    if child == 0:
        os._exit(bool(fork_server._servers))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert fork_server._servers
