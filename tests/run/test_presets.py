"""Presets are named settings, which given ones override."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cashmere import AutoClassifier
from cashmere.data.demo import DEMO_TARGET, demo_table
from cashmere.exceptions import InvalidParameterError, UnknownNameError
from cashmere.records.budget import Budget
from cashmere.run import RunDirectory, RunSettings
from cashmere.run.presets import BALANCED, PRESETS

DOCS = Path(__file__).parents[2] / "docs" / "running.md"


def test_balanced_is_what_a_run_does_by_default():
    assert RunSettings.from_options(preset=BALANCED) == RunSettings.from_options() == RunSettings()


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_is_read_and_decides_about_the_same_settings(name):
    assert PRESETS[name].keys() == PRESETS[BALANCED].keys()
    of_options = RunSettings.from_options(preset=name)
    assert of_options == RunSettings.from_parameters(AutoClassifier(preset=name).get_params())
    assert of_options.budget == Budget.parse(PRESETS[name]["budget"])
    assert (of_options == RunSettings()) == (name == BALANCED)


def test_given_settings_override_the_preset():
    assert RunSettings.from_options(preset="fast", budget="9trials").budget == Budget(trials=9)
    assert RunSettings.from_parameters(AutoClassifier(preset="fast", budget=30).get_params()).budget == Budget(
        seconds=30
    )
    with pytest.raises(InvalidParameterError, match="budget must be a positive time"):
        RunSettings.from_options(preset="fast", budget="soon")


def test_other_names_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'best'"):
        RunSettings.from_options(preset="bset")
    with pytest.raises(UnknownNameError, match="balanced, best, fast, small"):
        AutoClassifier(preset=None).fit([[1.0], [2.0]], [0, 1])


def test_run_keeps_the_resulting_settings(tmp_path):
    table = demo_table().sample(60, random_state=0)
    X, y = table.drop(columns=DEMO_TARGET), table[DEMO_TARGET].to_numpy()
    with RunDirectory.create(tmp_path / "run", X, y, RunSettings.from_options(preset="fast")):
        pass
    stored = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert stored["budget"] == "60s"
    assert "preset" not in stored


def test_table_in_the_docs_shows_the_presets():
    header, *rows = re.findall(
        r"^\| (.*) \|$", DOCS.read_text().partition("\n## Presets\n")[2].partition("\n## ")[0], re.M
    )
    names = [name.strip("` ") for name in header.split("|")[1:]]
    shown = {name: {} for name in names}
    for row in rows[1:]:
        setting, *values = (cell.strip(" `") for cell in row.split("|"))
        for name, value in zip(names, values, strict=True):
            shown[name][setting] = None if value == "-" else value
    written = {name: {k: None if v is None else str(v) for k, v in preset.items()} for name, preset in PRESETS.items()}
    assert shown == written
