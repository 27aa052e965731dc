"""The commands of docs/clusters/kubernetes.md, run as processes on this machine instead of in containers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pages_of_clusters import changed, shown, write_table
from processes import running

from cashmere.storage.store import RunStore


@pytest.mark.slow
def test_commands_of_the_manifests_run_a_search_and_continue_it(tmp_path):
    write_table(tmp_path / "train.csv")
    port = str(20_000 + os.getpid() % 10_000)
    (text,) = shown("kubernetes.md", "yaml")
    text = changed(
        text,
        {
            '"8786"': f'"{port}"',
            "tcp://cashmere-scheduler:8786": f"tcp://127.0.0.1:{port}",
            "/scratch": str(tmp_path),
            "--budget, 3h": "--budget, 2trials, --resampling, holdout",
            '--workers, "64"': '--workers, "2"',
            '--nthreads, "16"': '--nthreads, "2"',
        },
    )
    service, *pods = yaml.safe_load_all(text)
    scheduler, workers, job = (each["spec"]["template"]["spec"]["containers"][0] for each in pods)
    assert service["spec"]["ports"] == [{"port": 8786}]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with contextlib.ExitStack() as stack:
        for args in ([*scheduler["args"], "--host", "127.0.0.1"], workers["args"]):
            process = stack.enter_context(running(args, env=environment, cwd=tmp_path, **quiet))
            stack.callback(process.wait, 20)
            stack.callback(process.terminate)
        for _ in range(2):  # the second time, it continues
            finished = subprocess.run(
                job["args"], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120
            )
            assert finished.returncode == 0, finished.stdout + finished.stderr
    with RunStore(tmp_path / "my-run", read_only=True) as store:
        assert len(store.rows()) == 2
