"""Names of options in other systems."""

from __future__ import annotations

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cashmere.cli import app, other_names


@pytest.mark.parametrize(
    ("typed", "meant"), [("--time-limit", "--budget"), ("--label", "--target"), ("--eval_metric", "--metric")]
)
def test_a_name_of_another_system_brings_the_option_that_is_meant(typed, meant):
    result = CliRunner().invoke(app, ["fit", "table.csv", typed, "60"])
    assert result.exit_code == 2
    assert typed in result.output and meant in result.output
    assert "--time)" not in result.output and "--pos-label" not in result.output


def test_other_commands_and_other_typing_errors_are_told_as_always():
    assert "--metric" in CliRunner().invoke(app, ["fit", "table.csv", "--metrc", "auc"]).output
    result = CliRunner().invoke(app, ["predict", "run", "table.csv", "--time-limit", "60"])
    assert result.exit_code == 2 and "--budget" not in result.output


def test_fit_has_each_option_that_is_meant_and_none_of_the_other_names():
    own = {name for each in get_command(app).commands["fit"].params for name in each.opts}
    meant = other_names._OPTIONS
    assert set(meant.values()) <= own and not own & set(meant)
