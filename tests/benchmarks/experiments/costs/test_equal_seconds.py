from __future__ import annotations

import argparse

import pandas as pd
import pytest
from synthetic_recording import make_recording

from benchmarks.experiments.costs import equal_seconds
from benchmarks.recordings.recorded_history import save_recorded


@pytest.fixture
def arguments(tmp_path) -> argparse.Namespace:
    path = save_recorded(make_recording(n=40), tmp_path / "recorded")
    parser = argparse.ArgumentParser()
    equal_seconds.add_arguments(parser)
    options = ["--strategies", "random", "few=optdivbo:n_initial=3", "--recordings", str(path), "--seeds", "2"]
    options += ["--average-trials", "12", "--workers", "1", "--work", str(tmp_path / "work")]
    return parser.parse_args([*options, "--out", str(tmp_path / "rows.csv")])


def test_command_compares_strategies_in_the_same_time_and_continues(arguments, monkeypatch, capsys):
    equal_seconds.main(arguments)
    shown = capsys.readouterr().out
    assert "0 of 4 runs are finished" in shown and "After 100 % of the time; 1 recording, 2 seeds" in shown
    rows = pd.read_csv(arguments.out)
    assert set(rows["strategy"]) == {"random", "few"}
    assert (rows.groupby(["strategy", "seed"])["percent"].apply(list).map(tuple) == equal_seconds.PERCENT).all()
    made = rows.groupby(["strategy", "seed"])["trials"]
    assert made.apply(lambda n: n.is_monotonic_increasing).all() and made.max().gt(1).all()
    arguments.workers = 0
    equal_seconds.main(arguments)
    shown = capsys.readouterr().out
    assert "4 of 4 runs are finished" in shown and "different code" not in shown
    monkeypatch.setattr(equal_seconds, "code_of", lambda strategy: "changed")
    equal_seconds.main(arguments)
    assert "2 of 2 runs of few were made by different code" in capsys.readouterr().out


def test_unfinished_reference_is_refused(arguments):
    arguments.workers = 0
    with pytest.raises(SystemExit, match="no finished run of random"):
        equal_seconds.main(arguments)
