"""Names of spaces in files keep the meaning that they had when the files were written."""

from __future__ import annotations

import pytest

from cashmere.records.space_names import present_space_name
from cashmere.space import SPACES


@pytest.mark.parametrize(
    ("name", "version", "present"),
    [
        ("default", 1, "classic"),
        ("paths", 1, "default"),
        ("sklearn12", 1, "sklearn12"),
        ("default", 2, "default"),
        ("classic", 2, "classic"),
        (["default"], 1, ["default"]),
    ],
)
def test_names_keep_their_meaning(name, version, present):
    assert present_space_name(name, version) == present


@pytest.mark.parametrize("name", list(SPACES))
def test_names_of_today_stay(name):
    assert present_space_name(name, 2) == name
