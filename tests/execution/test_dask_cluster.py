from __future__ import annotations

import sys
import time

import distributed
import pytest
from dask_clusters import dask_process

from cashmere.base.versions import versions
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import ClusterError, ClusterVersionError, InvalidParameterError, MissingDependencyError
from cashmere.execution import dask_cluster
from cashmere.execution.dask_cluster import DaskCluster
from cashmere.execution.engines import open_cluster
from cashmere.execution.worker_versions import other_versions, why_refused
from cashmere.records.budget import Budget
from cashmere.run import RunSettings, fit_run
from cashmere.run.progress import PlainLines

OTHER_VERSION = """
from cashmere.base import versions
found = {**versions.versions(), "cashmere-automl": "0.0.1"}
versions.versions = lambda: found
"""


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=3, processes=True, memory_limit="3GiB", dashboard_address="127.0.0.1:0"
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


def open_and_close(executor):
    with open_cluster(executor, n_threads=1):
        pass


@pytest.mark.long
def test_threads_and_memory_of_the_workers_are_known(client):
    with open_cluster(client, n_threads=1) as opened:
        assert opened.client is client
        ((n_threads, memory),) = opened.workers
        assert (n_threads, round(memory)) == (3, 3072)


def test_client_of_the_user_stays_open(client):
    open_and_close(client)
    assert client.status == "running"
    assert client.submit(sum, [1, 2]).result(timeout=30) == 3


def test_address_is_connected_and_left(client):
    with open_cluster(client.scheduler.address, n_threads=1) as opened:
        assert opened.client is not client
        ours = opened.client
    assert (ours.status, client.status) == ("closed", "running")


def test_cluster_in_this_process_ends_with_the_block():
    with open_cluster("dask", n_threads=2) as opened:
        ours = opened.client
        assert opened.workers[0][0] == 2
    assert ours.status == "closed"


def test_without_an_executor_there_is_no_cluster():
    with open_cluster(None, n_threads=1) as opened:
        assert opened is None


def test_trials_fit_into_threads_and_memory():
    opened = DaskCluster(client=None, workers=((4, 8192.0), (2, 1000.0)))
    assert opened.memory_mib == 500
    assert opened.n_trials(1000) == 4 + 1
    assert opened.n_trials(4096) == 2 + 1


@pytest.mark.parametrize("executor", ["tcp", 3, object()])
def test_anything_but_a_cluster_is_refused(executor):
    with pytest.raises(InvalidParameterError, match=r"executor must be a synchronous Dask client, the address"):
        open_and_close(executor)


def test_missing_dask_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"cashmere-automl\[dask\]"):
        open_and_close("dask")


def test_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(dask_cluster, "_CONNECT_SECONDS", 1.0)
    with pytest.raises(ClusterError, match=r"at tcp://127\.0\.0\.1:9 does not answer within 1 s .*Check the address"):
        open_and_close("tcp://127.0.0.1:9")


def test_closed_client_is_refused(client):
    with distributed.Client(client.scheduler.address, set_as_default=False) as closed:
        pass
    with pytest.raises(ClusterError, match="its client is closed"):
        open_and_close(closed)


def test_cluster_without_workers_is_refused(monkeypatch):
    monkeypatch.setattr(dask_cluster, "_FIRST_WORKER_SECONDS", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as empty,
        distributed.Client(empty, set_as_default=False) as client,
        pytest.raises(ClusterError, match="has had no worker"),
    ):
        open_and_close(client)


def test_run_waits_for_a_first_worker_no_longer_than_its_budget_and_says_so(tmp_path, capsys):
    frame = demo_table()
    y = frame.pop(DEMO_TARGET)
    settings = RunSettings(target_name=DEMO_TARGET, budget=Budget(seconds=1.5))
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as empty,
        distributed.Client(empty, set_as_default=False) as client,
    ):
        begin = time.monotonic()
        with pytest.raises(ClusterError, match="has had no worker for"):
            fit_run(tmp_path / "run", frame, y, settings, executor=client, progress=PlainLines)
        assert time.monotonic() - begin < 20
        address = client.scheduler.address
        assert capsys.readouterr().out == f"waiting for a worker of the cluster at {address}: no finished trials\n"
        with pytest.raises(ClusterError, match="has had no worker for"):
            fit_run(tmp_path / "run", frame, y, settings, executor=client)
    assert capsys.readouterr().out == ""


@pytest.mark.long
@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (OTHER_VERSION, r"has cashmere-automl 0\.0\.1 \(here "),
        ("import sys; sys.modules['cashmere'] = None", "cannot import cashmere"),
    ],
)
def test_worker_of_another_version_is_refused_and_named(client, tmp_path, before, reason):
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path))
    with dask_process("worker", client.scheduler.address, *options, before=before):
        client.wait_for_workers(2, timeout=60)
        with pytest.raises(ClusterVersionError, match=f"has 1 of 2 workers that cannot run trials: tcp://.*{reason}"):
            open_and_close(client)


DIES_WHEN_ASKED = """
import os
from importlib import metadata
found = metadata.version
metadata.version = lambda name: os._exit(1) if name == "cashmere-automl" else found(name)
"""


def test_worker_lost_while_it_is_asked_is_left_out(client, tmp_path):
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path))
    with dask_process("worker", client.scheduler.address, *options, before=DIES_WHEN_ASKED):
        client.wait_for_workers(2, timeout=60)
        with open_cluster(client, n_threads=1) as opened:
            assert [n_threads for n_threads, _ in opened.workers] == [3]


def test_package_that_a_worker_lacks_is_named_and_other_versions_are_warned_of():
    theirs = {name: version for name, version in versions().items() if name != "lightgbm"}
    assert why_refused(theirs).startswith("lacks lightgbm (here ")
    assert why_refused({**versions(), "python": "3.0.1"}).startswith("has python 3.0.1 (here ")
    assert other_versions({**versions(), "numpy": "1.0"})[0].startswith("numpy 1.0 (here ")
