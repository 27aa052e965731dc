"""kill -9 of the coordinator at random instants: no finished trial is lost or repeated, every resume completes."""

from __future__ import annotations

import random
import re
import signal
import sqlite3
import subprocess
import sys
import time

import psutil
import pytest

from cashmere.data.demo import demo_table
from cashmere.model.predictor import Predictor

CASHMERE = [sys.executable, "-m", "cashmere.cli"]


def finished_trials(folder) -> dict[int, tuple]:
    if not (folder / "run.sqlite").exists():
        return {}
    database = sqlite3.connect(f"file:{folder / 'run.sqlite'}?mode=ro", uri=True)
    try:
        return {
            row[0]: row[1:]
            for row in database.execute("SELECT number, configuration, fold_losses, finished_at FROM trials")
        }
    except sqlite3.OperationalError:  # killed before the table was made
        return {}
    finally:
        database.close()


def kill_after(command: list[str], seconds: float) -> int | None:
    """Start a command, kill -9 its process alone after some seconds; return its exit code if it ended before."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        _, alive = psutil.wait_procs(workers, timeout=20)  # those still starting notice only after their imports
        assert not [p for p in alive if "resource_tracker" not in " ".join(p.cmdline())], (
            "workers outlived the coordinator"
        )
        return None
    assert process.returncode == 0, output.decode()
    return process.returncode


def kill_again_and_again(tmp_path, n_kills: int, trials: int, seed: int) -> None:
    table = tmp_path / "credit.csv"
    demo_table().sample(120, random_state=1).to_csv(table, index=False)
    fit = [*CASHMERE, "fit", str(table), "--target", "target", "--resampling", "holdout", "--workers", "2"]
    fit += ["--strategy", "random", "--budget", f"{trials}trials", "--trial-timeout", "60s"]
    whole = subprocess.run([*fit, "--out", str(tmp_path / "whole")], capture_output=True, text=True, check=True)

    folder = tmp_path / "killed"
    rng = random.Random(seed)
    stored: dict[int, tuple] = {}
    kills = 0
    while kills < n_kills:
        command = [*CASHMERE, "resume", str(folder)] if (folder / "run.json").exists() else [*fit, "--out", str(folder)]
        code = kill_after(command, rng.uniform(0.5, 9.0))
        kills += code is None
        now = finished_trials(folder)
        assert stored.items() <= now.items(), "a finished trial was lost or run again"
        stored = now
        if code is not None and len(stored) >= trials:  # all done before the kills were: start another run
            assert digest(whole.stdout) == digest(
                subprocess.run([*CASHMERE, "resume", str(folder)], capture_output=True, text=True, check=True).stdout
            )
            folder, stored = tmp_path / f"killed{kills}", {}
    result = subprocess.run(
        [*CASHMERE, "resume", str(folder)] if (folder / "run.json").exists() else [*fit, "--out", str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert stored.items() <= finished_trials(folder).items()
    assert digest(result.stdout) == digest(whole.stdout)
    assert len(Predictor.load(folder).predict(demo_table().drop(columns="target"))) == 1000


def digest(output: str) -> str:
    match = re.search(r"Digest: (\w+)", output)
    assert match, output
    return match[1]


def test_a_few_kills(tmp_path):
    start = time.perf_counter()
    kill_again_and_again(tmp_path, n_kills=5, trials=14, seed=0)
    assert time.perf_counter() - start < 250


@pytest.mark.slow
def test_fifty_kills(tmp_path):
    kill_again_and_again(tmp_path, n_kills=50, trials=40, seed=1)
