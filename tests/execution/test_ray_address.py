"""A command on a Ray cluster, given by the address of its client server; `make test-ray` runs this."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from pages_of_clusters import write_table
from ray_clusters import ENVIRONMENT

from cashmere.records.budget import Budget
from cashmere.run import RunSettings, fit_run
from cashmere.storage.store import RunStore

pytest.importorskip("ray", reason="Ray is not installed: make test-ray")
pytestmark = pytest.mark.slow

SECURED = {**os.environ, **ENVIRONMENT, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
"""The cluster requires a token, as if Ray had left one in the home directory."""


@contextlib.contextmanager
def ray_head():
    """Start the head of a cluster with two cores; return the address of its client server."""
    with contextlib.closing(socket.socket()) as first, contextlib.closing(socket.socket()) as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        port, client_port = first.getsockname()[1], second.getsockname()[1]
    options = ["--port", str(port), "--ray-client-server-port", str(client_port), "--num-cpus", "2"]
    command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--include-dashboard=false"]
    quiet = subprocess.DEVNULL
    head = subprocess.Popen(
        [*command, *options],
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
        env=SECURED,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 60
        while not _answers(client_port):
            assert time.monotonic() < end and head.poll() is None
            time.sleep(0.5)
        yield f"ray://127.0.0.1:{client_port}"
    finally:
        os.killpg(head.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            head.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(head.pid, signal.SIGKILL)
        head.wait()


def _answers(port):
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def test_command_runs_on_the_cluster_and_has_the_digest_of_one_machine(tmp_path):
    write_table(tmp_path / "train.csv")
    frame = pd.read_csv(tmp_path / "train.csv")
    settings = RunSettings(budget=Budget(trials=3), resampling="holdout", target_name="income", n_workers=1)
    local = fit_run(tmp_path / "local", frame.drop(columns="income"), frame["income"], settings, load=False)
    with ray_head() as address:
        options = (
            f"--target income --budget 3trials --resampling holdout --out {tmp_path / 'run'} --scheduler {address}"
        )
        command = [sys.executable, "-m", "cashmere", "fit", str(tmp_path / "train.csv"), *options.split()]
        finished = subprocess.run(command, cwd=tmp_path, env=SECURED, capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    with RunStore(tmp_path / "run", read_only=True) as store:
        assert store.facts().digest == local.facts.digest
