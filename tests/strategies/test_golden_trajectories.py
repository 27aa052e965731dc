from __future__ import annotations

import json

import pytest

from golden.regenerate import FOLDER, run_trajectory

GOLDEN = sorted(path.stem for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", GOLDEN)
def test_trajectory_is_the_golden_one(name):
    """After a deliberate change of a strategy, run ``python tests/golden/regenerate.py`` and review the diff."""
    expected = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert run_trajectory(name) == expected
