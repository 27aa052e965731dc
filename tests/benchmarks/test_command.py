from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def benchmarks(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)


@pytest.mark.long
def test_help_describes_every_subcommand():
    text = " ".join(benchmarks("--help").stdout.split())
    assert "record Record histories: evaluate configurations of a space" in text
    assert "replay Compare strategies on recorded histories" in text
    assert "run Run strategies for real" in text


@pytest.mark.long
def test_our_errors_are_one_line(tmp_path):
    (tmp_path / "broken.zip").write_text("no zip")
    result = benchmarks("replay", "--recordings", str(tmp_path))
    assert result.returncode == 1
    assert result.stderr.startswith("CorruptStoreError: ") and len(result.stderr.splitlines()) == 1
