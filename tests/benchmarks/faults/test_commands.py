"""What a command that ended says."""

from __future__ import annotations

import pytest
import typer

from benchmarks.faults.commands import Ending
from cashmere.cli.terminal import typed_errors
from cashmere.exceptions import RunLockedError


@pytest.mark.parametrize(
    ("status", "output", "expected"),
    [
        (2, "Warning: x\nSchemaError: no column", "SchemaError"),
        (75, "RunLockedError: in use", "RunLockedError"),
        (1, "SchemaError: no column", None),
        (0, "SchemaError: no column", None),
        (2, "Traceback (most recent call last)\nSchemaError: no column", None),
        (75, "in use", None),
    ],
)
def test_errors_of_ours_are_known_by_their_exit_status(status, output, expected):
    assert Ending(status=status, output=output, seconds=1.0).typed_error == expected


def test_a_locked_run_ends_a_command_with_an_error_of_ours(capsys):
    with pytest.raises(typer.Exit) as ended, typed_errors():
        raise RunLockedError("run", "is in use.")
    told = capsys.readouterr().err
    assert Ending(status=ended.value.exit_code, output=told, seconds=1.0).typed_error == "RunLockedError"
