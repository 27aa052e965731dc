"""The examples of docs/clusters/slurm.md on a real SLURM on this machine; `make test-slurm` installs it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import distributed
import pandas as pd
import pytest
import slurm_on_loopback
from dask_clusters import dask_process
from pages_of_clusters import changed, shown, write_table
from processes import running

from cashmere.records.budget import Budget
from cashmere.run import RunSettings, fit_run
from cashmere.storage.store import RunStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(slurm_on_loopback.missing() is not None, reason=str(slurm_on_loopback.missing())),
]

N_TRIALS = 6
SMALL = ["--nodes=1", "--cpus-per-task=2", "--mem=3G", "--time=10", "--export=ALL"]
OPTIONS = f"--budget {N_TRIALS}trials --resampling 3fold"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with slurm_on_loopback.slurm(tmp_path_factory.mktemp("slurm")) as environment:
        commands = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        yield {**environment, "PATH": commands, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "train.csv"
    write_table(path)
    return path


@pytest.fixture(scope="module")
def on_one_machine(table, tmp_path_factory):
    """Return the digest of the run without a cluster."""
    frame = pd.read_csv(table)
    settings = RunSettings(budget=Budget(trials=N_TRIALS), resampling="3fold", target_name="income", n_workers=1)
    run = tmp_path_factory.mktemp("local") / "run"
    return fit_run(run, frame.drop(columns="income"), frame["income"], settings, load=False).facts.digest


def submit(script, folder, slurm, *options):
    (folder / "job.sh").write_text(script)
    command = ["sbatch", "--parsable", *options, "job.sh"]
    return subprocess.run(command, cwd=folder, env=slurm, capture_output=True, text=True, check=True).stdout.strip()


def wait_until(holds, what, seconds=240):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what()
        time.sleep(0.2)


def stored(run):
    if not (run / "run.json").exists():
        return []
    with RunStore(run, read_only=True) as store:
        return store.rows()


def digest(run):
    with RunStore(run, read_only=True) as store:
        assert len(store.rows()) == N_TRIALS
        return store.facts().digest


def outputs(folder):
    return "\n".join(path.read_text() for path in folder.glob("slurm-*.out"))


def test_search_and_workers_in_one_job_that_is_cancelled_and_submitted_again(slurm, table, on_one_machine, tmp_path):
    script = changed(
        shown("slurm.md", "sh")[0],
        {"train.csv": str(table), "--budget 3h": OPTIONS, "$(hostname)": "127.0.0.1", "${TMPDIR:-/tmp}": str(tmp_path)},
    )
    job = submit(script, tmp_path, slurm, *SMALL)
    run = tmp_path / "my-run"
    wait_until(lambda: list(run.glob("predictions/*.npy")), lambda: outputs(tmp_path))
    subprocess.run(["scancel", job], env=slurm, check=True)
    wait_until(lambda: not slurm_on_loopback.jobs(slurm), lambda: outputs(tmp_path))
    before = {row["number"]: row["finished_at"] for row in stored(run)}
    submit(script, tmp_path, slurm, *SMALL)
    wait_until(lambda: not slurm_on_loopback.jobs(slurm), lambda: outputs(tmp_path))
    assert digest(run) == on_one_machine, outputs(tmp_path)
    assert before.items() <= {row["number"]: row["finished_at"] for row in stored(run)}.items()


def test_worker_that_is_cancelled_while_it_runs_trials(slurm, table, on_one_machine, tmp_path):
    file = tmp_path / "scheduler.json"
    script = changed(shown("slurm.md", "sh")[1], {"${TMPDIR:-/tmp}": str(tmp_path)})
    options = ("--scheduler-file", str(file), "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    with dask_process("scheduler", *options):
        wait_until(file.exists, lambda: "no scheduler")
        with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
            where = {**slurm, "SCHEDULER": client.scheduler.address}
            small = ["--cpus-per-task=1", "--mem=2G", "--time=10", "--export=ALL"]
            jobs = submit(script, tmp_path, where, *small, "--array=1-2")
            client.wait_for_workers(2, timeout=60)
            run = tmp_path / "my-run"
            fit = (
                f"fit {table} --target income {OPTIONS} --out {run} --workers 2 --scheduler {client.scheduler.address}"
            )
            with running([sys.executable, "-m", "cashmere", *fit.split()], stdout=subprocess.DEVNULL) as command:
                wait_until(lambda: list(run.glob("predictions/*.npy")), lambda: outputs(tmp_path))
                subprocess.run(["scancel", f"{jobs}_1"], env=slurm, check=True)
                assert command.wait(timeout=240) == 0, outputs(tmp_path)
            assert len(client.scheduler_info()["workers"]) == 1
            subprocess.run(["scancel", jobs], env=slurm, check=True)
    wait_until(lambda: not slurm_on_loopback.jobs(slurm), lambda: outputs(tmp_path))
    assert digest(run) == on_one_machine


def test_jobs_of_dask_jobqueue(slurm, table, on_one_machine, tmp_path, monkeypatch):
    jobqueue = pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed: make test-slurm")
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm[name])
    frame = pd.read_csv(table)
    settings = RunSettings(budget=Budget(trials=N_TRIALS), resampling="3fold", target_name="income", n_workers=2)
    with (
        jobqueue.SLURMCluster(
            cores=1,
            processes=1,
            memory="2GiB",
            walltime="00:10:00",
            interface="lo",
            python=sys.executable,
            local_directory=str(tmp_path),
            log_directory=str(tmp_path),
            scheduler_options={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        cluster.scale(jobs=2)
        run = tmp_path / "run"
        fit_run(run, frame.drop(columns="income"), frame["income"], settings, executor=client, load=False)
    assert digest(run) == on_one_machine
    wait_until(lambda: not slurm_on_loopback.jobs(slurm), lambda: "jobs are left")
