"""Ray clusters on this machine, for tests."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Nothing is sent home, and machines have the address of loopback, as on other systems."""

os.environ |= ENVIRONMENT  # before Ray is imported


@contextlib.contextmanager
def local_ray(n_cores: int) -> Iterator[None]:
    """Connect this process to a Ray cluster of its own, for the block."""
    import ray

    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # the actors import modules of the tests
    options = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    ray.init(address="local", num_cpus=n_cores, **options)
    try:
        yield
    finally:
        ray.shutdown()
