"""A run on a cluster equals the run on one machine: same trials, losses and weights, bit for bit."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import distributed
import numpy as np
import pytest
from dask_clusters import dask_process, two_workers
from processes import descendants, running, wait_until
from sklearn.base import clone
from typer.testing import CliRunner

from cashmere import AutoClassifier, Predictor
from cashmere.cli import app
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import ClusterWarning, IncompatibleParametersError, RunDirectoryError
from cashmere.records.budget import Budget
from cashmere.run import RunSettings, StopReason, continue_run, fit_run
from cashmere.storage.store import RunStore

TABLE = demo_table().sample(150, random_state=1)
X, Y = TABLE.drop(columns=DEMO_TARGET), TABLE[DEMO_TARGET]
SETTINGS = RunSettings(budget=Budget(trials=3), resampling="holdout", target_name=DEMO_TARGET)


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture(scope="module")
def on_one_machine(tmp_path_factory):
    """Return the digest of the run with one local worker."""
    settings = replace(SETTINGS, n_workers=1)
    return fit_run(tmp_path_factory.mktemp("local") / "run", X, Y, settings, load=False).facts.digest


@pytest.mark.long
def test_digest_is_that_of_one_machine_also_after_a_resume(client, on_one_machine, tmp_path):
    shorter = replace(SETTINGS, budget=Budget(trials=2))
    finished = fit_run(tmp_path / "run", X, Y, shorter, executor=client, load=False)
    assert finished.study.history.successes
    finished = continue_run(tmp_path / "run", Budget(trials=1), executor=client.scheduler.address, load=False)
    assert finished.facts.digest == on_one_machine
    assert client.status == "running"


@pytest.mark.long
def test_command_runs_on_the_cluster(client, on_one_machine, tmp_path):
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    options = ["--target", DEMO_TARGET, "--budget", "2trials", "--resampling", "holdout", "--quiet"]
    options += ["--scheduler", client.scheduler.address]
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "table.csv"), "--out", str(tmp_path / "run"), *options])
    assert result.exit_code == 0, result.output
    resume = ["resume", str(tmp_path / "run"), "--budget", "1trials", "--quiet", *options[-2:]]
    result = CliRunner().invoke(app, resume)
    assert result.exit_code == 0, result.output
    with RunStore(tmp_path / "run", read_only=True) as store:
        assert store.facts().digest == on_one_machine
        assert len(store.rows()) == 3


def processes_of_trials(client):
    """Return how many processes each Dask worker has started."""
    return list(client.run(lambda: len(descendants())).values())


@pytest.mark.slow
def test_ctrl_c_ends_the_trials_and_a_resume_gives_the_same_digest(client, tmp_path):
    settings = replace(SETTINGS, budget=Budget(trials=8), resampling="5fold", n_workers=1)
    undisturbed = fit_run(tmp_path / "local", X, Y, settings, load=False)
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    options = ["--target", DEMO_TARGET, "--budget", "8trials", "--resampling", "5fold", "--out", str(tmp_path / "run")]
    options += ["--scheduler", client.scheduler.address]
    with running(
        [sys.executable, "-m", "cashmere", "fit", tmp_path / "table.csv", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as command:
        wait_until(lambda: list((tmp_path / "run" / "predictions").glob("*.npy")), by=command)
        command.send_signal(signal.SIGINT)
        output, _ = command.communicate(timeout=60)
    assert command.returncode == 130, output
    assert "Interrupted; the model is usable" in output
    assert processes_of_trials(client) == [0, 0]
    finished = continue_run(tmp_path / "run", executor=client, load=False)
    assert finished.facts.digest == undisturbed.facts.digest


@pytest.mark.slow
def test_run_whose_scheduler_is_killed_is_resumed_to_the_same_digest(tmp_path):
    settings = replace(SETTINGS, budget=Budget(trials=8), resampling="5fold", n_workers=1)
    undisturbed = fit_run(tmp_path / "local", X, Y, settings, load=False)
    file, folder = tmp_path / "scheduler.json", tmp_path / "run"
    options = ("--scheduler-file", str(file), "--no-dashboard")
    with (
        dask_process("scheduler", *options, "--port", "0", "--host", "127.0.0.1") as scheduler,
        dask_process("worker", *options, "--nthreads", "2", "--no-nanny", "--local-directory", str(tmp_path)),
    ):

        def kill_scheduler():
            while not list(folder.glob("predictions/*.npy")):
                time.sleep(0.02)
            scheduler.kill()

        wait_until(file.exists, by=scheduler)
        with distributed.Client(scheduler_file=str(file), timeout=3, set_as_default=False) as client:
            threading.Thread(target=kill_scheduler, daemon=True).start()
            with pytest.warns(ClusterWarning, match=r"was lost.* The model is made of what has finished"):
                cut_short = fit_run(folder, X, Y, settings, executor=client)
    assert cut_short.stop_reason is StopReason.CLUSTER
    assert len(Predictor.load(folder).predict(X)) == len(X)
    with RunStore(folder, read_only=True) as store:
        finished_before = {row["number"]: row["finished_at"] for row in store.rows()}
    finished = continue_run(folder, load=False)
    assert 0 < len(finished_before) < 8
    assert {row["number"]: row["finished_at"] for row in finished.rows}.items() >= finished_before.items()
    assert finished.facts.digest == undisturbed.facts.digest


def test_command_names_a_scheduler_that_does_not_answer(tmp_path, monkeypatch):
    monkeypatch.setattr("cashmere.execution.dask_cluster._CONNECT_SECONDS", 1.0)
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    options = ["--target", DEMO_TARGET, "--out", str(tmp_path / "run"), "--scheduler", "tcp://127.0.0.1:9"]
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "table.csv"), *options])
    assert result.exit_code == 75
    assert "ClusterError: The cluster at tcp://127.0.0.1:9 does not answer within 1 s" in result.output
    assert not (tmp_path / "run").exists()
    options[-1] = "tcpp://127.0.0.1:9"
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "table.csv"), *options])
    assert result.exit_code == 2 and "an address that Dask knows, such as 'tcp://host:8786'" in result.output


def test_estimator_runs_on_a_cluster_in_this_process():
    options = {"budget": "2trials", "resampling": "holdout"}
    local = AutoClassifier(**options, n_workers=1).fit(X, Y)
    model = AutoClassifier(**options, executor="dask", n_workers=2).fit(X, Y)
    assert np.array_equal(model.predict_proba(X), local.predict_proba(X))


def test_estimator_with_a_client_can_be_cloned_and_pickled(client):
    model = AutoClassifier(executor=client)
    assert clone(model).executor is client
    assert pickle.loads(pickle.dumps(model)).executor == client.scheduler.address
    assert clone(AutoClassifier(executor="dask")).executor == "dask"


def test_isolation_none_contradicts_a_cluster(client, tmp_path):
    settings = replace(SETTINGS, isolation="none")
    with pytest.raises(IncompatibleParametersError, match="not on a cluster"):
        fit_run(tmp_path / "run", X, Y, settings, executor=client)
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_more_workers_than_this_machine_can_run_need_a_cluster(client, tmp_path):
    settings = replace(SETTINGS, n_workers=500, budget=Budget(trials=1))
    fit_run(tmp_path / "run", X, Y, settings, executor=client, load=False)
    with pytest.raises(RunDirectoryError, match=r"asks for 500 workers.*--scheduler"):
        continue_run(tmp_path / "run", Budget(trials=1))
