"""The fixture `one_table`: a folder of data for the tests of experiments."""

from __future__ import annotations

import json

import pytest

from cashmere.data.demo import DEMO_TARGET, demo_table


@pytest.fixture(scope="session")
def one_table(tmp_path_factory):
    """Return a folder of data with a single table, ``small``: 300 rows of the demonstration table."""
    folder = tmp_path_factory.mktemp("data")
    demo_table().sample(300, random_state=0).rename(columns={DEMO_TARGET: "target"}).to_parquet(
        folder / "small.parquet"
    )
    (folder / "manifest.json").write_text(json.dumps([{"name": "small", "file": "small.parquet", "task": "binary"}]))
    return folder
