"""Trials when parts of a Dask cluster are lost: real processes are killed."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import dask
import distributed
import psutil
import pytest
from dask_clusters import dask_process, two_workers
from processes import coordinator_of_trial, running, wait_until

from cashmere.exceptions import ClusterError
from cashmere.execution.dask_executor import DaskExecutor
from cashmere.records.cause import CauseKind
from contracts.executor_contract import square, trial


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def executor(client, tmp_path):
    executor = DaskExecutor(client, 2, log_folder=tmp_path)
    yield executor
    executor.shutdown()


def kill_dask_worker():
    """Kill the Dask worker from a trial."""
    coordinator_of_trial().kill()
    time.sleep(60)


@pytest.mark.long
def test_killed_coordinator_leaves_no_process_of_its_trials(client, tmp_path):
    program = f"""
        import os, sys, time
        from pathlib import Path
        import distributed
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from cashmere.execution.dask_executor import DaskExecutor
        from contracts.executor_contract import trial

        def endless(trial):
            Path({str(tmp_path)!r}, str(os.getpid())).touch()
            time.sleep(1000)

        executor = DaskExecutor(distributed.Client({client.scheduler.address!r}), 2)
        for number in range(2):
            executor.submit(endless, trial(number))
        time.sleep(1000)
    """
    with running([sys.executable, "-c", textwrap.dedent(program)]) as coordinator:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2, by=coordinator)
    wait_until(lambda: not any(psutil.pid_exists(int(path.name)) for path in tmp_path.iterdir()))


@pytest.mark.long
def test_trial_whose_worker_is_killed_begins_again(executor, tmp_path):
    def kill_once(trial):
        if not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            kill_dask_worker()
        return square(trial)

    assert executor.submit(kill_once, trial(7)).result(timeout=60).loss == 0.25
    (line,) = (tmp_path / "lost_workers.log").read_text().splitlines()
    assert "trial 7 lost the worker tcp://" in line


@pytest.mark.slow
def test_lost_scheduler_ends_the_search_with_a_sentence(tmp_path):
    pids = tmp_path / "pids"
    pids.mkdir()

    def endless(trial):
        (pids / str(os.getpid())).touch()
        time.sleep(1000)

    file = tmp_path / "scheduler.json"
    options = ("--scheduler-file", str(file))
    with (
        dask_process("scheduler", *options, "--port", "0", "--host", "127.0.0.1", "--no-dashboard") as scheduler,
        dask_process("worker", *options, "--nthreads", "1", "--no-nanny", "--local-directory", str(tmp_path)),
    ):
        wait_until(file.exists)
        with distributed.Client(scheduler_file=str(file), timeout=2, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            executor = DaskExecutor(client, 1)
            future = executor.submit(endless, trial(0))
            wait_until(lambda: list(pids.iterdir()))
            scheduler.kill()
            with pytest.raises(ClusterError, match=r"was lost.* resume the run"):
                future.result(timeout=60)
            executor.shutdown()
            wait_until(lambda: not any(psutil.pid_exists(int(path.name)) for path in pids.iterdir()))


@pytest.mark.slow
def test_client_that_its_owner_closes_ends_the_search_with_a_sentence(client, tmp_path):
    def endless(trial):
        (tmp_path / str(os.getpid())).touch()
        time.sleep(1000)

    closed = distributed.Client(client.scheduler.address, set_as_default=False)
    executor = DaskExecutor(closed, 1)
    future = executor.submit(endless, trial(0))
    wait_until(lambda: list(tmp_path.iterdir()))
    closed.close()
    with pytest.raises(ClusterError, match=r"was lost.* resume the run"):
        future.result(timeout=60)
    executor.shutdown()
    wait_until(lambda: not any(psutil.pid_exists(int(path.name)) for path in tmp_path.iterdir()))


@pytest.mark.slow
def test_trial_that_ends_every_worker_fails_and_does_not_harm_others():
    with two_workers() as client:
        executor = DaskExecutor(client, 2)
        poisonous = executor.submit(lambda trial: kill_dask_worker(), trial(0))
        others = [executor.submit(square, trial(i)) for i in range(1, 5)]
        error = poisonous.result(timeout=90).error
        assert error.kind is CauseKind.WORKER_LOST
        assert str(error).count("tcp://") == 3
        assert [other.result(timeout=60).loss for other in others] == [0.25] * 4
        executor.shutdown()


@pytest.mark.slow
def test_all_workers_are_killed_and_new_ones_join(tmp_path):
    def slow(trial):
        (tmp_path / f"{trial.number}-{os.getpid()}").touch()
        time.sleep(2)
        return square(trial)

    with two_workers() as client:
        executor = DaskExecutor(client, 2)
        futures = [executor.submit(slow, trial(i)) for i in range(2)]
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        first = [int(path.name.partition("-")[2]) for path in tmp_path.iterdir()]
        for pid in client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(psutil.pid_exists(pid) for pid in first))
        assert [future.result(timeout=60).loss for future in futures] == [0.25] * 2
        executor.shutdown()


@pytest.mark.slow
def test_worker_that_hangs_is_lost_and_its_late_outcome_is_ignored(tmp_path):
    def slow(trial):
        (tmp_path / str(os.getpid())).touch()
        time.sleep(3)
        return square(trial)

    with dask.config.set({"distributed.scheduler.worker-ttl": "3s"}), two_workers() as client:
        executor = DaskExecutor(client, 2, log_folder=tmp_path)
        future = executor.submit(slow, trial(0))
        wait_until(lambda: list(tmp_path.iterdir()))
        (first,) = tmp_path.iterdir()
        worker = psutil.Process(int(first.name)).parents()[2]
        worker.suspend()
        assert future.result(timeout=60).loss == 0.25
        assert "number 1 of at most 3" in (tmp_path / "lost_workers.log").read_text()
        if worker.is_running():  # its nanny may already have replaced it
            worker.resume()
        assert [executor.submit(square, trial(i)).result(timeout=60).loss for i in range(1, 4)] == [0.25] * 3
        executor.shutdown()
        wait_until(lambda: not psutil.pid_exists(int(first.name)))


@pytest.mark.slow
def test_trials_that_dask_steals_for_another_worker_run_once(tmp_path):
    def slow(trial):
        (tmp_path / f"{trial.number}-{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(1)
        return square(trial)

    def n_stolen(dask_scheduler):
        return sum(dask_scheduler.extensions["stealing"].metrics["request_count_total"].values())

    # Dask gives all trials to the only worker; without the setting, it would keep them at the scheduler.
    with (
        dask.config.set({"distributed.scheduler.worker-saturation": "inf"}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        executor = DaskExecutor(client, 8)
        futures = [executor.submit(square, trial(0))]
        futures += [executor.submit(slow, trial(i)) for i in range(1, 8)]
        wait_until(lambda: list(tmp_path.iterdir()))
        cluster.scale(2)
        assert [future.result(timeout=60).loss for future in futures] == [0.25] * 8
        begun = [path.name.split("-") for path in tmp_path.iterdir()]
        assert sorted(number for number, *_ in begun) == list("1234567")
        assert len({pid for _, pid, _ in begun}) == 2
        assert client.run_on_scheduler(n_stolen) > 0
        executor.shutdown()
