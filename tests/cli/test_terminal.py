"""Errors of the operating system become messages without a traceback."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import typer

from cashmere.cli.terminal import typed_errors
from cashmere.exceptions import RowStructureWarning


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("arguments", [("strategies",), ("cite", "bo"), ("key",), ("--help",), ("fit", "--help")])
def test_full_output_is_explained(arguments):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "cashmere", *arguments]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("SystemRefusalError: The output of this command cannot be opened")
    assert "No space left" in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.long
def test_closed_pipe_is_no_error():
    command = f"{sys.executable} -m cashmere strategies | true"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert result.stderr == ""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="a shell that closes streams")
def test_closed_streams_are_no_error(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(40)))
    run, predictions = tmp_path / "run", tmp_path / "p.csv"
    for arguments in (
        f"fit {table} --target y --budget 1trials --include logistic_regression --out {run} <&- >&- 2>&-",
        f"leaderboard {run} >&-",
        f"predict {run} {table} -o {predictions} 2>&-",
    ):
        command = ["bash", "-c", f"{sys.executable} -m cashmere {arguments}"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr) == (0, ""), arguments
    assert (run / "report.html").exists()
    assert len(predictions.read_text().splitlines()) == 41
    command = ["bash", "-c", f"{sys.executable} -m cashmere leaderboard {tmp_path / 'none'} 2>&-"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")  # errors do not turn up among results


def no_memory():
    bytes(2**62)


def no_file():
    Path("/nowhere/file").read_bytes()


@pytest.mark.parametrize(("failing", "text"), [(no_memory, "not enough memory"), (no_file, "/nowhere/file cannot be")])
def test_system_error_is_one_line(failing, text, capsys):
    with pytest.raises(typer.Exit) as left, typed_errors():
        failing()
    assert left.value.exit_code == 2
    shown = capsys.readouterr().err
    assert shown.startswith("SystemRefusalError: ") and text in shown and len(shown.splitlines()) == 1


def test_own_warnings_are_lines_without_code(capsys):
    with warnings.catch_warnings(), typed_errors():
        warnings.simplefilter("always")
        warnings.warn(RowStructureWarning("Column 'day' holds dates."), stacklevel=2)
    assert capsys.readouterr().err == "Warning: Column 'day' holds dates.\n"
