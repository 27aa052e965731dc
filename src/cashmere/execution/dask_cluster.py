"""The Dask cluster that trials run on: one that the user has, or one in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from cashmere.exceptions import ClusterError, InvalidParameterError, MissingDependencyError
from cashmere.execution.cluster import Cluster
from cashmere.execution.dask_executor import DaskExecutor
from cashmere.execution.limits import MIB, Limits
from cashmere.execution.worker_versions import check_versions, version_probe
from cashmere.protocols import Executor

if TYPE_CHECKING:
    import distributed

_CONNECT_SECONDS = 10.0
"""How long a scheduler may take to answer, at first and after it was lost."""

_FIRST_WORKER_SECONDS = 60.0
"""How long to wait for a worker if the budget leaves that much; at least one second."""

_STATUS_PAGES = "127.0.0.1:0"


@dataclass(frozen=True, slots=True, kw_only=True)
class DaskCluster(Cluster):
    """A Dask cluster with workers that can run trials.

    Attributes
    ----------
    client : distributed.Client
        Connected.
    """

    client: distributed.Client

    def executor(self, n_workers: int, *, limits: Limits, log_folder: Path | None = None) -> Executor:
        """Return a `DaskExecutor`."""
        return DaskExecutor(self.client, n_workers, limits=limits, log_folder=log_folder)


class _Description(TypedDict):
    """What a Dask worker says about itself."""

    versions: dict[str, str] | str
    n_threads: int
    memory_mib: float


@contextmanager
def open_dask_cluster(
    executor: object, *, n_threads: int, seconds_left: float, waiting: Callable[[str], AbstractContextManager[object]]
) -> Iterator[DaskCluster]:
    """Connect to a Dask cluster for the block; see `open_cluster`."""
    try:
        import distributed
    except ImportError as error:
        raise MissingDependencyError("distributed", "A cluster", "dask") from error
    if executor == "dask":
        # One worker in this process is enough: trials run in processes of their own. Its status pages stay on this
        # machine, on any port.
        local = distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=n_threads,
            processes=False,
            dashboard_address=_STATUS_PAGES,
            worker_dashboard_address=_STATUS_PAGES,
            memory_limit=0,
        )
        with local, distributed.Client(local, set_as_default=False) as client:
            yield _checked(client, seconds_left, waiting)
    elif isinstance(executor, str) and "://" in executor:
        with _connected(executor) as client:
            yield _checked(client, seconds_left, waiting)
    elif isinstance(executor, distributed.Client) and not executor.asynchronous:
        yield _checked(executor, seconds_left, waiting)
    else:
        expected = (
            "a synchronous Dask client, the address of a Dask scheduler such as 'tcp://host:8786' or of a Ray cluster "
            "such as 'ray://host:10001', 'dask' or 'ray'"
        )
        raise InvalidParameterError("executor", executor, expected)


def _connected(address: str) -> distributed.Client:
    import distributed

    try:
        return distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except ValueError as error:  # an unknown protocol
        expected = "an address that Dask knows, such as 'tcp://host:8786'"
        raise InvalidParameterError("executor", address, expected, f"Dask says: {error}.") from error
    except OSError as error:  # TimeoutError is one
        text = (
            f"does not answer within {_CONNECT_SECONDS:.0f} s ({error}). Check the address, and that its scheduler "
            "runs and can be reached from this machine."
        )
        raise ClusterError(address, text) from error


def _checked(
    client: distributed.Client, seconds_left: float, waiting: Callable[[str], AbstractContextManager[object]]
) -> DaskCluster:
    """Ask all workers what they have; raise if one could not run our trials."""
    if client.status != "running":
        raise ClusterError(str(client), f"cannot be used: its client is {client.status}. Connect a new one.")
    address = str(client.scheduler.address)
    if not client.scheduler_info()["workers"]:
        seconds = max(1.0, min(_FIRST_WORKER_SECONDS, seconds_left))
        try:
            with waiting(address):
                client.wait_for_workers(1, timeout=seconds)
        except TimeoutError as error:
            text = f"has had no worker for {seconds:.0f} s. Start some: `dask worker {address}`."
            raise ClusterError(address, text) from error
    asked: dict[str, _Description | Exception] = client.run(_description(), on_error="return")
    # A worker that was lost meanwhile is asked again before its first trial, if it comes back.
    described = {name: found for name, found in asked.items() if not isinstance(found, OSError)}
    if not described:
        text = f"has lost all its workers ({', '.join(asked)}) while they were asked for their versions."
        raise ClusterError(address, f"{text} Start others: `dask worker {address}`.")
    check_versions(
        address, {name: found["versions"] if isinstance(found, dict) else found for name, found in described.items()}
    )
    usable = [found for found in described.values() if isinstance(found, dict)]
    return DaskCluster(client=client, workers=tuple((found["n_threads"], found["memory_mib"]) for found in usable))


def _description() -> Callable[[Any], _Description]:
    """Return a function that describes a worker. It travels by value, as the worker may not have cashmere."""
    probe = version_probe()

    def describe(dask_worker: Any) -> _Description:
        told, limit = probe(), dask_worker.memory_manager.memory_limit or 0
        if limit == 0 and isinstance(told, dict):
            from cashmere.base.memory import total_memory

            limit = total_memory() * MIB
        return {"versions": told, "n_threads": dask_worker.state.nthreads, "memory_mib": limit / MIB}

    return describe
