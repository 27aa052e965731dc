"""The Dask cluster that trials run on: one that the user has, or one on this machine."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cashmere.base.versions import versions
from cashmere.exceptions import (
    ClusterError,
    ClusterVersionError,
    InvalidParameterError,
    MissingDependencyError,
    VersionWarning,
)

if TYPE_CHECKING:
    import distributed

    from cashmere.execution.inside_dask_worker import WorkerDescription

_CONNECT_SECONDS = 10.0
"""How long a scheduler may take to answer, and how long it may be away once it has."""

_FIRST_WORKER_SECONDS = 60.0

_SHOWN_WORKERS = 3

_STATUS_PAGES = "127.0.0.1:0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Dask cluster with workers that can run trials.

    Attributes
    ----------
    client : distributed.Client
        Connected.
    workers : tuple of (int, float)
        Threads and memory (MiB) of each worker, when it was asked.
    """

    client: distributed.Client
    workers: tuple[tuple[int, float], ...]

    @property
    def memory_mib(self) -> float:
        """Least memory for each thread of a worker."""
        return min(memory / n_threads for n_threads, memory in self.workers)

    def n_trials(self, memory_mib: float) -> int:
        """Return how many trials that take so much memory the workers have threads and memory for, at least 1 each."""
        return sum(min(n_threads, max(1, int(memory // memory_mib))) for n_threads, memory in self.workers)


@contextmanager
def open_cluster(executor: object, *, n_threads: int) -> Iterator[Cluster | None]:
    """Connect to a cluster for the block; what was made for it ends with it, a client of the user goes on.

    Parameters
    ----------
    executor : distributed.Client, str or None
        A client; the address of a scheduler; ``"dask"`` for a cluster in this process; None for no cluster.
    n_threads : int
        Trials at the same time for a cluster in this process.

    Raises
    ------
    InvalidParameterError
        If `executor` is something else.
    MissingDependencyError
        If Dask is not installed.
    ClusterError
        If the scheduler does not answer or has no workers.
    ClusterVersionError
        If a worker has other versions than this process.
    """
    if executor is None:
        yield None
        return
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
            yield _checked(client)
    elif isinstance(executor, str) and "://" in executor:
        with _connected(executor) as client:
            yield _checked(client)
    elif isinstance(executor, distributed.Client) and not executor.asynchronous:
        yield _checked(executor)
    else:
        expected = "a synchronous Dask client, the address of a scheduler such as 'tcp://host:8786', or 'dask'"
        raise InvalidParameterError("executor", executor, expected)


def _connected(address: str) -> distributed.Client:
    import distributed

    try:
        return distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError; an unknown protocol a ValueError
        text = (
            f"does not answer within {_CONNECT_SECONDS:.0f} s ({error}). Check the address, and that its scheduler "
            "runs and can be reached from this machine."
        )
        raise ClusterError(address, text) from error


def _checked(client: distributed.Client) -> Cluster:
    """Ask all workers for what they have; refuse those that could not run our trials."""
    if client.status != "running":
        raise ClusterError(str(client), f"cannot be used: its client is {client.status}. Connect a new one.")
    address = str(client.scheduler.address)
    try:
        client.wait_for_workers(1, timeout=_FIRST_WORKER_SECONDS)
    except TimeoutError as error:
        text = f"has had no worker for {_FIRST_WORKER_SECONDS:.0f} s. Start some: `dask worker {address}`."
        raise ClusterError(address, text) from error
    described: dict[str, WorkerDescription | str | Exception] = client.run(_description(), on_error="return")
    refused = {worker: reason for worker, found in described.items() if (reason := _why_refused(found)) is not None}
    if refused:
        shown = "; ".join(f"{worker} {reason}" for worker, reason in list(refused.items())[:_SHOWN_WORKERS])
        text = f"has {len(refused)} of {len(described)} workers that cannot run trials: {shown}. "
        raise ClusterVersionError(address, text + "Install the same packages on all machines.")
    usable = [found for found in described.values() if isinstance(found, dict)]
    if differing := sorted({line for found in usable for line in _other_versions(found["versions"])}):
        text = f"On workers of the cluster: {', '.join(differing)}. Losses may differ from those of one machine."
        warnings.warn(VersionWarning(text), stacklevel=2)
    return Cluster(client=client, workers=tuple((found["n_threads"], found["memory_mib"]) for found in usable))


def _description() -> Callable[[Any], WorkerDescription | str]:
    """Return a function that describes a worker. It travels by value: there may be no cashmere on the worker."""

    def describe(dask_worker: Any) -> WorkerDescription | str:
        try:
            from cashmere.execution.inside_dask_worker import describe_worker
        except ImportError as error:
            return f"cannot import cashmere ({error})"
        return describe_worker(dask_worker)

    return describe


def _why_refused(found: WorkerDescription | str | Exception) -> str | None:
    """Return why a worker cannot run our trials: it lacks a package, or has another version of Python or cashmere."""
    if not isinstance(found, dict):
        return str(found) if isinstance(found, str) else f"does not answer ({type(found).__name__}: {found})"
    ours, theirs = versions(), found["versions"]
    for name, version in ours.items():
        if name not in theirs:
            return f"lacks {name} (here {version})"
    for name in ("cashmere-automl", "python"):
        if _compared(name, theirs[name]) != _compared(name, ours[name]):
            return f"has {name} {theirs[name]} (here {ours[name]})"
    return None


def _other_versions(theirs: Mapping[str, str]) -> list[str]:
    return [
        f"{name} {theirs[name]} (here {version})" for name, version in versions().items() if theirs[name] != version
    ]


def _compared(name: str, version: str) -> str:
    """Return the part of a version that has to be the same: two numbers of Python's, all of cashmere's."""
    return ".".join(version.split(".")[:2]) if name == "python" else version
