from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import psutil
import pytest
from dask_clusters import two_workers

import cashmere.execution.dask_executor
from cashmere.exceptions import ClusterError, ClusterVersionError
from cashmere.execution.dask_executor import DaskExecutor
from cashmere.execution.limits import Limits
from cashmere.records.cause import CauseKind
from cashmere.records.trial import Outcome, TrialStatus
from contracts.executor_contract import Checkpointing, ExecutorContract, square, talking, trial


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


def wait_until(holds, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def folders_of_sites(client):
    """Return what is left of executors in the local directories of the workers."""
    found = client.run(lambda dask_worker: [str(path) for path in Path(dask_worker.local_directory).glob("cashmere-*")])
    return [path for paths in found.values() for path in paths]


class ReadingFiles:
    """An objective whose trials read a file: they return its inode, which tells copies apart."""

    def __init__(self, folder):
        self._folder = folder

    def files(self):
        return {"below/value.txt": self._folder / "below" / "value.txt"}

    def in_folder(self, folder):
        return ReadingFiles(folder)

    def __call__(self, trial):
        path = self._folder / "below" / "value.txt"
        assert path.read_text() == "content"
        return Outcome(status=TrialStatus.SUCCESS, loss=float(path.stat().st_ino))


class TestDaskExecutor(ExecutorContract):
    @pytest.fixture(scope="class")
    @classmethod
    def executor(cls, client):
        executor = DaskExecutor(client, 2, limits=Limits(seconds=20))
        yield executor
        executor.shutdown()

    @pytest.fixture
    def new_executor(self, client):
        executor = DaskExecutor(client, 2, limits=Limits(seconds=3))
        yield executor
        executor.shutdown()

    def test_trials_run_in_few_processes_beside_the_dask_workers(self, executor, client):
        def pid(trial):
            return Outcome(status=TrialStatus.SUCCESS, loss=float(os.getpid()))

        pids = {executor.submit(pid, trial(i)).result(timeout=60).loss for i in range(6)}
        assert len(pids) <= 2
        assert not pids & set(client.run(os.getpid).values())

    def test_noise_of_a_trial_reaches_nobody(self, executor, capfd):
        assert executor.submit(talking, trial(0)).result(timeout=60).status is TrialStatus.SUCCESS
        assert capfd.readouterr() == ("", "")

    def test_files_reach_each_worker_once(self, new_executor, tmp_path):
        (tmp_path / "below").mkdir()
        (tmp_path / "below" / "value.txt").write_text("content")
        objective = ReadingFiles(tmp_path)
        futures = [new_executor.submit(objective, trial(i)) for i in range(10)]
        inodes = {future.result(timeout=60).loss for future in futures}
        assert len(inodes) <= 2
        assert (tmp_path / "below" / "value.txt").stat().st_ino not in inodes

    def test_files_that_are_gone_fail_the_trial(self, new_executor, tmp_path):
        error = new_executor.submit(ReadingFiles(tmp_path), trial(0)).result(timeout=60).error
        assert "value.txt" in str(error)

    def test_objective_that_cannot_be_pickled_is_an_error(self, executor):
        lock = threading.Lock()
        outcome = executor.submit(lambda trial: lock, trial(0)).result(timeout=60)
        assert outcome.status is TrialStatus.ERROR
        assert "pickle" in str(outcome.error)

    def test_trial_at_its_time_limit_is_killed_and_has_its_last_checkpoint(self, new_executor):
        def sleep(trial):
            time.sleep(60)

        outcome = new_executor.submit(Checkpointing(square, sleep), trial(0)).result(timeout=30)
        assert (outcome.loss, outcome.cut_short.kind) == (0.25, CauseKind.TIME_LIMIT)

    def test_shutdown_leaves_nothing_and_brings_back_checkpoints(self, client, tmp_path):
        def kept(trial):
            (tmp_path / str(os.getpid())).touch()
            time.sleep(1000)

        executor = DaskExecutor(client, 2)
        futures = [executor.submit(Checkpointing(square, kept), trial(i)) for i in range(4)]
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        time.sleep(0.5)  # for the Dask workers to read the checkpoints
        executor.shutdown()
        assert not any(psutil.pid_exists(int(path.name)) for path in tmp_path.iterdir())
        outcomes = [future.result() for future in futures if not future.cancelled()]
        assert [(o.loss, o.cut_short.kind) for o in outcomes] == [(0.25, CauseKind.SEARCH_ENDED)] * 2
        assert client.status == "running"
        assert not client.futures

    def test_waiting_trial_can_be_cancelled(self, new_executor, tmp_path):
        def begin(trial):
            (tmp_path / str(trial.number)).touch()
            time.sleep(2)

        futures = [new_executor.submit(begin, trial(i)) for i in range(3)]
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        assert futures[2].cancel()
        assert not futures[0].cancel()

    def test_coordinator_of_another_version_is_refused(self, new_executor, monkeypatch):
        monkeypatch.setattr(cashmere.execution.dask_executor, "own_version", lambda: "9.9")
        with pytest.raises(ClusterVersionError, match=r"has cashmere .*, the coordinator 9\.9\. Install"):
            new_executor.submit(square, trial(0)).result(timeout=60)


def test_worker_that_cannot_store_files_is_named(client, tmp_path):
    def use(dask_worker, folder):
        before, dask_worker.local_directory = dask_worker.local_directory, folder
        return before

    before = client.run(use, folder=str(tmp_path / "gone"))
    executor = DaskExecutor(client, 1)
    try:
        with pytest.raises(ClusterError, match=r"a worker, tcp://.*, that cannot prepare for trials \(FileNotFound"):
            executor.submit(square, trial(0)).result(timeout=60)
    finally:
        executor.shutdown()
        for worker, folder in before.items():
            client.run(use, folder=folder, workers=[worker])


def test_nothing_is_left_on_the_workers(client):
    wait_until(lambda: not folders_of_sites(client))
