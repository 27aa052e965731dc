"""Settings whose meaning has changed keep it in runs of before."""

from __future__ import annotations

import json

import pytest
from fake_runs import make_run

from cashmere.storage.directory import read_run_json


@pytest.mark.parametrize(("version", "metric"), [(2, "f1_macro"), (3, "F1")])
def test_f1_meant_the_mean_over_classes(tmp_path, version, metric):
    folder = make_run(tmp_path / "run", settings={"metric": "F1"})
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": version}))
    assert read_run_json(folder)["settings"]["metric"] == metric
