"""Choose the engine that runs trials, Dask or Ray, by what the user gave."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from cashmere.execution.cluster import Cluster
from cashmere.execution.dask_cluster import open_dask_cluster
from cashmere.execution.ray_cluster import open_ray_cluster


@contextmanager
def open_cluster(
    executor: object,
    *,
    n_threads: int,
    seconds_left: float = math.inf,
    waiting: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> Iterator[Cluster | None]:
    """Connect to a cluster for the block. What was started for it ends with it; the user's own connections stay open.

    Parameters
    ----------
    executor : distributed.Client, str or None
        A Dask client; the address of a Dask scheduler; ``"dask"`` for a Dask cluster in this process; the address of a
        Ray cluster, which begins with ``ray://``; ``"ray"`` for the Ray cluster that this process is connected to or
        ``RAY_ADDRESS`` names, otherwise one on this machine; None for no cluster.
    n_threads : int
        Trials at the same time for a cluster that is made here.
    seconds_left : float
        How long a Dask cluster may be without a worker at first; never more than a minute.
    waiting : callable
        Given the address of a cluster without workers, returns a context in which a worker is waited for.

    Raises
    ------
    InvalidParameterError
        If `executor` is something else.
    MissingDependencyError
        If the engine is not installed.
    ClusterError
        If the cluster does not answer or has no workers.
    ClusterVersionError
        If a worker has other versions than this process.
    """
    if executor is None:
        yield None
    elif isinstance(executor, str) and (executor == "ray" or executor.startswith("ray://")):
        with open_ray_cluster(executor, n_threads=n_threads) as ray:
            yield ray
    else:
        with open_dask_cluster(executor, n_threads=n_threads, seconds_left=seconds_left, waiting=waiting) as dask:
            yield dask
