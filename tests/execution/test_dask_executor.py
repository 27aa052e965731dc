from __future__ import annotations

import os
from pathlib import Path

import pytest
from dask_clusters import two_workers

from cashmere.exceptions import ClusterError
from cashmere.execution.dask_executor import DaskExecutor
from cashmere.records.trial import Outcome, TrialStatus
from contracts.cluster_executor_contract import ClusterExecutorContract, wait_until
from contracts.executor_contract import square, trial


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


def folders_of_sites(client):
    """Return the remains of executors in the local directories of the workers."""
    found = client.run(lambda dask_worker: [str(path) for path in Path(dask_worker.local_directory).glob("cashmere-*")])
    return [path for paths in found.values() for path in paths]


class TestDaskExecutor(ClusterExecutorContract):
    most_copies = 2  # one for each Dask worker

    @pytest.fixture(scope="class")
    @classmethod
    def make_on_cluster(cls, client):
        yield lambda limits: DaskExecutor(client, 2, limits=limits)
        assert client.status == "running"
        assert not client.futures

    def test_trials_run_in_few_processes_beside_the_dask_workers(self, executor, client):
        def pid(trial):
            return Outcome(status=TrialStatus.SUCCESS, loss=float(os.getpid()))

        pids = {executor.submit(pid, trial(i)).result(timeout=60).loss for i in range(6)}
        assert len(pids) <= 2
        assert not pids & set(client.run(os.getpid).values())


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
