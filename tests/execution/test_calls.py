"""Functions on executors: on this machine, and on a real Dask cluster."""

from __future__ import annotations

import os
import threading
from concurrent.futures import CancelledError

import pytest
from dask_clusters import two_workers

from cashmere.exceptions import CallError
from cashmere.execution.calls import CallPool
from cashmere.execution.engines import open_cluster
from cashmere.execution.pools import worker_pool
from cashmere.execution.worker_processes import WorkerProcessExecutor


class LockedError(Exception):
    """An error that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("locked")
        self.lock = threading.Lock()


def fail(kind):
    raise kind()


@pytest.fixture(scope="module")
def pool():
    executor = WorkerProcessExecutor(1, n_threads=1)
    yield CallPool(executor)
    executor.shutdown()


@pytest.mark.long
def test_values_and_errors_come_back(pool):
    assert pool.submit(divmod, 17, 5).result(60) == (3, 2)
    assert pool.submit(os.getpid).result(60) != os.getpid()
    with pytest.raises(ZeroDivisionError) as caught:
        pool.submit(divmod, 1, 0).result(60)
    assert "Traceback" in caught.value.__notes__[0]


def test_call_that_ends_its_process_is_an_error_and_does_not_harm_others(pool):
    with pytest.raises(CallError, match="ended without a value"):
        pool.submit(os._exit, 1).result(60)
    assert pool.submit(len, "abc").result(60) == 3


def test_error_that_cannot_be_pickled_comes_back_as_its_traceback(pool):
    with pytest.raises(CallError, match="LockedError: locked"):
        pool.submit(fail, LockedError).result(60)


def test_call_that_was_stopped_is_cancelled():
    executor = WorkerProcessExecutor(1, n_threads=1)
    running = CallPool(executor).submit(_wait)
    executor.shutdown()
    with pytest.raises(CancelledError):
        running.result(60)


def _wait():
    threading.Event().wait(600)


@pytest.mark.long
def test_pool_of_a_cluster_calls_on_its_workers():
    with two_workers() as client, open_cluster(client, n_threads=1) as cluster:
        with worker_pool(2, cluster=cluster) as pool:
            values = [pool.submit(pow, 2, n) for n in range(6)]
            assert [value.result(60) for value in values] == [2**n for n in range(6)]
            with pytest.raises(ZeroDivisionError):
                pool.submit(divmod, 1, 0).result(60)
        with pytest.raises(KeyError), worker_pool(1, cluster=cluster) as pool:
            stopped = pool.submit(_wait)
            raise KeyError
        with pytest.raises(CancelledError):
            stopped.result(60)
        assert client.status == "running"
