"""The beginning of a run ends in time, and can be interrupted; then it leaves nothing behind."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from processes import running, wait_until
from typer.testing import CliRunner

from cashmere import AutoClassifier
from cashmere.cli import app
from cashmere.exceptions import BudgetTooShortError
from cashmere.records.budget import Deadline
from cashmere.run import preparation
from cashmere.run.preparation_time import preparation_check
from cashmere.run.session import Session

N_ROWS, N_COLUMNS = 60_000, 20
COMMAND = [sys.executable, "-m", "cashmere", "fit"]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N_ROWS, N_COLUMNS)).astype(np.float32), columns=list("abcdefghijklmnopqrst"))
    return frame.assign(target=np.where(frame["a"] + rng.normal(size=N_ROWS) > 0, "yes", "no"))


@pytest.fixture(scope="module")
def table(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "large.parquet"
    frame.to_parquet(path)
    return path


def fit(frame, folder, **parameters):
    model = AutoClassifier(run_directory=folder, isolation="none", **parameters)
    return model.fit(frame.drop(columns="target"), frame["target"])


@pytest.mark.long
@pytest.mark.parametrize("is_there", [False, True])
def test_budget_that_ends_before_the_table_is_prepared_is_an_error_and_leaves_no_run(frame, tmp_path, is_there):
    folder = tmp_path / "run"
    if is_there:
        folder.mkdir()
    with pytest.raises(BudgetTooShortError, match=r"The budget of 0\.01 s ended .* at least 1m") as caught:
        fit(frame, folder, budget="0.01s")
    assert caught.value.enough_seconds == 60
    assert folder.exists() == is_there
    assert len(fit(frame, folder, budget="1trials").study_.history) == 1


def test_command_tells_how_long_the_preparation_took(table, tmp_path):
    arguments = [table, "--target", "target", "--budget", "0.1s", "--out", tmp_path / "run"]
    result = CliRunner().invoke(app, ["fit", *map(str, arguments)])
    assert result.exit_code == 2
    assert result.output.startswith("BudgetTooShortError: The budget of 0.1 s ended before the table was prepared")
    assert not (tmp_path / "run").exists()


def test_reading_ends_with_the_time_and_the_budget_is_that_for_the_whole_table(frame, tmp_path, monkeypatch):
    monkeypatch.setattr("cashmere.data.parquet._CELLS_AT_A_TIME", 100_000)
    monkeypatch.setattr("cashmere.cli.searching.seconds_since_start", lambda: 120.0)
    frame.to_parquet(tmp_path / "groups.parquet", row_group_size=N_ROWS // 5)
    arguments = [tmp_path / "groups.parquet", "--target", "target", "--budget", "120s", "--out", tmp_path / "run"]
    result = CliRunner().invoke(app, ["fit", *map(str, arguments)])
    assert result.exit_code == 2
    assert "The budget of 120 s ended when 20% of the table was read: 120 s had gone" in result.output
    assert re.search(r"at least 4\dm", result.output)  # four times five times two minutes
    assert not (tmp_path / "run").exists()


def test_time_that_ends_while_folds_are_encoded_leaves_no_run(frame, tmp_path, monkeypatch):
    def too_late(deadline, n_cells):
        def check():
            raise BudgetTooShortError(60.0, 61.0)

        return check

    monkeypatch.setattr(preparation, "preparation_check", too_late)
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "new", tmp_path / "there"):
        with pytest.raises(BudgetTooShortError, match=r"61 s had gone.*at least 5m"):
            fit(frame, folder, budget="60s")
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_small_tables_are_prepared_whatever_the_time():
    over = Deadline(1.0, already_spent=2.0)
    preparation_check(over, 1_000_000)()
    preparation_check(Deadline(None), 10**9)()
    preparation_check(Deadline(3.0), 10**9)()
    with pytest.raises(BudgetTooShortError):
        preparation_check(over, 1_000_001)()


def interrupted(table: Path, folder: Path, sign: str) -> tuple[int, str]:
    """Begin a run, press Ctrl+C once a file exists, and return exit status and messages."""
    command = [*COMMAND, table, "--target", "target", "--budget", "10m", "--out", folder, "--workers", "1"]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: any(folder.glob(sign)), by=process, pause=0.001)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    return process.returncode, errors


@pytest.mark.long
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("sign", ["lock", "table.npz", "prepared/fold0-rows-train.npy"])
def test_interrupt_during_the_preparation_leaves_nothing_or_a_model(table, tmp_path, sign):
    folder = tmp_path / "run"
    status, errors = interrupted(table, folder, sign)
    # A shell shows both as 130. Python itself ends by the signal if this interrupts code that a library runs from a
    # string, as `dataclasses` does while modules are imported.
    assert status in (130, -signal.SIGINT) and "Traceback" not in errors
    if folder.exists():  # the search had begun meanwhile, so it ends with a model
        assert f"Continue with: cashmere resume {folder}" in errors
        assert (folder / "model" / "manifest.json").exists()
    else:
        assert errors == "Interrupted; there was nothing to keep yet.\n"


def test_frame_that_the_command_has_read_is_free_during_the_search(table, tmp_path, monkeypatch):
    import gc

    alive = []

    def search(self):
        alive.extend(
            o for o in gc.get_objects() if issubclass(type(o), pd.DataFrame) and o.shape == (N_ROWS, N_COLUMNS)
        )
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "search", search)
    gc.collect()
    arguments = [table, "--target", "target", "--budget", "10m", "--out", tmp_path / "run"]
    CliRunner().invoke(app, ["fit", *map(str, arguments)])
    assert not alive
