"""The Ray cluster that trials run on: one that the user has, or one on this machine."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cashmere.exceptions import ClusterError, MissingDependencyError
from cashmere.execution.cluster import Cluster
from cashmere.execution.limits import MIB, Limits
from cashmere.execution.ray_executor import RayExecutor
from cashmere.execution.worker_versions import check_versions, version_probe
from cashmere.protocols import Executor

if TYPE_CHECKING:
    import ray

_PROBE_SECONDS = 60.0
"""How long a machine may take to start a process and report its versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayCluster(Cluster):
    """The Ray cluster that this process is connected to; its machines are the workers.

    Attributes
    ----------
    address : str
        As the user gave it.
    """

    address: str

    def executor(self, n_workers: int, *, limits: Limits, log_folder: Path | None = None) -> Executor:
        """Return a `RayExecutor`."""
        most = max(memory for _, memory in self.workers)  # more could never be reserved
        memory = min(limits.memory_mib or 0.0, most)
        return RayExecutor(self.address, n_workers, limits=limits, log_folder=log_folder, memory_mib=memory)


@contextmanager
def open_ray_cluster(executor: str, *, n_threads: int) -> Iterator[RayCluster]:
    """Connect to a Ray cluster for the block; see `open_cluster`."""
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError("ray", "A Ray cluster", "ray") from error
    if ray.is_initialized():
        if executor != "ray":
            text = "cannot be used: this process is connected to another cluster. To use that, give 'ray'."
            raise ClusterError(executor, text)
        yield _checked(executor)
        return
    _connect(executor, n_threads)
    try:
        yield _checked(executor)
    finally:
        ray.shutdown()


def _connect(executor: str, n_threads: int) -> None:
    import ray
    from ray.exceptions import RayError

    address = os.environ.get("RAY_ADDRESS", "local") if executor == "ray" else executor
    here = {"num_cpus": n_threads, "include_dashboard": False}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an error would follow, or Ray announces changes
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **(here if address == "local" else {}))
    except (OSError, RuntimeError, ValueError, RayError) as error:  # a ConnectionError is an OSError
        text = (
            f"cannot be reached ({error}). Check the address, and that its head runs and has a client server. If it "
            "asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN here, too."
        )
        raise ClusterError(address, text) from error


def _checked(address: str) -> RayCluster:
    """Ask all machines what they have; raise if one could not run our trials."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"] and _can_run_actors(node["Resources"])]
    if not nodes:
        raise ClusterError(address, "has no machine with cores and memory. Start some: `ray start --address ADDRESS`.")
    probe = ray.remote(version_probe())
    asked = {
        node["NodeID"]: probe.options(
            num_cpus=0,
            max_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        ).remote()
        for node in nodes
    }
    check_versions(address, {node["NodeManagerAddress"]: _told(asked[node["NodeID"]]) for node in nodes})
    sizes = ((int(node["Resources"]["CPU"]), node["Resources"]["memory"] / MIB) for node in nodes)
    return RayCluster(address=address, workers=tuple(sizes))


def _can_run_actors(resources: Mapping[str, float]) -> bool:
    """Return whether a machine has what an actor reserves. Ray leaves out resources of which there are none."""
    return resources.get("CPU", 0) >= 1 and resources.get("memory", 0) > 0


def _told(asked: ray.ObjectRef[dict[str, str] | str]) -> dict[str, str] | str | Exception:
    import ray
    from ray.exceptions import RayError

    try:
        told: dict[str, str] | str = ray.get(asked, timeout=_PROBE_SECONDS)
    except RayError as error:
        unanswered: Exception = error
        return unanswered
    return told
