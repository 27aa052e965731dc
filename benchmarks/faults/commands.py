"""The commands that are hit: small runs of the command line, with their output in a file and a limit of time."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cashmere.cli.terminal import TRY_AGAIN
from cashmere.data.demo import demo_table
from cashmere.model.predictor import Predictor
from cashmere.storage.database import read

CASHMERE = (sys.executable, "-m", "cashmere")
HANG_SECONDS = 180.0
"""Beyond it a command counts as hanging: it takes about 10 s on two free cores."""

N_TRIALS = 16
"""More than the twelve defaults of the space, so that strategies decide the last ones."""
_ROWS = 100

SECONDS = 15
"""Budget of runs that follow paths."""
N_TRIALS_MORE = 4
"""Number of trials that such a run gets after the last fault."""
_SECONDS_OF_A_TRIAL = 4
N_ROWS_OF_A_PATH = 12_000
_COLUMNS_OF_A_PATH = 12

StoredTrials = dict[int, tuple[Any, ...]]
"""By number: configuration, losses of the folds, status, error."""


def write_table(path: Path) -> None:
    """Write the table that all runs learn: a few rows and columns of the demonstration table."""
    table = demo_table().sample(_ROWS, random_state=1)
    table[["checking_status", "duration", "credit_amount", "age", "target"]].to_csv(path, index=False)


def write_long_table(path: Path) -> None:
    """Write a table on which trials take seconds: each hands over checkpoints, many are cut short."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N_ROWS_OF_A_PATH, _COLUMNS_OF_A_PATH)).round(3)
    noisy = X[:, 0] + np.sin(3 * X[:, 1]) * X[:, 2] + rng.normal(size=len(X))
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(_COLUMNS_OF_A_PATH)])
    table.assign(target=pd.qcut(noisy, 5, labels=list("abcde"))).to_csv(path, index=False)


def fit_paths_command(table: Path, folder: Path, strategy: str) -> list[str]:
    """Return the command that starts a run of `SECONDS` with two workers, whose trials follow paths."""
    options = {
        "--target": "target",
        "--space": "default",
        "--workers": "2",
        "--strategy": strategy,
        "--budget": f"{SECONDS}s",
        "--trial-timeout": f"{_SECONDS_OF_A_TRIAL}s",
        "--memory": "900MiB",
        "--out": str(folder),
    }
    return [*CASHMERE, "fit", str(table), *(part for option in options.items() for part in option)]


def fit_command(table: Path, folder: Path, strategy: str) -> list[str]:
    """Return the command that starts a run of `N_TRIALS` trials with two workers."""
    options = {
        "--target": "target",
        "--space": "sklearn12",  # no boosters: their libraries take long to load
        "--resampling": "holdout",
        "--workers": "2",
        "--strategy": strategy,
        "--budget": f"{N_TRIALS}trials",
        "--trial-timeout": "120s",
        "--memory": "900MiB",
        "--out": str(folder),
    }
    return [*CASHMERE, "fit", str(table), *(part for option in options.items() for part in option)]


def resume_command(folder: Path, *, more: str | None = None) -> list[str]:
    """Return the command that continues a run, with what is left of its budget or with another."""
    return [*CASHMERE, "resume", str(folder), *(() if more is None else ("--budget", more))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a command ended.

    Attributes
    ----------
    status : int or None
        Exit status, negative for a signal; None if it did not end in time and was killed.
    output : str
        All that it printed.
    seconds : float
        How long it ran.
    """

    status: int | None
    output: str
    seconds: float

    @property
    def has_traceback(self) -> bool:
        """Whether it printed the traceback of an exception."""
        return "Traceback (most recent call last)" in self.output

    @property
    def typed_error(self) -> str | None:
        """Name of the error if it ended with one of ours."""
        found = re.findall(r"^(\w+Error): ", self.output, re.MULTILINE)
        return found[-1] if self.status in (2, TRY_AGAIN) and found and not self.has_traceback else None

    @property
    def digest(self) -> str | None:
        """Digest of the run, if it was shown."""
        found = re.findall(r"^Digest: (\w+)$", self.output, re.MULTILINE)
        return found[-1] if found else None

    def __str__(self) -> str:
        last = (self.output.strip().splitlines() or [""])[-1]
        return f"exit status {self.status}: {last[:300]}"


class Command:
    """A running command, the leader of its own session.

    Parameters
    ----------
    command : sequence of str
        What to run.
    output : Path
        File that receives what it prints.
    environment : mapping, optional
        Additional variables.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        output: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.output = output
        self._start = time.monotonic()
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
                start_new_session=True,
            )

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.process.poll() is not None

    def printed(self) -> str:
        """Return what it has printed so far."""
        return self.output.read_text(errors="replace")

    def wait_until(self, seconds: float) -> None:
        """Wait until it has run this long, or has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, seconds - self.elapsed))

    def wait_for_text(self, text: str, seconds: float) -> None:
        """Wait until it has printed a text, has run this long, or has ended."""
        while text not in self.printed() and not self.has_ended and self.elapsed < seconds:
            time.sleep(0.02)

    def wait_for_files(self, folder: Path, seconds: float) -> None:
        """Wait until a folder contains files, or the command has run this long, or has ended."""
        while not any(folder.glob("*")) and not self.has_ended and self.elapsed < seconds:
            time.sleep(0.02)

    def end(self) -> Ending:
        """Wait for the end; kill the command if it hangs."""
        try:
            status: int | None = self.process.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
            self.kill()
        return Ending(status=status, output=self.printed(), seconds=self.elapsed)

    def kill(self) -> None:
        """Kill the process alone, if it is still there."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


def stored_trials(folder: Path) -> StoredTrials:
    """Return the finished trials of a run directory, read from outside as any program may.

    Raises
    ------
    CashmereError
        If the database is damaged or cannot be read.
    """
    if not (folder / "run.json").exists():  # hit before the run began: the database may be half made
        return {}
    return {row[0]: row[1:] for row in read(folder, _trials)}


def _trials(database: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return database.execute("SELECT number, configuration, fold_losses, status, error FROM trials").fetchall()


def predict(folder: Path, table: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the probabilities that the model of a run predicts for its own table."""
    frame = pd.read_csv(table).drop(columns="target")
    return np.asarray(Predictor.load(folder).predict_proba(frame), dtype=np.float64)
