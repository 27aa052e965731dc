"""A worker without LightGBM, which finds neither the package nor its version."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import distributed
import pytest
from dask_clusters import dask_process
from processes import running, wait_until

from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import ClusterVersionError, ClusterWarning
from cashmere.records.budget import Budget
from cashmere.run import RunSettings, StopReason, fit_run

TABLE = demo_table().sample(150, random_state=1)
X, Y = TABLE.drop(columns=DEMO_TARGET), TABLE[DEMO_TARGET]

WITHOUT_LIGHTGBM = """
import importlib.abc
import importlib.metadata
import sys


class Lacking(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "lightgbm":
            raise ModuleNotFoundError("No module named 'lightgbm'", name=name)


def version(name, found=importlib.metadata.version):
    if name == "lightgbm":
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)


sys.meta_path.insert(0, Lacking())
importlib.metadata.version = version
"""


@contextlib.contextmanager
def lacking_worker(address: str, folder: Path) -> Iterator[None]:
    """Start a worker whose Python, like that of the processes that it starts, has no LightGBM."""
    (folder / "sitecustomize.py").write_text(WITHOUT_LIGHTGBM)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    program = "from distributed.cli.dask_worker import main; main()"
    options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder)]
    with running(
        [sys.executable, "-c", program, address, *options],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ):
        yield


@pytest.fixture
def address(tmp_path):
    """Start a scheduler without workers; return its address."""
    file = tmp_path / "scheduler.json"
    options = ("--scheduler-file", str(file), "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
    with dask_process("scheduler", *options) as scheduler:
        wait_until(file.exists, by=scheduler)
        with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
            yield client.scheduler.address


@pytest.mark.long
def test_worker_without_lightgbm_is_refused(address, tmp_path):
    settings = RunSettings(budget=Budget(trials=1), target_name=DEMO_TARGET)
    with (
        lacking_worker(address, tmp_path),
        pytest.raises(ClusterVersionError, match=r"cannot run trials: tcp://.* lacks lightgbm \(here .*Install"),
    ):
        fit_run(tmp_path / "run", X, Y, settings, executor=address)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_worker_without_lightgbm_that_joins_late_ends_the_search_with_a_model(address, tmp_path):
    settings = RunSettings(budget=Budget(trials=40), n_workers=2, resampling="5fold", target_name=DEMO_TARGET)
    run = tmp_path / "run"
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path))
    with dask_process("worker", address, *options), contextlib.ExitStack() as stack:

        class LateWorker:
            """Shows no progress, but lets the worker join after the first trial."""

            has_joined = False

            def update(self, status) -> None:
                if not self.has_joined and len(list(run.glob("predictions/*.npy"))) > 1:
                    self.has_joined = True
                    stack.enter_context(lacking_worker(address, tmp_path))

            def close(self) -> None:
                pass

        with pytest.warns(ClusterWarning, match=r"lacks lightgbm \(here .* The model is made of what has finished"):
            finished = fit_run(run, X, Y, settings, executor=address, progress=LateWorker)
    assert finished.stop_reason is StopReason.CLUSTER
    assert finished.predictor is not None and len(finished.predictor.predict(X)) == len(X)
