"""A run whose process is stopped, replaced and continued equals one whose process was never stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from processes import running, wait_until

from cashmere import Predictor
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import RunLockedError
from cashmere.records.budget import Budget
from cashmere.run import RunSettings, continue_run, fit_run
from cashmere.storage.store import RunStore

LEASE = 2.0

COMMAND = f"""
import cashmere.storage.store as store
store.LEASE_SECONDS = {LEASE}
from cashmere.__main__ import main
main()
"""


@pytest.mark.slow
def test_stopped_command_that_was_replaced_ends_with_an_error_and_harms_nothing(tmp_path):
    table = demo_table().sample(150, random_state=1)
    settings = RunSettings(budget=Budget(trials=8), n_workers=1, resampling="5fold", target_name=DEMO_TARGET)
    X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET]
    undisturbed = fit_run(tmp_path / "undisturbed", X, y, settings, load=False)
    table.to_csv(tmp_path / "table.csv", index=False)
    folder = tmp_path / "run"
    options = ["--target", DEMO_TARGET, "--budget", "8trials", "--resampling", "5fold", "--workers", "1"]
    with running(
        [sys.executable, "-c", COMMAND, "fit", tmp_path / "table.csv", "--out", folder, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        wait_until(lambda: len(list(folder.glob("predictions/*.npy"))) >= 2, by=command)
        command.send_signal(signal.SIGSTOP)
        with pytest.raises(RunLockedError, match=f"in use by process {command.pid} on"):
            continue_run(folder)
        time.sleep(1.5 * LEASE)
        with RunStore(folder, read_only=True) as store:
            before = {row["number"]: row["finished_at"] for row in store.rows()}
        finished = continue_run(folder, load=False)
        assert 0 < len(before) < 8
        command.send_signal(signal.SIGCONT)
        _, errors = command.communicate(timeout=60)
    assert command.returncode == 2
    assert "LeaseLostError" in errors and "Traceback" not in errors
    assert finished.facts.digest == undisturbed.facts.digest
    with RunStore(folder, read_only=True) as store:
        assert store.facts().digest == undisturbed.facts.digest
        assert {row["number"]: row["finished_at"] for row in store.rows()}.items() >= before.items()
    assert len(Predictor.load(folder).predict(X)) == len(X)
    again = continue_run(folder, Budget(trials=1), load=False)  # every file of the nine trials is read
    assert [o.trial.number for o in again.study.history] == list(range(9))
