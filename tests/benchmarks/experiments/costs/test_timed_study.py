from __future__ import annotations

import argparse

import pandas as pd
import pytest
from synthetic_recording import make_recording

from benchmarks.experiments.costs import timed_study
from benchmarks.recordings.recorded_history import save_recorded


@pytest.fixture
def arguments(tmp_path, monkeypatch) -> argparse.Namespace:
    save_recorded(make_recording(n=40), tmp_path / "recorded")
    monkeypatch.setattr(timed_study, "RECORDED", tmp_path / "recorded")
    parser = argparse.ArgumentParser()
    timed_study.add_arguments(parser)
    return parser.parse_args(
        ["--seeds", "2", "--shares", "0.3", "--work", str(tmp_path / "work"), "--out", str(tmp_path / "rows.csv")]
    )


@pytest.mark.long
def test_command_compares_all_rules_and_continues(arguments, monkeypatch, capsys):
    timed_study.main(arguments)
    shown = capsys.readouterr().out
    assert "0 of 12 runs are finished" in shown
    rows = pd.read_csv(arguments.out)
    assert set(rows["rule"]) == set(timed_study.RULES)
    assert all(rule in shown for rule in timed_study.RULES)
    arguments.workers = 0
    timed_study.main(arguments)
    shown = capsys.readouterr().out
    assert "12 of 12 runs are finished" in shown and "different code" not in shown
    monkeypatch.setattr(timed_study, "own_digest", lambda: "changed")
    timed_study.main(arguments)
    assert "12 of 12 runs were made by different code" in capsys.readouterr().out
